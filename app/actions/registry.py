"""The actions that the app has: its own and the user's, read again when a file is saved, added or removed."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from app.actions.action import Action, Prompt
from app.actions.action_file import ActionFormatError, read_action
from app.paths import assets_dir, user_actions_dir
from app.translation import UserText

__all__ = ["Action", "ActionProblem", "ActionRegistry", "Prompt", "UnknownActionError"]

_Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ActionProblem:
    """A user's file that is not in force, or only in its last good version.

    Attributes:
        message: what is wrong and the cure.
        line: where, counted from 1; 0 where the whole file is meant.
    """

    file: Path
    message: UserText
    line: int = 0

    @property
    def text(self) -> UserText:
        """File, line and message in one sentence."""
        if self.line:
            return UserText("{file}, line {line}: {message}", file=self.file.name, line=self.line, message=self.message)
        return UserText("{file}: {message}", file=self.file.name, message=self.message)

    def __str__(self) -> str:
        return str(self.text)


class UnknownActionError(LookupError):
    """There is no action of this id; the message names near ones."""

    def __init__(self, action_id: str, known: list[str]) -> None:
        near = difflib.get_close_matches(action_id, known, n=2)
        cure = f"Did you mean {' or '.join(near)}?" if near else f"Known are: {', '.join(sorted(known))}."
        super().__init__(f"There is no action {action_id!r}. {cure}")


class ActionRegistry:
    """All actions by id. UI thread only; reading a folder takes about a millisecond a file.

    A user's file with the id of a built-in action replaces it. A file that breaks while the app runs keeps its last
    good version; one that is broken at start leaves the built-in action in force. Either way `problems` names it.
    """

    def __init__(self, builtin_dir: Path | None = None, user_dir: Path | None = None) -> None:
        """Reads both folders; the user's may be missing.

        Raises:
            ActionFormatError: a built-in file is broken, which is a broken installation.
        """
        self._builtin_dir = builtin_dir or assets_dir("actions")
        self.user_dir = user_dir or user_actions_dir()
        self._builtin = [read_action(path) for path in sorted(self._builtin_dir.glob("*.toml"))]
        self._good: dict[Path, Action] = {}
        self._stamps: dict[Path, _Stamp] = {}
        self._actions: dict[str, Action] = {}
        self.problems: list[ActionProblem] = []
        self._read(self._look())

    def all(self) -> list[Action]:
        """Every action, in the order of the menus."""
        return sorted(self._actions.values(), key=lambda action: (action.order, action.id))

    def get(self, action_id: str) -> Action:
        """Raises UnknownActionError, which names near ids."""
        if action_id not in self._actions:
            raise UnknownActionError(action_id, list(self._actions))
        return self._actions[action_id]

    def reload_if_changed(self) -> bool:
        """Reads the user's folder again if a file was saved, added or removed; tells whether it was."""
        stamps = self._look()
        if stamps == self._stamps:
            return False
        self._read(stamps)
        return True

    def _look(self) -> dict[Path, _Stamp]:
        stamps: dict[Path, _Stamp] = {}
        try:
            found = sorted(self.user_dir.glob("*.toml"))
        except OSError:
            return stamps
        for path in found:
            try:
                state = path.stat()
            except OSError:  # removed between listing and looking, as editors do when they save
                continue
            stamps[path] = (state.st_mtime_ns, state.st_size)
        return stamps

    def _read(self, stamps: dict[Path, _Stamp]) -> None:
        problems: list[ActionProblem] = []
        kept = {path: action for path, action in self._good.items() if path in stamps}
        for path in stamps:
            try:
                kept[path] = read_action(path)
            except ActionFormatError as error:
                problems.append(ActionProblem(path, error.text, error.line))
        actions = {action.id: action for action in self._builtin}
        owners: dict[str, Path] = {}
        for path in sorted(kept):
            action = kept[path]
            if action.id in owners:
                problems.append(
                    ActionProblem(
                        path,
                        UserText(
                            'The id "{id}" is already used by {other}. Give this action another id.',
                            id=action.id,
                            other=owners[action.id].name,
                        ),
                    )
                )
                continue
            owners[action.id] = path
            actions[action.id] = action
        self._good, self._stamps, self._actions, self.problems = kept, stamps, actions, problems
