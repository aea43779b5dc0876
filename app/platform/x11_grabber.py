"""Global hotkeys on X11: the server hands a grabbed key to us alone, so the focused program never sees it."""

from __future__ import annotations

import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import xcffib
import xcffib.xproto

from app.desktop.protocols import Hotkey, HotkeyError, HotkeyTakenError
from app.platform.x11_keyboard import X11Keyboard
from app.translation import UserText

_log = logging.getLogger(__name__)

_ANSWER_TIMEOUT_S = 2.0
# A key that repeats is heard of every few hundredths of a second; a longer silence means that its release was lost.
_REPEAT_SILENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a combination lies on the keyboard: a keycode, state bits, and the state bits of lock keys to ignore."""

    keycode: int
    mask: int
    locks: tuple[int, ...]


@dataclass(slots=True)
class _Grab:
    on_press: Callable[[], None]
    place: _Place | None


class X11HotkeyGrabber:
    """HotkeyGrabber over a connection and a thread of its own.

    Every request is made on that thread: a reply read elsewhere could take events out of the socket, where select()
    would wait for them in vain.
    """

    def __init__(self, connection: Any) -> None:
        """Takes over a connection (app.platform.x11.connect)."""
        self._connection = connection
        self._root: int = connection.get_setup().roots[connection.pref_screen].root
        self._keyboard = X11Keyboard(connection)
        self._keyboard.report_repeats_as_presses()
        self._grabs: dict[Hotkey, _Grab] = {}
        self._down: dict[int, float] = {}
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], Future[None]]] = queue.SimpleQueue()
        self._wake_read, self._wake_write = os.pipe()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="hotkeys", daemon=True)
        self._thread.start()

    def grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        """Raises HotkeyTakenError, or HotkeyError where the key does not exist or the display is gone."""
        try:
            self._call(lambda: self._grab(hotkey, on_press))
        except (TimeoutError, xcffib.XcffibException) as error:
            raise HotkeyError(hotkey, UserText("the display does not answer; restart the app.")) from error

    def release(self, hotkey: Hotkey) -> None:
        """Gives a combination back; unknown ones are ignored."""
        try:
            self._call(lambda: self._release(hotkey))
        except (TimeoutError, xcffib.XcffibException):
            _log.warning("The display did not answer while %s was released.", hotkey)

    def close(self) -> None:
        """Gives all back and ends the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.write(self._wake_write, b"\0")
        if threading.current_thread() is not self._thread:
            self._thread.join(_ANSWER_TIMEOUT_S)

    def _call(self, job: Callable[[], None]) -> None:
        if threading.current_thread() is self._thread:
            job()
            return
        answer: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise xcffib.XcffibException("the grabber is closed")
            self._jobs.put((job, answer))
            os.write(self._wake_write, b"\0")
        answer.result(_ANSWER_TIMEOUT_S)

    # The rest runs on the grabber's thread.

    def _run(self) -> None:
        try:
            self._serve()
        except xcffib.ConnectionException:
            _log.warning("The connection to the display was lost; hotkeys no longer work.")
        finally:
            with self._lock:
                self._closed = True
                self._refuse_jobs()
                self._connection.disconnect()
                os.close(self._wake_write)
            os.close(self._wake_read)

    def _serve(self) -> None:
        connection_file = self._connection.get_file_descriptor()
        while True:
            self._run_jobs()
            # Replies may have brought events along, which no select() would announce.
            self._handle_events()
            if self._closed:
                for hotkey in list(self._grabs):
                    self._release(hotkey)
                return
            ready, _, _ = select.select([connection_file, self._wake_read], [], [])
            if self._wake_read in ready:
                os.read(self._wake_read, 512)

    def _run_jobs(self) -> None:
        while True:
            try:
                job, answer = self._jobs.get_nowait()
            except queue.Empty:
                return
            try:
                job()
            except (HotkeyError, xcffib.XcffibException) as error:
                answer.set_exception(error)
            else:
                answer.set_result(None)

    def _refuse_jobs(self) -> None:
        while not self._jobs.empty():
            self._jobs.get_nowait()[1].set_exception(xcffib.XcffibException("the grabber is closed"))

    def _handle_events(self) -> None:
        changed = False
        while True:
            try:
                event = self._connection.poll_for_event()
            except xcffib.ConnectionException:
                raise
            except xcffib.XcffibException:
                continue  # the late error of an unchecked request, such as ungrabbing a key twice
            if event is None:
                break
            if isinstance(event, xcffib.xproto.KeyPressEvent):
                self._on_key_press(event.detail, event.state)
            elif isinstance(event, xcffib.xproto.KeyReleaseEvent):
                self._down.pop(event.detail, None)
            elif X11Keyboard.is_change(event):
                changed = True
        if changed:
            self._keyboard.refresh()
            self._follow_keyboard()
            self._handle_events()

    def _on_key_press(self, keycode: int, state: int) -> None:
        now = time.monotonic()
        is_repeat = now - self._down.get(keycode, float("-inf")) < _REPEAT_SILENCE_S
        self._down[keycode] = now
        if is_repeat:
            return
        mask = self._keyboard.map.without_locks(state)
        for grab in list(self._grabs.values()):
            if grab.place is not None and (grab.place.keycode, grab.place.mask) == (keycode, mask):
                grab.on_press()

    def _place(self, hotkey: Hotkey) -> _Place | None:
        keys = self._keyboard.map
        keycode = keys.keycode(hotkey.key)
        return None if keycode is None else _Place(keycode, keys.mask(hotkey.modifiers), keys.lock_masks())

    def _grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        known = self._grabs.get(hotkey)
        if known is not None and known.place is not None:
            known.on_press = on_press
            return
        place = self._place(hotkey)
        if place is None:
            raise HotkeyError(
                hotkey, UserText("this keyboard has no key {key}; choose another one.", key=hotkey.key.capitalize())
            )
        for other, grab in self._grabs.items():
            if grab.place is not None and (grab.place.keycode, grab.place.mask) == (place.keycode, place.mask):
                raise HotkeyTakenError(
                    hotkey, UserText("this is the same key as {other}, which is in use here already.", other=str(other))
                )
        if not self._take(place):
            raise HotkeyTakenError(hotkey)
        self._grabs[hotkey] = _Grab(on_press, place)

    def _take(self, place: _Place) -> bool:
        """Grabs a place with every state of the lock keys: all of them or, where one is taken, none."""
        mode = xcffib.xproto.GrabMode.Async
        core = self._connection.core
        asked = [
            (lock, core.GrabKeyChecked(False, self._root, place.mask | lock, place.keycode, mode, mode))
            for lock in place.locks
        ]
        taken = []
        for lock, cookie in asked:
            try:
                cookie.check()
            except xcffib.xproto.AccessError:
                continue
            taken.append(lock)
        if len(taken) == len(asked):
            return True
        self._give_back(place, tuple(taken))
        return False

    def _give_back(self, place: _Place, locks: tuple[int, ...]) -> None:
        for lock in locks:
            self._connection.core.UngrabKeyChecked(place.keycode, self._root, place.mask | lock).check()

    def _release(self, hotkey: Hotkey) -> None:
        grab = self._grabs.pop(hotkey, None)
        if grab is not None and grab.place is not None:
            self._give_back(grab.place, grab.place.locks)

    def _follow_keyboard(self) -> None:
        """Moves the grabs to where the keys lie now; what cannot be moved is tried again at the next change."""
        moved = [(hotkey, grab) for hotkey, grab in self._grabs.items() if grab.place != self._place(hotkey)]
        for _, grab in moved:
            if grab.place is not None:
                self._give_back(grab.place, grab.place.locks)
                grab.place = None
        for hotkey, grab in moved:
            place = self._place(hotkey)
            if place is not None and self._take(place):
                grab.place = place
            else:
                _log.warning("%s cannot be grabbed under this keyboard layout.", hotkey)
