"""The app as a program of its own, with a scripted engine: for the tests of start, second start and end.

The first argument says what the engine does: "answers", "never ends" (an answer without end) or "hangs" (its close does
not return in time).
"""

import sys
import threading
import time
from collections.abc import Callable

from app.__main__ import main
from app.engine_client import EngineClient, FakeClient, ScriptedAnswer
from app.settings.settings import Settings


class SelfDriven(FakeClient):
    """Delivers its events on a thread of its own, a few a second's hundredth."""

    def __init__(self, *answers: ScriptedAnswer, hangs: bool) -> None:
        super().__init__(*answers)
        self._hangs = hangs
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._drive, name="scripted-engine", daemon=True)
        self._thread.start()

    def _drive(self) -> None:
        while not self._ended.is_set():
            self.step()
            time.sleep(0.005)

    def close(self) -> None:
        if self._hangs:
            time.sleep(60)
        super().close()
        self._ended.set()
        self._thread.join()


def build(kind: str) -> Callable[[Settings], tuple[EngineClient, Callable[[], str]]]:
    answer = ScriptedAnswer("One ", "two.") if kind == "answers" else ScriptedAnswer(*["word "] * 100_000)
    return lambda _settings: (SelfDriven(answer, hangs=kind == "hangs"), lambda: "scripted")


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], build(sys.argv[1])))
