"""Every setting has a place in the dialog, once."""

from pathlib import Path

from app.actions.registry import ActionRegistry
from app.paths import assets_dir
from app.settings.pages import pages_of
from app.settings.registry import setting_registry
from app.settings.settings import Setting

REGISTRY = setting_registry(ActionRegistry(user_dir=Path("no-such-folder")).all())


def test_every_setting_stands_on_one_page() -> None:
    found = [s.key for page in pages_of(REGISTRY) for group in page.groups for s in group.settings]
    assert sorted(found) == sorted(setting.key for setting in REGISTRY)


def test_every_page_has_its_icon() -> None:
    for page in pages_of(REGISTRY, ("diagnostics", "start", "remote")):
        assert (assets_dir("icons") / f"{page.icon}.svg").is_file()


def test_hotkeys_of_actions_stand_by_what_they_work_on() -> None:
    groups = {group.id: [s.key for s in group.settings] for page in pages_of(REGISTRY) for group in page.groups}
    assert "hotkey.summarize" in groups["selection"]
    assert "hotkey.summarize.clipboard" in groups["clipboard"]
    assert "hotkey.popup" in groups["windows"]
    assert "model.context_tokens" in groups["model"]


def test_a_setting_that_no_page_knows_is_not_lost() -> None:
    text = {"en": "A", "zh": "A"}
    pages = pages_of([*REGISTRY, Setting("brand.new", "flag", True, text, text)])
    assert [s.key for s in next(page for page in pages if page.id == "more").groups[0].settings] == ["brand.new"]


def test_groups_without_settings_come_on_demand() -> None:
    assert "help" not in [page.id for page in pages_of(REGISTRY)]
    assert "help" in [page.id for page in pages_of(REGISTRY, ("diagnostics",))]
