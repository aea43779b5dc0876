"""Settings: the registry, the file, and everything that can be wrong with it."""

from __future__ import annotations

import datetime
import os
import sys
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.settings.registry import setting_registry
from app.settings.settings import Setting, SettingError, Settings, SettingsFileError, Value, program_names
from app.settings.template import settings_template
from app.translation import Translator

NONE = Path("no-such-folder")
ACTIONS = ActionRegistry(user_dir=NONE).all()
REGISTRY = setting_registry(ACTIONS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deskinfer" / "settings.toml"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def load(path: Path) -> Settings:
    return Settings.load(path, REGISTRY)


def messages(settings: Settings) -> list[str]:
    return [str(problem) for problem in settings.problems]


def test_every_setting_is_complete_and_its_default_fits() -> None:
    assert len({setting.key for setting in REGISTRY}) == len(REGISTRY)
    for setting in REGISTRY:
        assert set(setting.title) == set(setting.help) == {"en", "zh"}, setting.key
        assert set(setting.zero) in (set(), {"en", "zh"}), setting.key
        assert all([*setting.title.values(), *setting.help.values()]), setting.key
        assert setting.checked(setting.default) == setting.default, setting.key
        assert all(set(labels) == {"en", "zh"} for labels in setting.choices.values()), setting.key
        assert (setting.kind == "choice") == bool(setting.choices), setting.key


def test_every_action_has_two_hotkey_settings_with_its_own_defaults() -> None:
    settings = Settings(NONE, REGISTRY)
    for action in ACTIONS:
        assert settings.text(f"hotkey.{action.id}") == action.hotkey
        assert settings.text(f"hotkey.{action.id}.clipboard") == action.clipboard_hotkey


def test_without_a_file_the_defaults_are_in_force(path: Path) -> None:
    settings = load(path)
    assert settings.text("language.ui") == "auto"
    assert settings.flag("clipboard.restore") is True
    assert settings.integer("model.context_tokens") == 4096
    assert settings.problems == []
    assert not path.exists()


def test_what_is_set_is_saved_and_read_again(path: Path) -> None:
    settings = load(path)
    values: dict[str, Value] = {
        "language.ui": "zh",
        "model.default": 'C:\\models\\"my" 模型.gguf',
        "model.context_tokens": 8192,
        "clipboard.restore": False,
        "hotkey.summarize": "Ctrl+Shift+F9",
        "hotkey.summarize.clipboard": "",
    }
    for key, value in values.items():
        settings.set(key, value)
    settings.save()
    again = load(path)
    assert {key: again.get(key) for key in values} == values
    assert again.problems == []


def test_defaults_are_not_written(path: Path) -> None:
    settings = load(path)
    settings.set("language.ui", "zh")
    settings.set("clipboard.restore", False)
    settings.reset("clipboard.restore")
    settings.save()
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert lines == ["[language]", 'ui = "zh"']


def test_hotkeys_are_kept_in_their_normal_form(path: Path) -> None:
    settings = load(path)
    settings.set("hotkey.translate", "shift + strg+f7")
    assert settings.get("hotkey.translate") == "Ctrl+Shift+F7"
    settings.set("hotkey.translate", "  ")
    assert settings.get("hotkey.translate") == ""


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("language.ui", "de", "one of auto, en, zh"),
        ("language.ui", 1, "a text in quotes"),
        ("model.context_tokens", 100, r"between 512 and 131072\. The default is 4096"),
        ("model.context_tokens", 1.5, "a whole number"),
        ("model.context_tokens", True, "a whole number"),
        ("engine.threads", -1, "between 0 and 256"),
        ("clipboard.restore", 1, r"true or false\. The default is true"),
        ("hotkey.summarize", "a", "Add Ctrl, Alt or Meta"),
        ("hub.endpoint", "example", "Write it like https://"),
        ("hub.endpoint", "file:///etc", "Write it like https://"),
        ("modle.default", "x", 'Did you mean "model.default"'),
        ("zzz", "x", 'no setting "zzz"'),
    ],
)
def test_a_wrong_value_is_refused_with_value_limit_and_default(
    path: Path, key: str, value: Value, message: str
) -> None:
    settings = load(path)
    with pytest.raises(SettingError, match=message) as caught:
        settings.set(key, value)
    assert caught.value.key == key


def test_an_endpoint_loses_its_last_slash(path: Path) -> None:
    settings = load(path)
    settings.set("hub.endpoint", " https://mirror.example.org/hub/ ")
    assert settings.get("hub.endpoint") == "https://mirror.example.org/hub"


def test_a_number_takes_whole_numbers_and_refuses_not_a_number() -> None:
    setting = Setting("x.y", "number", 1.0, {"en": "", "zh": ""}, {"en": "", "zh": ""}, minimum=0, maximum=2)
    assert setting.checked(2) == 2.0
    with pytest.raises(SettingError, match="between 0 and 2"):
        setting.checked(float("nan"))


def test_an_unknown_key_cannot_be_read(path: Path) -> None:
    with pytest.raises(SettingError, match=r'Did you mean "language\.ui"'):
        load(path).get("language.uo")


def test_wrong_and_unknown_values_in_the_file_are_named_defaulted_and_kept(path: Path) -> None:
    source = """
    top = 2026-11-29
    [language]
    ui = "klingon"
    frist = "zh"
    second = "ja"
    [model]
    context_tokens = "many"
    [hotkey]
    "gone.clipboard" = "Ctrl+Shift+F9"
    [extra.deep]
    list = [1, "a", {b = true}]
    """
    settings = load(write(path, source))
    assert settings.text("language.ui") == "auto"
    assert settings.integer("model.context_tokens") == 4096
    assert settings.text("language.second") == "ja"
    found = messages(settings)
    assert len(found) == 6
    for needle in (
        "klingon",
        'Did you mean "language.first"',
        "'many'",
        "hotkey.gone.clipboard",
        "extra.deep.list",
        '"top"',
    ):
        assert sum(needle in message for message in found) == 1, needle
    settings.set("language.second", "fr")
    settings.save()
    again = load(path)
    assert messages(again) != []
    assert sorted(messages(again)) == sorted(found)
    assert again.text("language.second") == "fr"
    again.set("language.ui", "en")
    assert load(path).text("language.ui") == "auto"
    again.save()
    assert load(path).text("language.ui") == "en"
    assert len(messages(load(path))) == 5


@pytest.mark.parametrize(
    "broken", ["[language\nui = 1", "= 5", "a = 1\na = 2", b"\xff\xfe\x00", "x" * 10_000, "a = " + "[" * 9999]
)
def test_a_broken_file_is_set_aside_and_named_and_nothing_stops(path: Path, broken: str | bytes) -> None:
    write(path, broken)
    settings = load(path)
    day = datetime.datetime.now(tz=datetime.UTC).astimezone().date().isoformat()
    aside = path.with_name(f"settings.broken-{day}.toml")
    assert aside.read_bytes() == (broken.encode() if isinstance(broken, str) else broken)
    assert not path.exists()
    assert aside.name in messages(settings)[0]
    assert settings.text("language.ui") == "auto"
    settings.set("language.ui", "zh")
    settings.save()
    assert load(path).text("language.ui") == "zh"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_the_file_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    assert "cannot be read: not a regular file" in messages(load(path))[0]


def test_a_second_broken_file_of_a_day_does_not_overwrite_the_first(path: Path) -> None:
    for text in ("first [", "second [", "third ["):
        load(write(path, text))
    assert sorted(file.read_text() for file in path.parent.glob("settings.broken-*")) == [
        "first [",
        "second [",
        "third [",
    ]


def test_a_byte_order_mark_is_no_problem(path: Path) -> None:
    settings = load(write(path, b'\xef\xbb\xbf[language]\nui = "zh"\n'))
    assert settings.problems == []
    assert settings.text("language.ui") == "zh"


def test_a_folder_in_place_of_the_file_is_named_and_cannot_be_saved(path: Path) -> None:
    path.mkdir(parents=True)
    settings = load(path)
    assert "cannot be read" in messages(settings)[0]
    settings.set("language.ui", "zh")
    with pytest.raises(SettingsFileError, match="cannot be saved"):
        settings.save()
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="rights of folders are POSIX")
def test_an_interrupted_save_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(write(path, '[language]\nui = "zh"\n'))
    settings.set("language.second", "ja")

    def fail(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(SettingsFileError, match="No space left"):
        settings.save()
    monkeypatch.undo()
    assert path.read_text() == '[language]\nui = "zh"\n'
    assert list(path.parent.iterdir()) == [path]
    settings.save()
    assert load(path).text("language.second") == "ja"


def test_listeners_hear_their_keys_once_per_change(path: Path) -> None:
    settings = load(path)
    heard: list[tuple[str, str, Value]] = []
    settings.listen("", lambda key, value: heard.append(("all", key, value)))
    remove = settings.listen("language", lambda key, value: heard.append(("language", key, value)))
    settings.listen("hotkey.summarize", lambda key, value: heard.append(("one", key, value)))
    settings.set("language.ui", "zh")
    settings.set("language.ui", "zh")
    settings.set("hotkey.summarize.clipboard", "")
    assert heard == [
        ("all", "language.ui", "zh"),
        ("language", "language.ui", "zh"),
        ("all", "hotkey.summarize.clipboard", ""),
        ("one", "hotkey.summarize.clipboard", ""),
    ]
    remove()
    remove()
    settings.reset("language.ui")
    assert heard[-1] == ("all", "language.ui", "auto")


def test_what_another_program_saved_is_taken_over_and_what_we_set_stays(path: Path) -> None:
    settings = load(write(path, '[language]\nui = "en"\n'))
    heard: list[str] = []
    settings.listen("", lambda key, value: heard.append(key))
    settings.set("language.second", "ja")
    heard.clear()
    write(path, '[language]\nui = "zh"\nsecond = "fr"\nfirst = "de"\n')
    settings.save()
    assert heard == ["language.ui", "language.first"]
    again = load(path)
    assert [again.text(f"language.{key}") for key in ("ui", "first", "second")] == ["zh", "de", "ja"]
    assert not settings.reload_if_changed()


def test_new_actions_take_their_values_out_of_the_file(path: Path, tmp_path: Path) -> None:
    settings = load(write(path, '[hotkey]\nshout = "Ctrl+Shift+F9"\n'))
    assert "hotkey.shout" in messages(settings)[0]
    (tmp_path / "shout.toml").write_text('[prompt.en]\nuser = "{text}"\n')
    settings.set_registry(setting_registry(ActionRegistry(user_dir=tmp_path).all()))
    assert settings.problems == []
    assert settings.text("hotkey.shout") == "Ctrl+Shift+F9"
    settings.set_registry(REGISTRY)
    settings.save()
    assert 'shout = "Ctrl+Shift+F9"' in path.read_text()


def test_no_two_hotkeys_are_the_same_by_default() -> None:
    hotkeys = [str(s.default) for s in REGISTRY if s.kind == "hotkey" and s.default]
    assert sorted(hotkeys) == sorted(set(hotkeys))


def test_programs_are_named_as_the_desktop_names_them() -> None:
    assert program_names("KeePassXC.exe,  1password， KeePassXC ,,") == ("keepassxc", "1password")
    settings = Settings(NONE, REGISTRY)
    settings.set("privacy.leave_alone", " KeePassXC.exe,1password")
    assert settings.text("privacy.leave_alone") == "keepassxc, 1password"


def test_the_head_of_the_file_says_what_becomes_of_an_edit(path: Path) -> None:
    settings = load(path)
    settings.set("popup.font_size", 14)
    settings.save()
    saved = path.read_text(encoding="utf-8")
    assert "# The file is read again when you save it." in saved
    assert "The file is read again when you save it." in settings_template(REGISTRY, Translator("en")), "the same words"
    write(path, saved.replace("14", "15") + "# mine\n[popup_of_a_later_version]\nsize = 3\n")
    assert settings.reload_if_changed()
    assert settings.get("popup.font_size") == 15
    settings.set("popup.font_size", 16)
    settings.save()
    text = path.read_text(encoding="utf-8")
    assert ("size = 3" in text, "mine" in text) == (True, False), "values stay, other comments do not"


def test_a_value_of_the_command_line_holds_until_another_is_chosen_and_is_never_saved(path: Path) -> None:
    settings = load(write(path, '[model]\ndefault = "saved"\n'))
    settings.override("model.default", "given")
    heard: list[Value] = []
    settings.listen("model.default", lambda _key, value: heard.append(value))
    settings.save()
    assert settings.text("model.default") == "given"
    assert load(path).text("model.default") == "saved"
    settings.set("model.default", "saved")
    assert settings.text("model.default") == "saved"
    assert heard == ["saved"]


def test_what_was_wrong_with_a_file_is_told_until_there_is_a_good_one(path: Path) -> None:
    settings = load(write(path, "popup.font_size = 12"))
    write(path, "[[[ no TOML at all")
    assert settings.reload_if_changed()
    assert len(settings.problems) == 1
    assert not settings.reload_if_changed()
    assert len(settings.problems) == 1
    settings.set("popup.font_size", 14)
    settings.save()
    assert settings.problems == []
