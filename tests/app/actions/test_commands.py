"""The one list of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.actions.commands import Command, CommandRegistry, UnknownCommandError, action_commands
from app.actions.registry import ActionRegistry


def command(command_id: str, ran: list[str] | None = None, group: str = "app", in_tray: bool = True) -> Command:
    log = ran if ran is not None else []
    return Command(command_id, command_id.title(), lambda: log.append(command_id), group=group, in_tray=in_tray)


def test_a_command_runs_by_its_id() -> None:
    ran: list[str] = []
    commands = CommandRegistry([command("app.show", ran), command("app.quit", ran)])
    commands.run("app.quit")
    commands.run("app.show")
    assert ran == ["app.quit", "app.show"]


def test_an_unknown_command_names_near_ones_or_all() -> None:
    commands = CommandRegistry([command("app.quit"), command("model.unload")])
    with pytest.raises(UnknownCommandError, match=r"Did you mean app\.quit\?"):
        commands.run("app.qiut")
    with pytest.raises(UnknownCommandError, match=r"Known are: app\.quit, model\.unload"):
        commands.run("xyz")


def test_an_id_is_used_once() -> None:
    with pytest.raises(ValueError, match="exists twice"):
        CommandRegistry([command("app.quit"), command("app.quit")])


def test_the_tray_lists_what_belongs_there_in_order() -> None:
    commands = CommandRegistry([command("b"), command("hidden", in_tray=False), command("a")])
    assert [each.id for each in commands.in_tray()] == ["b", "a"]
    assert [each.id for each in commands.all()] == ["b", "hidden", "a"]


def test_a_group_is_replaced_in_its_place_and_listeners_are_told() -> None:
    commands = CommandRegistry([command("first"), command("old", group="action"), command("last")])
    heard: list[int] = []
    remove = commands.listen(lambda: heard.append(len(commands.all())))
    commands.replace_group("action", [command("new.1", group="action"), command("new.2", group="action")])
    assert [each.id for each in commands.all()] == ["first", "new.1", "new.2", "last"]
    assert heard == [4]
    remove()
    remove()
    commands.replace_group("action", [])
    commands.replace_group("other", [command("more", group="other")])
    assert [each.id for each in commands.all()] == ["first", "last", "more"]
    assert heard == [4]


def test_a_group_that_would_clash_changes_nothing() -> None:
    commands = CommandRegistry([command("first"), command("old", group="action")])
    with pytest.raises(ValueError, match="exists twice"):
        commands.replace_group("action", [command("first", group="action")])
    assert [each.id for each in commands.all()] == ["first", "old"]


def test_every_action_has_a_command_for_the_selection_and_one_for_the_clipboard(tmp_path: Path) -> None:
    actions = ActionRegistry(user_dir=tmp_path).all()
    ran: list[tuple[str, str]] = []
    commands = CommandRegistry(
        action_commands(actions, "zh", lambda action, source: ran.append((action, source)), lambda title: f"{title}…")
    )
    assert len(commands.all()) == 2 * len(actions)
    translate = commands.get("action.translate.clipboard")
    assert translate.title == "翻译…"
    assert translate.hotkey_setting == "hotkey.translate.clipboard"
    assert commands.get("action.translate").hotkey_setting == "hotkey.translate"
    for each in ("action.summarize", "action.todos.clipboard", "action.translate"):
        commands.run(each)
    assert ran == [("summarize", "selection"), ("todos", "clipboard"), ("translate", "selection")]
