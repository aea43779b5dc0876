"""Global hotkeys on Windows: RegisterHotKey in a thread with a message queue."""

from __future__ import annotations

import ctypes
import itertools
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from app.desktop.protocols import Hotkey, HotkeyError, HotkeyTakenError, Modifier
from app.platform import windows_calls as win
from app.platform.windows_calls import WindowsCalls
from app.translation import UserText

_log = logging.getLogger(__name__)

_MODIFIER_FLAGS = {
    Modifier.ALT: win.MOD_ALT,
    Modifier.CTRL: win.MOD_CONTROL,
    Modifier.SHIFT: win.MOD_SHIFT,
    Modifier.META: win.MOD_WIN,
}
_ANSWER_TIMEOUT_S = 2.0


class WindowsHotkeyGrabber:
    """HotkeyGrabber over a thread of its own.

    Windows sends WM_HOTKEY to the thread that registered the combination, so registering and releasing happen there.
    """

    def __init__(self, calls: WindowsCalls) -> None:
        """Starts the thread; returns once it can be posted to."""
        self._calls = calls
        self._ids = itertools.count(1)
        self._grabs: dict[Hotkey, tuple[int, Callable[[], None]]] = {}
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], Future[None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="hotkeys", daemon=True)
        self._thread.start()
        self._thread_id = started.result()

    def grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        """Raises HotkeyTakenError, or HotkeyError where Windows refuses the combination."""
        try:
            self._call(lambda: self._grab(hotkey, on_press))
        except TimeoutError as error:
            raise HotkeyError(hotkey, UserText("Windows does not answer; restart the app.")) from error

    def release(self, hotkey: Hotkey) -> None:
        """Gives a combination back; unknown ones are ignored."""
        try:
            self._call(lambda: self._release(hotkey))
        except TimeoutError:
            _log.warning("Windows did not answer while %s was released.", hotkey)

    def close(self) -> None:
        """Gives all back and ends the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._post(win.WM_QUIT)
        if threading.current_thread() is not self._thread:
            self._thread.join(_ANSWER_TIMEOUT_S)

    def _post(self, message: int) -> None:
        self._calls.user32.PostThreadMessageW(self._thread_id, message, 0, 0)

    def _call(self, job: Callable[[], None]) -> None:
        if threading.current_thread() is self._thread:
            job()
            return
        answer: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise TimeoutError("the grabber is closed")
            self._jobs.put((job, answer))
            self._post(win.WM_APP)
        answer.result(_ANSWER_TIMEOUT_S)

    # The rest runs on the grabber's thread.

    def _run(self, started: Future[int]) -> None:
        user32, message = self._calls.user32, win.Message()
        # A thread has no message queue, and cannot be posted to, until it first asks for a message.
        user32.PeekMessageW(ctypes.pointer(message), None, win.WM_APP, win.WM_APP, win.PM_NOREMOVE)
        started.set_result(self._calls.kernel32.GetCurrentThreadId())
        # 0 is WM_QUIT, -1 an error that would come again for ever.
        while user32.GetMessageW(ctypes.pointer(message), None, 0, 0) > 0:
            if message.message == win.WM_HOTKEY:
                self._on_hotkey(message.wParam)
            elif message.message == win.WM_APP:
                self._run_job()
        for hotkey in list(self._grabs):
            self._release(hotkey)
        with self._lock:
            self._closed = True
            while not self._jobs.empty():
                self._jobs.get_nowait()[1].set_exception(TimeoutError("the grabber is closed"))

    def _run_job(self) -> None:
        job, answer = self._jobs.get_nowait()
        try:
            job()
        except HotkeyError as error:
            answer.set_exception(error)
        else:
            answer.set_result(None)

    def _on_hotkey(self, identifier: int) -> None:
        for known, on_press in list(self._grabs.values()):
            if known == identifier:
                on_press()

    def _grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        if hotkey in self._grabs:
            self._grabs[hotkey] = (self._grabs[hotkey][0], on_press)
            return
        key = win.virtual_key(hotkey.key)
        if key is None:
            raise HotkeyError(
                hotkey, UserText("this keyboard has no key {key}; choose another one.", key=hotkey.key.capitalize())
            )
        identifier = next(self._ids)
        # With MOD_NOREPEAT a held key fires once.
        flags = win.MOD_NOREPEAT | sum(_MODIFIER_FLAGS[modifier] for modifier in hotkey.modifiers)
        if not self._calls.user32.RegisterHotKey(None, identifier, flags, key):
            code = self._calls.last_error()
            if code == win.ERROR_HOTKEY_ALREADY_REGISTERED:
                raise HotkeyTakenError(hotkey)
            raise HotkeyError(
                hotkey, UserText("Windows refused this combination (error {code}); choose another one.", code=code)
            )
        self._grabs[hotkey] = (identifier, on_press)

    def _release(self, hotkey: Hotkey) -> None:
        known = self._grabs.pop(hotkey, None)
        if known is not None:
            self._calls.user32.UnregisterHotKey(None, known[0])
