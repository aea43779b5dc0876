"""Tells when files of a folder were saved, added or removed; waits until an editor has finished saving."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

SETTLE_MS = 200


class FileWatch(QObject):
    """Watches folders and the files in them. Folders may appear later: their nearest parent is watched for that.

    Signals:
        changed: something was saved, added or removed; at most once in SETTLE_MS.
    """

    changed = Signal()

    def __init__(self, folders: Sequence[Path], pattern: str = "*.toml", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folders = folders
        self._pattern = pattern
        self._watcher = QFileSystemWatcher(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._on_settled)
        self._watcher.fileChanged.connect(self._timer.start)
        self._watcher.directoryChanged.connect(self._timer.start)
        self._watch()

    def _on_settled(self) -> None:
        self._watch()
        self.changed.emit()

    def _watch(self) -> None:
        """Editors replace files when they save, which ends the watch on them: take up what is there now."""
        wanted = set()
        for folder in self._folders:
            wanted.add(str(next(path for path in (folder, *folder.parents) if path.is_dir())))
            wanted.update(str(path) for path in folder.glob(self._pattern))
        watched = {*self._watcher.files(), *self._watcher.directories()}
        if watched - wanted:
            self._watcher.removePaths(sorted(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(sorted(wanted - watched))
