"""Routes: URL names and the columns that fill their arguments."""

from typing import Any


class Route:
    """A URL name and the columns that fill its arguments.

    Each argument is a field path, which may cross relations to one object, or an expression;
    ``Value("en")`` is a constant. Positional arguments fill unnamed groups; the two kinds do not
    mix, as in ``reverse()``.

    ::

        location = Route("city", country="country__slug", slug="slug")
    """

    def __init__(self, viewname: str, /, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise TypeError(
                f"Route({viewname!r}): use positional or named arguments, not both,"
                " as reverse() does."
            )
        self.viewname = viewname
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        arguments = [repr(self.viewname), *map(repr, self.args)]
        arguments += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"Route({', '.join(arguments)})"

    @property
    def columns(self) -> tuple[Any, ...]:
        """The field paths and expressions of the arguments, in order."""
        return (*self.args, *self.kwargs.values())
