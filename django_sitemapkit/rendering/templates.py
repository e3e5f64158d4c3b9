"""Streaming a template: block by block, as far as its tags can."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from django.template import Context, Node, NodeList, TemplateSyntaxError
from django.template.base import Template
from django.template.loader_tags import ExtendsNode

PIECE_CHARACTERS = 65_536
"""Characters handed on at a time, about."""


class RepeatNode(Node):
    """A tag that repeats its block for some values, and can hand on its output in pieces."""

    def __init__(
        self, name: str, values: Callable[[Context], Iterable[Any]], nodelist: NodeList
    ) -> None:
        self.name = name
        self.values = values
        self.nodelist = nodelist

    def stream(self, context: Context) -> Iterator[str]:
        """Yield the block for one value after the other."""
        for value in self.values(context):
            with context.push({self.name: value}):
                yield self.nodelist.render(context)

    def render(self, context: Context) -> str:
        """Return the whole output."""
        return "".join(self.stream(context))


def template_blocks(template: Template, context: Context) -> Generator[bytes, None, None]:
    """Yield the output of a template in blocks of about 64 KiB.

    Streaming tags hand theirs on as it comes, where they stand at the top of the template; within
    another block tag, such as ``{% if %}``, that tag gathers it first. Raises TemplateSyntaxError
    for a template that extends another: its parent would gather everything.
    """
    pieces: list[str] = []
    size = 0
    for piece in _rendered_pieces(template, context):
        pieces.append(piece)
        size += len(piece)
        if size >= PIECE_CHARACTERS:
            yield "".join(pieces).encode()
            pieces.clear()
            size = 0
    if pieces:
        yield "".join(pieces).encode()


def _rendered_pieces(template: Template, context: Context) -> Iterator[str]:
    with context.render_context.push_state(template), context.bind_template(template):
        for node in template.nodelist:
            if isinstance(node, ExtendsNode):
                message = f"{template.name} extends another template, so it cannot stream."
                raise TemplateSyntaxError(message)
            if isinstance(node, RepeatNode):
                yield from node.stream(context)
            else:
                yield str(node.render_annotated(context))
