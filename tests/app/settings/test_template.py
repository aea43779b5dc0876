"""The settings file that a user opens for the first time."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.settings.registry import setting_registry
from app.settings.settings import Settings, SettingsFileError
from app.settings.template import settings_template
from app.settings.toml_text import flatten
from app.translation import Translator

REGISTRY = setting_registry(ActionRegistry().all())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_sets_nothing_and_every_line_of_it_can_be_taken_over(language: str) -> None:
    text = settings_template(REGISTRY, Translator(language))
    assert tomllib.loads(text) == {}
    taken = [line.removeprefix("# ") for line in text.splitlines() if " = " in line]
    values = flatten(tomllib.loads("\n".join(taken)))
    assert values == {setting.key: setting.default for setting in REGISTRY}
    assert all(setting.help[language] in text.replace("\n# ", "\n") for setting in REGISTRY)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_0_means_is_said_once(language: str) -> None:
    text = settings_template(REGISTRY, Translator(language))
    zeros = [setting.zero[language] for setting in REGISTRY if setting.zero]
    assert [line.removeprefix("# 0: ") for line in text.splitlines() if line.startswith("# 0: ")] == zeros
    assert len(zeros) > 3
    assert [setting.key for setting in REGISTRY if re.search(r"(?<![.\d])0(?![.\d])", setting.help[language])] == []


def test_it_is_written_once_and_what_the_user_made_of_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "config" / "settings.toml"
    settings = Settings.load(path, REGISTRY)
    settings.create("# first\n")
    settings.create("# second\n")
    assert path.read_text(encoding="utf-8") == "# first\n"
    assert settings.problems == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file in the way", encoding="utf-8")
    settings = Settings.load(tmp_path / "config" / "settings.toml", REGISTRY)
    with pytest.raises(SettingsFileError, match=r"settings\.toml"):
        settings.create("")
