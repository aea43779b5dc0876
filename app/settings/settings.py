"""The settings of a user: a registry of what can be set, and a TOML file of what was.

The registry is the only place that knows a key; windows, command line and documentation are made from it.
"""

from __future__ import annotations

import datetime
import difflib
import errno
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from app.settings.toml_text import flatten, toml_text
from app.translation import UserText

Value = bool | int | float | str
Kind = Literal["flag", "integer", "number", "text", "choice", "hotkey", "model", "path", "programs"]
Listener = Callable[[str, Value], None]

_HEADER = (
    "Settings that differ from their defaults.\n"
    "The file is read again when you save it. The app writes it too, and then keeps values, but no other comments."
)
_KIND_TYPES: dict[Kind, type] = {
    "flag": bool,
    "integer": int,
    "number": float,
    "text": str,
    "choice": str,
    "hotkey": str,
    "model": str,
    "path": str,
    "programs": str,
}
_KIND_TEXTS: dict[Kind, UserText] = {
    "flag": UserText("true or false"),
    "integer": UserText("a whole number"),
    "number": UserText("a number"),
    "text": UserText("a text in quotes"),
    "choice": UserText("a text in quotes"),
    "hotkey": UserText("a hotkey in quotes"),
    "model": UserText("a text in quotes"),
    "path": UserText("a text in quotes"),
    "programs": UserText("a text in quotes"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set.

    Attributes:
        key: dotted; the part before the first dot is its table in the file and its page in the dialog.
        kind: decides the type, the check and the control in the dialog.
        default: in force where the file says nothing.
        title: by language, the label in the dialog.
        help: by language, one sentence: what it does and what its special values mean.
        zero: by language, what 0 means where it is no number like others; empty where it is one.
        unit: of a number, "" where it has none.
        minimum: smallest number allowed.
        maximum: largest number allowed.
        choices: of a choice: its values and their labels by language.
        check: a further check; returns the normal form of a value.
    """

    key: str
    kind: Kind
    default: Value
    title: Mapping[str, str]
    help: Mapping[str, str]
    zero: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    check: Callable[[str], str] | None = None

    def checked(self, value: object) -> Value:
        """The value in its normal form. Raises SettingError, which names value, limit and default."""
        kind = _KIND_TYPES[self.kind]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._error(value, _KIND_TEXTS[self.kind])
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._check_limits(value)
        if self.choices and value not in self.choices:
            raise self._error(value, UserText("one of {choices}", choices=", ".join(self.choices)))
        if isinstance(value, str) and self.check is not None and value != self.default:
            try:
                return self.check(value)
            except ValueError as error:
                reason = getattr(error, "text", None) or UserText("{reason}", reason=str(error))
                raise SettingError(self.key, reason) from error
        assert isinstance(value, (bool, int, float, str))
        return value

    def _check_limits(self, value: float) -> None:
        too_small = self.minimum is not None and value < self.minimum
        too_large = self.maximum is not None and value > self.maximum
        if too_small or too_large or value != value:
            limits = UserText("between {minimum} and {maximum}", minimum=self.minimum, maximum=self.maximum)
            raise self._error(value, limits)

    def _error(self, value: object, limit: UserText) -> SettingError:
        text = UserText(
            "{key} is {value}, but it must be {limit}. The default is {default}.",
            key=self.key,
            value=_shown(value),
            limit=limit,
            default=_shown(self.default),
        )
        return SettingError(self.key, text)


def program_names(text: str) -> tuple[str, ...]:
    """The programs that a setting of kind "programs" names, as `app.desktop.protocols.Window.program` has them."""
    names = (name.strip().lower().removesuffix(".exe") for name in text.replace("，", ",").split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


class SettingError(ValueError):
    """A value does not fit its setting, or there is no such setting.

    Attributes:
        key: of the setting.
        text: value, limit and cure, for the user.
    """

    def __init__(self, key: str, text: UserText) -> None:
        self.key = key
        self.text = text
        super().__init__(str(text))


class SettingsFileError(Exception):
    """The settings cannot be written; the message names file, reason and cure.

    Attributes:
        text: the message, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


class Settings:
    """Values by key, with their defaults. UI thread only; listeners run in `set`.

    Attributes:
        path: of the file.
        registry: every setting by key.
        problems: what was wrong with the file: each value named, defaulted and, if its key is unknown, kept.
    """

    def __init__(self, path: Path, registry: Iterable[Setting]) -> None:
        """Starts with the defaults; `Settings.load` reads the file as well."""
        self.path = path
        self.registry = {setting.key: setting for setting in registry}
        self.problems: list[UserText] = []
        self._values: dict[str, Value] = {}
        self._overrides: dict[str, Value] = {}
        self._raw: dict[str, Any] = {}
        self._touched: set[str] = set()
        self._file_problems: list[UserText] = []
        self._stamp: tuple[int, int] | None = None
        self._listeners: list[tuple[str, Listener]] = []

    @classmethod
    def load(cls, path: Path, registry: Iterable[Setting]) -> Settings:
        """Reads a file, which may be missing. Never fails: a broken file is set aside and named in `problems`."""
        settings = cls(path, registry)
        settings._read()
        return settings

    def get(self, key: str) -> Value:
        """The value in force. Raises SettingError for an unknown key."""
        return self._overrides.get(key, self._values.get(key, self._setting(key).default))

    def text(self, key: str) -> str:
        """The value of a text, choice or hotkey."""
        value = self.get(key)
        assert isinstance(value, str), key
        return value

    def integer(self, key: str) -> int:
        """The value of an integer."""
        value = self.get(key)
        assert isinstance(value, int), key
        return value

    def flag(self, key: str) -> bool:
        """The value of a flag."""
        value = self.get(key)
        assert isinstance(value, bool), key
        return value

    def set(self, key: str, value: Value) -> None:
        """Changes a value and tells the listeners; `save` writes it. Raises SettingError."""
        setting = self._setting(key)
        checked = setting.checked(value)
        changed = checked != self.get(key)
        self._overrides.pop(key, None)
        self._touched.add(key)
        self._raw.pop(key, None)
        if checked == setting.default:
            self._values.pop(key, None)
        else:
            self._values[key] = checked
        if changed:
            self._tell(key)

    def override(self, key: str, value: Value) -> None:
        """Has a value in force that is never saved, as of the command line, until `set` changes it."""
        self._overrides[key] = self._setting(key).checked(value)

    def reset(self, key: str) -> None:
        """Back to the default."""
        self.set(key, self._setting(key).default)

    def listen(self, prefix: str, listener: Listener) -> Callable[[], None]:
        """Calls listener(key, value) when a key changes that is `prefix` or below it; the result removes it."""
        entry = (prefix, listener)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry) if entry in self._listeners else None

    def set_registry(self, registry: Iterable[Setting]) -> None:
        """Changes what can be set, e.g. after a change of the actions; values of new keys come out of the file's."""
        self.registry = {setting.key: setting for setting in registry}
        self._take({**self._raw, **self._values})

    def reload_if_changed(self) -> bool:
        """Reads the file again if another program saved it; what was set but not saved stays. Tells listeners."""
        if _stamp_of(self.path) == self._stamp:
            return False
        before = {key: self.get(key) for key in self.registry}
        own = {key: self.get(key) for key in self._touched if key in self.registry}
        self._read()
        for key, value in own.items():
            self._raw.pop(key, None)
            self._values[key] = value
        for key, value in before.items():
            if self.get(key) != value:
                self._tell(key)
        return True

    def create(self, template: str) -> None:
        """Writes the file unless there is one. Raises SettingsFileError."""
        if not self.path.exists():
            self._write(template)

    def save(self) -> None:
        """Writes what differs from the defaults and what we do not know, by an atomic rename.

        What another program saved meanwhile is kept, except for the keys that were set here.

        Raises:
            SettingsFileError: the file cannot be written; nothing of the old one is lost.
        """
        self.reload_if_changed()
        values = {key: value for key, value in self._values.items() if value != self.registry[key].default}
        self._write(toml_text({**self._raw, **values}, _HEADER))
        self._stamp = _stamp_of(self.path)
        self._touched.clear()
        self.problems = [problem for problem in self.problems if problem not in self._file_problems]
        self._file_problems = []

    def _write(self, text: str) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _write_atomically(self.path, text)
        except OSError as error:
            raise SettingsFileError(
                UserText(
                    "The settings cannot be saved to {file}: {reason}. Free the disk, or correct the folder's rights.",
                    file=str(self.path),
                    reason=error.strerror or str(error),
                )
            ) from error

    def _setting(self, key: str) -> Setting:
        setting = self.registry.get(key)
        if setting is None:
            raise SettingError(key, _unknown(key, self.registry))
        return setting

    def _tell(self, key: str) -> None:
        value = self.get(key)
        for prefix, listener in list(self._listeners):
            if prefix == "" or key == prefix or key.startswith(prefix + "."):
                listener(key, value)

    def _read(self) -> None:
        self._file_problems = []
        self._stamp = _stamp_of(self.path)
        table: dict[str, Any] = {}
        try:
            if self.path.exists() and not self.path.is_file():
                # A pipe or a device would never end.
                raise OSError(errno.EINVAL, "not a regular file")
            table = tomllib.loads(self.path.read_bytes().decode("utf-8-sig"))
        except FileNotFoundError:
            pass
        except OSError as error:
            text = UserText(
                "The settings in {file} cannot be read: {reason}. The defaults are in force.",
                file=str(self.path),
                reason=error.strerror or str(error),
            )
            self._file_problems.append(text)
        except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or arrays in arrays in arrays
            self._file_problems.append(self._set_aside(str(error)))
            self._stamp = _stamp_of(self.path)  # that it has gone is no news, which would end what is told of it
        self._take(flatten(table))

    def _take(self, found: Mapping[str, Any]) -> None:
        """Sorts values into good ones and the rest, which is named, defaulted, and kept for `save`."""
        self._values, self._raw = {}, {}
        problems = list(self._file_problems)
        for key, value in found.items():
            setting = self.registry.get(key)
            try:
                if setting is None:
                    raise SettingError(key, _unknown(key, self.registry))
                self._values[key] = setting.checked(value)
            except SettingError as error:
                self._raw[key] = value
                problems.append(error.text)
        self.problems = problems

    def _set_aside(self, reason: str) -> UserText:
        day = datetime.datetime.now(tz=datetime.UTC).astimezone().date().isoformat()
        aside = self.path.with_name(f"{self.path.stem}.broken-{day}{self.path.suffix}")
        count = 1
        while aside.exists():
            count += 1
            aside = self.path.with_name(f"{self.path.stem}.broken-{day}-{count}{self.path.suffix}")
        try:
            os.replace(self.path, aside)
        except OSError as error:
            return UserText(
                "The settings in {file} are broken ({reason}) and cannot be set aside: {problem}. "
                "The defaults are in force.",
                file=str(self.path),
                reason=reason,
                problem=error.strerror or str(error),
            )
        return UserText(
            "The settings in {file} are broken ({reason}). They were set aside as {aside}; the defaults are in force.",
            file=str(self.path),
            reason=reason,
            aside=aside.name,
        )


def _unknown(key: str, registry: Mapping[str, Setting]) -> UserText:
    near = difflib.get_close_matches(key, registry, n=1)
    if near:
        return UserText('There is no setting "{key}". Did you mean "{near}"?', key=key, near=near[0])
    return UserText('There is no setting "{key}". Its value is kept, but nothing reads it.', key=key)


def _stamp_of(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _write_atomically(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
