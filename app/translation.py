"""User-visible text in the user's language: English source texts, translated by Qt Linguist .ts files, without Qt.

A text that leaves a pure module for the user is a `UserText`: its English source and the values of its placeholders, so
that str() is English (logs, the command line) and `Translator.tr` gives it in the language of the windows.
"""

from __future__ import annotations

import locale
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from app.paths import assets_dir

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
UI_LANGUAGES = ("en", "zh")
_SUFFIXES = {"zh": "_zh_CN.ts"}


def placeholders(text: str) -> set[str]:
    """The names in {braces} of a text."""
    return set(_PLACEHOLDER.findall(text))


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Fills {name} in one pass: a value that itself holds braces stays as it is, an unknown name too."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


class UserText:
    """An English source text with the values of its {placeholders}; values may be UserTexts themselves."""

    __slots__ = ("source", "values")

    def __init__(self, source: str, /, **values: object) -> None:
        self.source = source
        self.values = values

    def __str__(self) -> str:
        return _fill(self.source, {name: str(value) for name, value in self.values.items()})

    def __repr__(self) -> str:
        return f"UserText({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserText) and (self.source, self.values) == (other.source, other.values)

    def __hash__(self) -> int:
        return hash(self.source)


class CatalogError(Exception):
    """A .ts file cannot be read; the message names file and reason."""


def read_catalog(path: Path) -> dict[str, str]:
    """Reads a Qt Linguist file into {source: translation}; unfinished, obsolete and vanished messages are left out.

    Raises:
        CatalogError: the file is missing, not XML, or translates one source in two ways.
    """
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError) as error:
        raise CatalogError(f"{path}: {error}") from error
    catalog: dict[str, str] = {}
    for message in root.iter("message"):
        source, translation = message.findtext("source") or "", message.find("translation")
        if translation is None or translation.get("type") or not translation.text:
            continue
        if catalog.setdefault(source, translation.text) != translation.text:
            raise CatalogError(f"{path}: {source!r} has two translations. Keep one.")
    return catalog


def read_catalogs(language: str, directory: Path | None = None) -> dict[str, str]:
    """Reads all catalogs of a language, one for each room of the app, into one {source: translation}.

    Args:
        language: one that the windows speak; English has no catalog and gives {}.
        directory: where the .ts files lie; the app's own by default.

    Raises:
        CatalogError: there is none, one is broken, or two translate one source differently.
    """
    suffix = _SUFFIXES.get(language)
    if suffix is None:
        return {}
    folder = directory or assets_dir("translations")
    paths = sorted(folder.glob(f"*{suffix}"))
    if not paths:
        raise CatalogError(f"{folder / f'deskinfer{suffix}'}: the file is missing")
    merged: dict[str, str] = {}
    for path in paths:
        for source, translation in read_catalog(path).items():
            if merged.setdefault(source, translation) != translation:
                raise CatalogError(f"{path}: {source!r} has another translation elsewhere. Keep one.")
    return merged


def system_ui_language() -> str:
    """The language of the windows for "auto": "zh" where the system speaks Chinese, else "en"."""
    return ui_language_of(system_locale())


def system_locale() -> str:
    """The locale of the user, e.g. "zh_CN", "" where it is unknown. Reads the environment, then the system."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return os.environ[name]
    return locale.getlocale()[0] or ""


def ui_language_of(locale_name: str) -> str:
    """Maps "zh_CN.UTF-8", "Chinese (Simplified)_China", "de_DE" ... to a language that the windows speak."""
    return "zh" if locale_name.lower().startswith(("zh", "chinese")) else "en"


class Translator:
    """Turns English source texts into one language.

    Attributes:
        language: "en" or "zh".
    """

    def __init__(self, language: str, directory: Path | None = None) -> None:
        """Loads the catalog of a language.

        Args:
            language: "auto", "en" or "zh"; any other language speaks English.
            directory: where the .ts files lie; the app's own by default.

        Raises:
            CatalogError: the catalog of a language that the app has is missing or broken.
        """
        chosen = system_ui_language() if language == "auto" else language
        self.language = chosen if chosen in UI_LANGUAGES else "en"
        self._catalog = read_catalogs(self.language, directory)

    def tr(self, text: str | UserText, /, **values: object) -> str:
        """The text in this language, English where it is not translated; {name} is filled from `values`."""
        if isinstance(text, UserText):
            return self.tr(text.source, **text.values)
        translated = self._catalog.get(text, text)
        return _fill(translated, {name: self._value(value) for name, value in values.items()})

    def pick(self, texts: Mapping[str, str]) -> str:
        """Chooses from a text that is given in several languages {"en": ..., "zh": ...}."""
        return texts.get(self.language) or texts.get("en") or next(iter(texts.values()), "")

    def _value(self, value: object) -> str:
        return self.tr(value) if isinstance(value, UserText) else str(value)
