"""What the user is told where no text could be read, or none be put back. Holds no widget."""

from __future__ import annotations

from app.capture.capture import CaptureResult, Failed, LeftAlone, NothingSelected, Secret, Selected, TextOrigin
from app.capture.paste_back import PasteResult
from app.qt.look.notice import Notice, preview
from app.translation import Translator


def capture_notice(result: CaptureResult, hides_secret: bool, translator: Translator) -> Notice:
    """What came instead of a selection.

    Args:
        hides_secret: what lies on the clipboard is marked as a password.
    """
    tr = translator.tr
    if isinstance(result, NothingSelected):
        return _nothing_selected(result, hides_secret, translator)
    if isinstance(result, Secret):
        text = tr("Its program marked this text as a password, so it is not read and not given to the model.")
        return Notice(tr("This is a password"), text)
    if isinstance(result, LeftAlone):
        text = tr(
            "Your settings say that nothing is read out of {program}. Copy the text, or change that under Privacy.",
            program=result.program,
        )
        return Notice(tr("This program is left alone"), text)
    assert isinstance(result, Failed)
    return Notice(tr("The selection could not be read"), tr(result.reason.value), is_error=True)


def clipboard_empty_notice(translator: Translator) -> Notice:
    """The clipboard was asked for and holds no text."""
    tr = translator.tr
    return Notice(tr("The clipboard holds no text"), tr("Copy a text, then run the action again."))


def _nothing_selected(result: NothingSelected, hides_secret: bool, translator: Translator) -> Notice:
    tr = translator.tr
    heading = tr("Nothing is selected")
    if result.offer is not None:
        texts = {
            TextOrigin.LAST_SELECTION: tr(
                "The text below was last selected in this program. It has not been given to the model."
            ),
            TextOrigin.CLIPBOARD: tr("The clipboard holds the text below. It has not been given to the model."),
        }
        quote = preview(result.offer.text)
        return Notice(heading, texts[result.offer.origin], quote, tr("Use this text"))
    if hides_secret:
        return Notice(heading, tr("What lies on the clipboard is marked as a password and is not read."))
    if result.window is not None and result.window.is_terminal:
        return Notice(heading, tr("Mark text in the terminal with the mouse and press the hotkey again."))
    return Notice(heading, tr("Select a text and press the hotkey again."))


def replaceable(selected: Selected, is_left_alone: bool, translator: Translator) -> tuple[bool, str]:
    """Whether an answer may be pasted into the place of a text, and the tool tip that says so or why not."""
    tr = translator.tr
    if selected.window is None:
        return False, tr("The text came from no other window, so there is nothing to replace.")
    if is_left_alone:
        return False, tr("No keys are sent to this program, as your settings say; copy the answer instead.")
    if selected.window.is_terminal:
        return False, tr("Terminals cannot be pasted into safely; copy the answer instead.")
    if selected.origin is not TextOrigin.SELECTION:
        return True, tr("Insert the answer where the cursor stands ({keys})", keys="Ctrl+Return")
    return True, tr("Put the answer in the place of the selection ({keys})", keys="Ctrl+Return")


def paste_notice(result: PasteResult, translator: Translator) -> Notice:
    """Why an answer was not pasted."""
    tr = translator.tr
    reasons = {
        PasteResult.NOT_FOCUSED: tr("The window that the text came from is no longer there or did not come back."),
        PasteResult.KEYS_HELD: tr("Keys were held down, so nothing was sent."),
        PasteResult.NOT_FETCHED: tr("The other program did not take the text."),
    }
    text = f"{reasons[result]} {tr('The answer is still here: copy it, or try again.')}"
    return Notice(tr("The text was not replaced"), text, is_error=True)
