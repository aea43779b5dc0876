"""Values of settings as people read them: with their units, and in words where a number or a choice stands for more."""

from __future__ import annotations

from collections.abc import Callable

from app.language import Languages
from app.settings.settings import Setting, Value
from app.translation import Translator, UserText, system_locale, system_ui_language

_UNITS = {
    "tokens": UserText("tokens"),
    "pt": UserText("pt"),
    "minutes": UserText("minutes"),
    "days": UserText("days"),
    "characters": UserText("characters"),
}
# Choices that leave it to the system, and what the system says.
_AUTOMATIC = "auto"
_OF_SYSTEM: dict[str, Callable[[], str]] = {
    "language.ui": system_ui_language,
    "language.first": lambda: Languages.resolve(_AUTOMATIC, "en", system_locale()).first.code,
}


def unit_text(setting: Setting, translator: Translator) -> str:
    """The unit of a setting in the user's language, "" where it has none."""
    return translator.tr(_UNITS[setting.unit]) if setting.unit in _UNITS else setting.unit


def choice_text(setting: Setting, value: str, translator: Translator) -> str:
    """The label of a choice; where it leaves it to the system, with what that says: "As the system (English)"."""
    label = translator.pick(setting.choices.get(value, {"en": value}))
    if value != _AUTOMATIC or setting.key not in _OF_SYSTEM:
        return label
    found = translator.pick(setting.choices[_OF_SYSTEM[setting.key]()])
    return translator.tr("{choice} ({found})", choice=label, found=found)


def value_text(setting: Setting, value: Value, translator: Translator) -> str:
    """A value as the dialog writes it."""
    tr = translator.tr
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if setting.choices:
        return choice_text(setting, str(value), translator)
    if value == "":
        return tr("none") if setting.kind in ("hotkey", "programs") else tr("empty")
    if value == 0 and setting.zero:
        return translator.pick(setting.zero)
    unit = unit_text(setting, translator)
    return f"{value} {unit}" if unit else str(value)
