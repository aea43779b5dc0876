"""How the settings stand in their dialog: pages of groups of settings, made out of the registry.

A setting finds its place by its key; one that no page knows stands on the last page, so that none can be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.settings.settings import Setting
from app.translation import UserText


@dataclass(frozen=True, slots=True)
class Group:
    """Settings under one heading.

    Attributes:
        id: what dialogs add their own rows to, such as "start".
        settings: in the order of the registry; may be empty.
    """

    id: str
    title: UserText
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One entry of the list at the left.

    Attributes:
        icon: file name in assets/icons, without ".svg".
    """

    id: str
    title: UserText
    icon: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class _GroupPlan:
    id: str
    title: UserText
    keys: tuple[str, ...] = ()
    """Keys, or their beginnings where they end in a dot."""


_PAGES: tuple[tuple[str, UserText, tuple[_GroupPlan, ...]], ...] = (
    (
        "general",
        UserText("General"),
        (
            _GroupPlan("languages", UserText("Languages"), ("language.",)),
            _GroupPlan("appearance", UserText("Appearance"), ("appearance.", "popup.")),
            _GroupPlan("start", UserText("Start"), ("start.",)),
        ),
    ),
    (
        "hotkeys",
        UserText("Hotkeys"),
        (
            _GroupPlan("selection", UserText("On the selected text")),
            _GroupPlan("clipboard", UserText("On the clipboard's text")),
            _GroupPlan("windows", UserText("Windows"), ("hotkey.",)),
        ),
    ),
    (
        "model",
        UserText("Model"),
        (
            _GroupPlan("model", UserText("Model"), ("model.default", "model.context_tokens", "model.paths", "hub.")),
            _GroupPlan("memory", UserText("Memory"), ("model.",)),
            _GroupPlan("engine", UserText("Engine"), ("engine.",)),
        ),
    ),
    (
        "answers",
        UserText("Answers"),
        (
            _GroupPlan("answers", UserText("Answers"), ("answer.", "text.", "todos.", "rewrite.")),
            _GroupPlan("chat", UserText("Chat"), ("chat.",)),
        ),
    ),
    (
        "privacy",
        UserText("Privacy"),
        (
            _GroupPlan("history", UserText("History"), ("history.",)),
            _GroupPlan("clipboard_rules", UserText("Clipboard"), ("clipboard.",)),
            _GroupPlan("programs", UserText("Other programs"), ("privacy.",)),
        ),
    ),
    (
        "network",
        UserText("Network"),
        (
            _GroupPlan("remote", UserText("Remote engine"), ("remote.",)),
            _GroupPlan("gateway", UserText("Gateway for other programs"), ("gateway.",)),
        ),
    ),
    ("more", UserText("More"), (_GroupPlan("more", UserText("More"), ("",)),)),
    (
        "help",
        UserText("Help"),
        (_GroupPlan("about", UserText("About DeskInfer")), _GroupPlan("diagnostics", UserText("Diagnostics"))),
    ),
)


def pages_of(registry: Iterable[Setting], extra_groups: Sequence[str] = ()) -> list[Page]:
    """The pages that have something on them.

    Args:
        extra_groups: ids of groups that are wanted even without a setting.
    """
    settings = list(registry)
    places = {setting.key: _place(setting.key, {each.key for each in settings}) for setting in settings}
    pages = []
    for page_id, title, plans in _PAGES:
        groups = [
            Group(plan.id, plan.title, tuple(setting for setting in settings if places[setting.key] == plan.id))
            for plan in plans
        ]
        groups = [group for group in groups if group.settings or group.id in extra_groups]
        if groups:
            pages.append(Page(page_id, title, f"page-{page_id}", tuple(groups)))
    return pages


def _place(key: str, keys: set[str]) -> str:
    """The id of the group that a key belongs to: the longest beginning wins."""
    if key.startswith("hotkey."):
        if key.endswith(".clipboard"):
            return "clipboard"
        if f"{key}.clipboard" in keys:
            return "selection"
    best = max(
        ((len(start), plan.id) for _, _, plans in _PAGES for plan in plans for start in plan.keys if _fits(key, start)),
    )
    return best[1]


def _fits(key: str, start: str) -> bool:
    return key.startswith(start) if start == "" or start.endswith(".") else key == start
