"""Listeners that come and go while events are told."""

from __future__ import annotations

from collections.abc import Callable

from inference.listeners import Listeners


def test_listeners_come_and_go_while_they_are_told() -> None:
    listeners: Listeners[int] = Listeners()
    heard: list[str] = []
    removals: list[Callable[[], None]] = []

    def first(event: int) -> None:
        heard.append(f"first {event}")
        removals[1]()
        listeners.add(lambda event: heard.append(f"late {event}"))

    removals += [listeners.add(first), listeners.add(lambda event: heard.append(f"second {event}"))]
    for listener in listeners:
        listener(1)
    assert heard == ["first 1", "second 1"], "those that were there when it began"
    removals[0]()
    removals[0]()
    for listener in listeners:
        listener(2)
    assert heard[2:] == ["late 2"]


def test_one_that_was_added_twice_is_removed_once() -> None:
    listeners: Listeners[int] = Listeners()
    heard: list[int] = []
    remove, _ = listeners.add(heard.append), listeners.add(heard.append)
    remove()
    for listener in listeners:
        listener(1)
    assert heard == [1]
