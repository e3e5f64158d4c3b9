"""Renders a template in blocks, as far as its tags can stream."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from django.template import Context, Node, NodeList, TemplateSyntaxError
from django.template.base import Template
from django.template.loader_tags import ExtendsNode

PIECE_CHARACTERS = 65_536
"""How many characters are collected before they are yielded as one block."""


class RepeatNode(Node):
    """A block tag that renders its block once for each of some values, and can stream the output.

    ``name`` is the variable that has the value within the block; ``values`` returns the values for
    a template context.
    """

    def __init__(
        self, name: str, values: Callable[[Context], Iterable[Any]], nodelist: NodeList
    ) -> None:
        self.name = name
        self.values = values
        self.nodelist = nodelist

    def stream(self, context: Context) -> Iterator[str]:
        """Yield the rendered block for one value after the other."""
        for value in self.values(context):
            with context.push({self.name: value}):
                yield self.nodelist.render(context)

    def render(self, context: Context) -> str:
        """Return the rendered blocks of all values as one text."""
        return "".join(self.stream(context))


def rendered_blocks(template: Template, context: Context) -> Generator[bytes, None, None]:
    """Yield the output of a template, encoded, in blocks of about 64 KiB.

    A RepeatNode at the top level of the template is streamed. Within another block tag, such as
    ``{% if %}``, its whole output is collected first. Raises TemplateSyntaxError for a template
    that extends another: its parent would collect everything.
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
    """Yield the output of each top-level node of a template; of a RepeatNode piece by piece."""
    with context.render_context.push_state(template), context.bind_template(template):
        for node in template.nodelist:
            if isinstance(node, ExtendsNode):
                raise TemplateSyntaxError(
                    f"{template.name} extends another template, so it cannot stream."
                )
            if isinstance(node, RepeatNode):
                yield from node.stream(context)
            else:
                yield str(node.render_annotated(context))
