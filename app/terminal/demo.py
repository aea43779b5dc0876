"""The main job where there is no display: every built-in action on a sample text, streamed to the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from app.actions.answer_review import Subject
from app.actions.registry import ActionRegistry
from app.engine_client import EngineClient
from app.language import LANGUAGES, Languages
from app.paths import assets_dir
from app.terminal.answer_printer import AnswerPrinter, engine_events, shown_as

# Actions on the English text, and those that show best on the Chinese one.
_SAMPLES = (("english.txt", "en", None), ("chinese.txt", "zh", ("summarize", "translate")))


def run_demo(client: EngineClient, out: TextIO, notes: TextIO) -> None:
    """Runs the built-in actions on the sample texts.

    Raises:
        InferenceError: the model could not be loaded, or an answer failed.
        BrokenPipeError, KeyboardInterrupt: the reader left; what ran has been cancelled.
    """
    printer = AnswerPrinter(out, notes)
    # The user's own actions stay out: what runs here is known to fit the samples.
    actions = ActionRegistry(user_dir=Path("no-such-folder")).all()
    languages = Languages(LANGUAGES["en"], LANGUAGES["zh"])
    for file, language, chosen in _SAMPLES:
        text = (assets_dir("samples") / file).read_text(encoding="utf-8").strip()
        out.write(f"{text}\n")
        for action in actions:
            if chosen is None or action.id in chosen:
                out.write(f"\n== {action.title(language)} ==\n")
                out.flush()
                events = engine_events(client, action.request(text, languages, language))
                show = shown_as(action, text)
                done = printer.print_answer(events, show)
                if show is None:
                    printer.print_review(Subject.of(action, text, languages), done)
                printer.print_usage(done.usage)
        out.write("\n" + "-" * 72 + "\n\n")
