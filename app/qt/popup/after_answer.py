"""What follows an answer by itself, where the user has chosen it: it is copied, or takes the selection's place."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.actions.answer_review import Review
from app.capture.capture import TextOrigin
from app.desktop.protocols import Desktop
from app.qt.popup.controller import AnswerController, Job
from app.qt.popup.popup import Popup
from app.settings.settings import Settings

AFTER_SETTING = "answer.after"


class AfterAnswer(QObject):
    """Copies or replaces once an answer is complete and has been looked through. UI thread only."""

    def __init__(
        self,
        settings: Settings,
        controller: AnswerController,
        popup: Popup,
        desktop: Desktop,
        parent: QObject | None = None,
        only_copies: bool = False,
    ) -> None:
        """Waits for answers.

        Args:
            only_copies: nothing can be pasted into other programs here, so every answer is put on the clipboard.
        """
        super().__init__(parent)
        self._settings, self._controller, self._desktop = settings, controller, desktop
        self._only_copies = only_copies
        popup.pages.reviewed.connect(self._on_reviewed)

    def _on_reviewed(self, review: Review) -> None:
        after = self._settings.text(AFTER_SETTING)
        if after == "copy" or self._only_copies:
            self._controller.copy()
        elif after == "replace" and self._is_safe(self._controller.job, review):
            self._controller.replace()

    def _is_safe(self, job: Job | None, review: Review) -> bool:
        """Nothing was flagged or left out, and the selection is still what the user works on."""
        return (
            job is not None
            and job.action.replaces
            and job.selected.origin is TextOrigin.SELECTION
            and job.selected.window is not None
            and job.selected.window == self._desktop.foreground_window()
            and self._controller.can_replace(job.selected)
            and not review.losses
            and review.payload.is_whole
        )
