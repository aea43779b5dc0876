"""An action's TOML file: read, checked key by key, with the line and the cure of what is wrong."""

from __future__ import annotations

import difflib
import errno
import re
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from app.actions.action import Action, Example, OutputKind, Prompt
from app.actions.long_text import LEAST_PART_TOKENS, PLAN_KINDS, PlanKind
from app.desktop.hotkeys import HotkeyFormatError, parse
from app.text.checks import CHECK_NAMES, CheckName
from app.translation import UserText, placeholders
from inference.errors import InvalidRequestError
from inference.request import SamplingParams

MAX_FILE_BYTES = 1 << 20
"""A hundred times the largest action; reading a megabyte takes a fraction of a second."""

_LANGUAGE_KEYS = ("en", "zh")
_PROMPT_KEYS = ("system", "user", "example", "part", "join")
_EXAMPLE_KEYS = ("text", "answer", "target")
_SAMPLING_KEYS = tuple(field.name for field in fields(SamplingParams))
_TOP_KEYS = (
    *("id", "order", "title", "description", "prompt", "sampling"),
    *("hotkey", "clipboard_hotkey", "output", "replaces", "checks"),
    *("long", "part_tokens", "prompt_language", "pattern"),
)
_USER_PLACEHOLDERS = ("text", "target_language")
_SYSTEM_PLACEHOLDERS = ("target_language",)
_SAMPLING_KINDS = {"temperature": float, "top_p": float, "min_p": float, "repetition_penalty": float, "stop": list}
_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_KINDS = {
    str: UserText('a text in quotes, like "text"'),
    int: UserText("a whole number"),
    float: UserText("a number"),
    bool: UserText("true or false"),
    list: UserText('a list, like ["a", "b"]'),
    dict: UserText("a table, like [prompt.en]"),
}


class ActionFormatError(ValueError):
    """A file is not an action.

    Attributes:
        text: what is wrong and the cure, for the user.
        line: where, counted from 1; 0 where the whole file is meant.
    """

    def __init__(self, text: UserText, line: int = 0) -> None:
        self.text = text
        self.line = line
        super().__init__(str(text))


def read_action(path: Path) -> Action:
    """Reads one action file; its id is the file's name unless it says otherwise.

    Raises:
        ActionFormatError: names the line, the value and the cure.
    """
    try:
        size = path.stat().st_size
        if not path.is_file():
            # A pipe would never end.
            raise OSError(errno.EINVAL, "not a regular file")
        if size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, f"{size} bytes, but at most {MAX_FILE_BYTES} are allowed")
        source = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ActionFormatError(UserText("The file cannot be read: {reason}.", reason=reason)) from error
    except UnicodeDecodeError as error:
        raise ActionFormatError(UserText("The file is not UTF-8 text. Save it as UTF-8.")) from error
    return parse_action(source, path.stem)


def parse_action(source: str, default_id: str) -> Action:
    """Reads the text of an action file.

    Raises:
        ActionFormatError: names the line, the value and the cure.
    """
    try:
        table = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # the latter of arrays in arrays in arrays
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else max(1, len(source.splitlines()))
        raise ActionFormatError(UserText("This is not TOML: {reason}.", reason=str(error)), line) from error
    return _Reader(source, table).action(default_id)


class _Reader:
    """Takes an action out of a parsed table and knows where in the source each key stands."""

    def __init__(self, source: str, table: dict[str, Any]) -> None:
        self._lines = source.splitlines()
        self._table = table

    def action(self, default_id: str) -> Action:
        self._check_keys("", self._table, _TOP_KEYS)
        titles = self._texts("title")
        action_id = self._id(default_id)
        if "en" not in titles:
            titles = {"en": next(iter(titles.values()), action_id), **titles}
        return Action(
            id=action_id,
            titles=titles,
            descriptions=self._texts("description"),
            prompts=self._prompts(),
            sampling=self._sampling(),
            hotkey=self._hotkey("hotkey"),
            clipboard_hotkey=self._hotkey("clipboard_hotkey"),
            output=self._output(),
            replaces=bool(self._value("", self._table, "replaces", bool, False)),
            order=int(self._value("", self._table, "order", int, 100)),
            own_checks=self._checks(),
            own_plan=self._plan(),
            own_part_tokens=self._part_tokens(),
            speaks_target=self._choice("prompt_language", ("text", "target"), "text") == "target",
            pattern=self._pattern(),
        )

    def _id(self, default_id: str) -> str:
        value = str(self._value("", self._table, "id", str, default_id))
        if not _ID.fullmatch(value):
            text = 'The id is "{value}", but it must be 1 to 32 of a-z, 0-9, "_" and "-", a letter first.'
            self._fail("id", UserText(text, value=value))
        return value

    def _output(self) -> OutputKind:
        value = str(self._value("", self._table, "output", str, "text"))
        for kind in get_args(OutputKind):
            if value == kind:
                return cast(OutputKind, kind)
        text = UserText('output is "{value}", but it must be "text", "changes" or "todos".', value=value)
        self._fail("output", text)

    def _pattern(self) -> str:
        value = str(self._value("", self._table, "pattern", str, ""))
        try:
            re.compile(value)
        except re.error as error:
            self._fail("pattern", UserText("The pattern is no regular expression: {reason}.", reason=str(error)))
        return value

    def _choice(self, key: str, known: Sequence[str], default: str) -> str:
        value = str(self._value("", self._table, key, str, default))
        if value not in known:
            words = ", ".join(f'"{name}"' for name in known)
            text = UserText('{key} is "{value}", but it must be one of {known}.', key=key, value=value, known=words)
            self._fail(key, text)
        return value

    def _plan(self) -> PlanKind | None:
        value = self._choice("long", PLAN_KINDS, PLAN_KINDS[0])
        return cast(PlanKind, value) if "long" in self._table else None

    def _part_tokens(self) -> int | None:
        value = self._value("", self._table, "part_tokens", int, None)
        if value is not None and value < LEAST_PART_TOKENS:
            least = LEAST_PART_TOKENS
            text = UserText("part_tokens is {value}, but it must be at least {least}.", value=value, least=least)
            self._fail("part_tokens", text)
        return cast("int | None", value)

    def _checks(self) -> tuple[CheckName, ...] | None:
        values = self._value("", self._table, "checks", list, None)
        for value in values or ():
            if value not in CHECK_NAMES:
                text = UserText(
                    "checks holds {value}, but it may only hold {known}.",
                    value=repr(value),
                    known=", ".join(CHECK_NAMES),
                )
                self._fail("checks", text)
        return None if values is None else tuple(values)

    def _texts(self, name: str) -> dict[str, str]:
        """A text by language; a plain string counts as English."""
        if isinstance(self._table.get(name), str):
            return {"en": self._table[name]}
        table = self._value("", self._table, name, dict, {})
        self._check_keys(name, table, _LANGUAGE_KEYS)
        return {code: str(self._value(name, table, code, str, "")) for code in table}

    def _prompts(self) -> dict[str, Prompt]:
        tables = self._value("", self._table, "prompt", dict, {})
        self._check_keys("prompt", tables, _LANGUAGE_KEYS)
        if not tables:
            text = UserText(
                'There is no prompt. Add a table [prompt.en] with a line user = "{text}".', text="... {text}"
            )
            self._fail("", text)
        return {code: self._prompt(f"prompt.{code}", self._value("prompt", tables, code, dict, {})) for code in tables}

    def _prompt(self, where: str, table: dict[str, Any]) -> Prompt:
        self._check_keys(where, table, _PROMPT_KEYS)
        system = str(self._value(where, table, "system", str, "")).strip()
        user = str(self._value(where, table, "user", str, "")).strip()
        self._check_placeholders(f"{where}.system", system, _SYSTEM_PLACEHOLDERS)
        self._check_placeholders(f"{where}.user", user, _USER_PLACEHOLDERS)
        if "text" not in placeholders(user):
            text = UserText(
                "The user prompt of [{table}] has no {placeholder}, so the model would never see the text. Add it.",
                table=where,
                placeholder="{text}",
            )
            self._fail(f"{where}.user" if "user" in table else where, text)
        examples = self._examples(f"{where}.example", self._value(where, table, "example", list, []))
        return Prompt(
            system, user, examples, self._other_user(where, table, "part"), self._other_user(where, table, "join")
        )

    def _other_user(self, where: str, table: dict[str, Any], key: str) -> str:
        """What stands in place of `user` for a part, or for answers that are put together; "" where nothing does."""
        template = str(self._value(where, table, key, str, "")).strip()
        self._check_placeholders(f"{where}.{key}", template, _USER_PLACEHOLDERS)
        if template and "text" not in placeholders(template):
            text = UserText(
                "{where} has no {placeholder}, so the model would never see the text. Add it.",
                where=f"{where}.{key}",
                placeholder="{text}",
            )
            self._fail(f"{where}.{key}", text)
        return template

    def _examples(self, where: str, tables: list[Any]) -> tuple[Example, ...]:
        examples = []
        for table in tables:
            if not isinstance(table, dict):
                self._fail(where, UserText("Each example is a table of its own: [[{table}]].", table=where))
            self._check_keys(where, table, _EXAMPLE_KEYS)
            values = {key: str(self._value(where, table, key, str, "")).strip() for key in _EXAMPLE_KEYS}
            for key in ("text", "answer"):
                if not values[key]:
                    self._fail(
                        where, UserText('An example in [[{table}]] has no "{key}". Add it.', table=where, key=key)
                    )
            examples.append(Example(**values))
        return tuple(examples)

    def _check_placeholders(self, where: str, template: str, allowed: tuple[str, ...]) -> None:
        for name in sorted(placeholders(template) - set(allowed)):
            near = difflib.get_close_matches(name, allowed, n=1) or list(allowed[:1])
            text = UserText(
                "{where} holds the unknown placeholder {name}. Did you mean {near}?",
                where=where,
                name="{" + name + "}",
                near="{" + near[0] + "}",
            )
            self._fail(where, text)

    def _sampling(self) -> SamplingParams:
        table = self._value("", self._table, "sampling", dict, {})
        self._check_keys("sampling", table, _SAMPLING_KEYS)
        values = {key: self._value("sampling", table, key, _SAMPLING_KINDS.get(key, int), None) for key in table}
        if "stop" in values:
            if not all(isinstance(item, str) for item in values["stop"]):
                self._fail("sampling.stop", UserText("sampling.stop must hold texts only. Put each in quotes."))
            values["stop"] = tuple(values["stop"])
        try:
            return SamplingParams(**values)
        except InvalidRequestError as error:
            key = str(error).split(" ", 1)[0]
            self._fail(f"sampling.{key}", UserText("The table [sampling]: {reason}", reason=str(error)))

    def _hotkey(self, key: str) -> str:
        text = str(self._value("", self._table, key, str, ""))
        if not text:
            return ""
        try:
            return str(parse(text))
        except HotkeyFormatError as error:
            self._fail(key, error.text)

    def _value(self, where: str, table: dict[str, Any], key: str, kind: type, default: Any) -> Any:
        """The value of a key, checked for its type; TOML's whole numbers count as numbers, booleans do not."""
        if key not in table:
            return default
        value = table[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            path = f"{where}.{key}" if where else key
            text = UserText("{key} is {value}, but it must be {kind}.", key=path, value=repr(value), kind=_KINDS[kind])
            self._fail(path, text)
        return value

    def _check_keys(self, where: str, table: dict[str, Any], allowed: tuple[str, ...]) -> None:
        for key in table:
            if key in allowed:
                continue
            near = difflib.get_close_matches(key, allowed, n=1)
            if near:
                text = UserText('The key "{key}" is unknown here. Did you mean "{near}"?', key=key, near=near[0])
            else:
                text = UserText(
                    'The key "{key}" is unknown here. Known are: {known}.', key=key, known=", ".join(sorted(allowed))
                )
            self._fail(f"{where}.{key}" if where else key, text)

    def _fail(self, path: str, text: UserText) -> NoReturn:
        raise ActionFormatError(text, self._line_of(path))

    def _line_of(self, path: str) -> int:
        """The line of a dotted key: after its table's header where there is one, 0 where it is not found."""
        parts = path.split(".") if path else []
        current: list[str] = []
        for number, line in enumerate(self._lines, 1):
            header = re.match(r"\s*\[{1,2}\s*([\w.\"' -]+?)\s*\]", line)
            key = re.match(r"\s*([\w.\"'-]+)\s*=", line)
            if header:
                current = re.sub(r"[\"' ]", "", header[1]).split(".")
                if parts and current == parts:
                    return number
            elif key and parts:
                found = [*current, *re.sub(r"[\"']", "", key[1]).split(".")]
                if found == parts or (len(found) < len(parts) and found == parts[: len(found)]):
                    return number
        return 0
