"""jinja2's sandbox with a budget, for programs from strangers that only have to join a few strings.

jinja2's own sandbox keeps a template away from Python's internals, but not from computing for ever or filling the
memory. Here every pass of a loop and every macro call costs a step, and no text or list may outgrow the budget's size.
"""

from __future__ import annotations

import functools
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import Template, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MAX_STEPS = 200_000
_MAX_WIDTH = 256
_TICK, _JOIN = "budget tick", "budget join"  # no template can write these names


class RefusedError(TemplateError):
    """The template called raise_exception: it does not accept these messages."""


class BudgetError(SecurityError):
    """The template computes more than any chat needs."""


@dataclass(slots=True)
class Budget:
    """What one rendering may still use up; texts and lists are measured in characters and items."""

    max_size: int
    steps: int = _MAX_STEPS

    def step(self) -> None:
        """One pass of a loop, one macro call."""
        self.steps -= 1
        if self.steps < 0:
            raise BudgetError(f"it takes more than {_MAX_STEPS} steps")

    def check(self, size: int) -> None:
        """Refuses a text or list of that size."""
        if size > self.max_size:
            raise BudgetError(f"it builds a text or list of size {size}, but {self.max_size} is the limit")

    def measure(self, value: object) -> None:
        """Refuses a value whose text would be too long; lists may hold each other many times over."""
        size, todo = 0, [value]
        while todo:
            part = todo.pop()
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, Mapping):
                todo += (*part.keys(), *part.values())
            elif isinstance(part, list | tuple | set | frozenset):
                todo += part
            elif isinstance(part, int):
                size += part.bit_length() // 3
            size += 1
            self.check(size)


budget: ContextVar[Budget] = ContextVar("budget")
"""The budget of the rendering that goes on in this thread."""

_COMPILING = Budget(max_size=1 << 16)


def _budget() -> Budget:
    return budget.get(_COMPILING)


@pass_context
def _tick(context: Context, value: object) -> str:
    _budget().step()
    return ""


@pass_context
def _join(context: Context, values: Iterable[object]) -> str:
    return _concat(map(_text, values))


def _text(value: object) -> str:
    _budget().measure(value)
    return str(value)


def _concat(pieces: Iterable[str]) -> str:
    pieces = list(pieces)
    _budget().check(sum(map(len, pieces)))
    return "".join(pieces)


def _finalize(value: object) -> object:
    if not isinstance(value, str):
        _budget().measure(value)
    return value


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own filter escapes <, >, & and ' for HTML, and Hugging Face's does not.
    _budget().measure(value)
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: object) -> None:
    raise RefusedError(_text(message))


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)


def _check_arguments(name: str, text: object, arguments: Iterable[object]) -> None:
    """Refuses what would make a text method or filter build a huge text out of small arguments."""
    arguments = list(arguments)
    if name in ("center", "ljust", "rjust", "zfill", "expandtabs", "indent", "tojson", "slice", "batch"):
        for argument in arguments:
            if isinstance(argument, int) and argument > _MAX_WIDTH:
                raise BudgetError(f"{name} gets the width {argument}, but {_MAX_WIDTH} is the limit")
    elif name == "replace" and isinstance(text, str) and len(arguments) >= 2:
        old, new = str(arguments[0]), str(arguments[1])
        _budget().check(len(text) + text.count(old) * len(new))
    elif name == "join" and isinstance(text, str | list) and arguments:
        _budget().check(len(text) * len(str(arguments[0])))
    elif name == "format" and isinstance(text, str) and re.search(r"\d{4}|\*|:[^}]*{", text):
        raise BudgetError("it formats with widths over 999 or computed ones")


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)  # carries jinja2's mark of what is passed first along
    def bounded(*arguments: Any, **options: Any) -> Any:
        first = 1 if hasattr(function, "jinja_pass_arg") else 0
        values = list(arguments[first:])
        if name == "join" and values and not isinstance(values[0], str):
            values[0] = list(values[0])  # may be a generator, which can be read once
        if values:
            _check_arguments(name, values[0], (*values[1:], *options.values()))
        if name in ("join", "string", "urlize", "escape", "e", "forceescape", "replace"):
            for value in values:
                _budget().measure(value)
        return function(*arguments[:first], *values, **options)

    return bounded


def _bounded_format(text: str, function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def bounded(*arguments: Any, **options: Any) -> str:
        _check_arguments("format", text, ())
        _budget().measure([arguments, options])
        return function(*arguments, **options)

    return bounded


class _Generation(Extension):
    """`{% generation %}` marks the assistant's words for training; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - declared so by jinja2

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Compiles chat templates with the names and settings that Hugging Face gives them."""

    intercepted_binops = frozenset(("*", "**", "+", "%"))
    concat = staticmethod(_concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols], finalize=_finalize
        )
        self.filters = {name: _bounded(name, function) for name, function in self.filters.items()}
        self.filters.update({"tojson": _bounded("tojson", _to_json), _TICK: _tick, _JOIN: _join})
        del self.filters["pprint"]
        self.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)

    def template(self, source: str) -> Template:
        """Compiles a template. Raises jinja2's TemplateSyntaxError."""
        tree = self.parse(source)
        for body in (*(n.body for n in tree.find_all(nodes.For)), *(n.body for n in tree.find_all(nodes.Macro))):
            body.insert(0, nodes.ExprStmt(_filter(nodes.Const(None), _TICK)))
        _replace_concats(tree)
        nodes.Node.set_environment(tree, self)
        return Template.from_code(self, self.compile(tree), self.make_globals(None))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Checks sizes before an operator can build something large."""
        sized = [value for value in (left, right) if isinstance(value, str | list | tuple)]
        if operator == "+":
            _budget().check(sum(map(len, sized)))
        elif operator == "*" and sized:
            _budget().check(len(sized[0]) * max(0, *(value for value in (left, right, 0) if isinstance(value, int))))
        elif operator == "**" and isinstance(right, int):
            _budget().check(right * (left.bit_length() if isinstance(left, int) else 1))
        elif operator == "*":
            _budget().check(sum(value.bit_length() for value in (left, right) if isinstance(value, int)))
        elif operator == "%" and isinstance(left, str):
            _check_arguments("format", left, ())
            _budget().measure(right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Checks the widths that a text's format method is given."""
        wrapped = super().wrap_str_format(value)
        return None if wrapped is None else _bounded_format(value.__self__, wrapped)

    def call(__self, __context: Context, __obj: Any, *arguments: Any, **options: Any) -> Any:
        """Checks the methods of texts before they run."""
        if isinstance(__obj, types.BuiltinMethodType) and isinstance(__obj.__self__, str):
            _check_arguments(__obj.__name__, __obj.__self__, (*arguments, *options.values()))
            if __obj.__name__ == "join" and arguments:
                pieces = list(arguments[0])
                _budget().check(sum(len(str(piece)) + len(__obj.__self__) for piece in pieces))
                arguments = (pieces,)
        return super().call(__context, __obj, *arguments, **options)


def _filter(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None)


def _replace_concats(node: nodes.Node) -> None:
    """`a ~ b` becomes a call of our own joining filter, so that its size is checked."""
    for field, value in node.iter_fields():
        if isinstance(value, list):
            value[:] = [_without_concat(item) for item in value]
        elif isinstance(value, nodes.Node):
            setattr(node, field, _without_concat(value))
    for child in node.iter_child_nodes():
        _replace_concats(child)


def _without_concat(value: Any) -> Any:
    return _filter(nodes.List(value.nodes), _JOIN) if isinstance(value, nodes.Concat) else value
