"""The settings file as a user first sees it: every setting with its help and its default, all commented out.

A 0 that the dialog shows in words stands in the file as a 0, so there the words are said beside the help.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.settings.settings import Setting
from app.settings.toml_text import toml_line
from app.translation import Translator


def settings_template(settings: Iterable[Setting], translator: Translator) -> str:
    """TOML text that sets nothing yet."""
    head = translator.tr("Remove the # in front of a line to change it. The file is read again when you save it.")
    blocks = [head]
    for setting in settings:
        lines = [translator.pick(setting.help)]
        if setting.zero:
            lines.append(f"0: {translator.pick(setting.zero)}")
        blocks.append("\n".join([*lines, toml_line(setting.key, setting.default)]))
    return "\n\n".join("\n".join(f"# {line}" for line in block.splitlines()) for block in blocks) + "\n"
