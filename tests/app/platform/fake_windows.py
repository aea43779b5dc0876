"""A model of user32 and kernel32 as far as the app uses them: registration table, message queues, keyboard, windows."""

from __future__ import annotations

import ctypes
import queue
import threading
from dataclasses import dataclass, field
from typing import Any

from app.platform import windows_calls as win
from app.platform.windows_calls import WindowsCalls

ERROR_INVALID_PARAMETER, ERROR_INVALID_THREAD_ID, ERROR_HOTKEY_NOT_REGISTERED = 87, 1444, 1419


@dataclass
class FakeWindow:
    """A top-level window."""

    window_class: str
    program: str
    process_id: int = 100
    thread_id: int = 7
    minimized: bool = False
    elevated: bool = False


@dataclass
class FakeWindows:
    """One desktop of Windows. Its methods carry the names of the calls; threads are told apart as Windows does."""

    windows: dict[int, FakeWindow] = field(default_factory=dict)
    foreground: int = 0
    notification_state: int = 5
    may_take_foreground: bool = True
    keys_down: set[int] = field(default_factory=set)
    pressed_since_asked: set[int] = field(default_factory=set)
    sent: list[tuple[int, int, int]] = field(default_factory=list)
    input_blocked: bool = False
    refused_virtual_keys: set[int] = field(default_factory=set)
    registered: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    queues: dict[int, queue.Queue[tuple[int, int, int]]] = field(default_factory=dict)
    no_repeat: set[tuple[int, int]] = field(default_factory=set)
    attached: set[tuple[int, int]] = field(default_factory=set)
    open_handles: int = 0
    errors: threading.local = field(default_factory=threading.local)

    def calls(self) -> WindowsCalls:
        """The libraries as the app gets them."""
        return WindowsCalls(self, self, self, lambda: getattr(self.errors, "code", 0))

    def _fail(self, code: int) -> int:
        self.errors.code = code
        return 0

    # What a user does.

    def press(self, modifiers: int, key: int, repeats: int = 0) -> None:
        """Presses a combination; the keyboard repeats it while it is held."""
        owner = self.registered.get((modifiers, key))
        if owner is None:
            return
        thread_id, identifier = owner
        count = 1 if (modifiers, key) in self.no_repeat else 1 + repeats
        for _ in range(count):
            self.queues[thread_id].put((win.WM_HOTKEY, identifier, key << 16 | modifiers))

    # shell32

    def SHQueryUserNotificationState(self, state: Any) -> int:
        if self.notification_state < 0:
            return self.notification_state
        state.contents.value = self.notification_state
        return 0

    # user32: messages and hotkeys

    def PeekMessageW(self, message: Any, window: None, first: int, last: int, remove: int) -> int:
        """The first call for a message makes the thread's queue."""
        self.queues.setdefault(threading.get_ident(), queue.Queue())
        return 0

    def GetMessageW(self, message: Any, window: None, first: int, last: int) -> int:
        kind, wparam, lparam = self.queues.setdefault(threading.get_ident(), queue.Queue()).get(timeout=10)
        message.contents.message, message.contents.wParam, message.contents.lParam = kind, wparam, lparam
        return int(kind != win.WM_QUIT)

    def PostThreadMessageW(self, thread_id: int, kind: int, wparam: int, lparam: int) -> int:
        if thread_id not in self.queues:
            return self._fail(ERROR_INVALID_THREAD_ID)
        self.queues[thread_id].put((kind, wparam, lparam))
        return 1

    def RegisterHotKey(self, window: None, identifier: int, flags: int, key: int) -> int:
        if key in self.refused_virtual_keys or not 0 <= identifier <= 0xBFFF:
            return self._fail(ERROR_INVALID_PARAMETER)
        place = (flags & ~win.MOD_NOREPEAT, key)
        if place in self.registered:
            return self._fail(win.ERROR_HOTKEY_ALREADY_REGISTERED)
        self.registered[place] = (threading.get_ident(), identifier)
        if flags & win.MOD_NOREPEAT:
            self.no_repeat.add(place)
        return 1

    def UnregisterHotKey(self, window: None, identifier: int) -> int:
        owner = (threading.get_ident(), identifier)
        for place, known in list(self.registered.items()):
            if known == owner:
                del self.registered[place]
                return 1
        return self._fail(ERROR_HOTKEY_NOT_REGISTERED)

    # user32: keys

    def MapVirtualKeyW(self, key: int, kind: int) -> int:
        return {win.VK_CONTROL: 0x1D, win.VK_INSERT: 0x52, win.VK_SHIFT: 0x2A, ord("V"): 0x2F}[key]

    def SendInput(self, count: int, events: Any, size: int) -> int:
        if size != ctypes.sizeof(win.Input) or self.input_blocked:
            return self._fail(ERROR_INVALID_PARAMETER)
        for event in events[:count]:
            assert event.type == win.INPUT_KEYBOARD
            self.sent.append((event.ki.wVk, event.ki.wScan, event.ki.dwFlags))
            if event.ki.dwFlags & win.KEYEVENTF_KEYUP:
                self.keys_down.discard(event.ki.wVk)
            else:
                self.keys_down.add(event.ki.wVk)
        return count

    def GetAsyncKeyState(self, key: int) -> int:
        state = -0x8000 if key in self.keys_down else 0
        if key in self.pressed_since_asked:
            self.pressed_since_asked.discard(key)
            state |= 1
        return state

    # user32: windows

    def GetForegroundWindow(self) -> int | None:
        return self.foreground or None

    def IsWindow(self, handle: int) -> int:
        return int(handle in self.windows)

    def IsIconic(self, handle: int) -> int:
        return int(self.windows[handle].minimized)

    def ShowWindow(self, handle: int, command: int) -> int:
        assert command == win.SW_RESTORE
        self.windows[handle].minimized = False
        return 1

    def SetForegroundWindow(self, handle: int) -> int:
        allowed = self.may_take_foreground or any(threading.get_ident() in pair for pair in self.attached)
        if allowed and handle in self.windows:
            self.foreground = handle
        return int(allowed)

    def AttachThreadInput(self, ours: int, theirs: int, attach: bool) -> int:
        if attach:
            self.attached.add((ours, theirs))
        else:
            self.attached.remove((ours, theirs))
        return 1

    def GetClassNameW(self, handle: int, name: Any, length: int) -> int:
        if handle not in self.windows:
            return 0
        name.value = self.windows[handle].window_class
        return len(self.windows[handle].window_class)

    def GetWindowThreadProcessId(self, handle: int, process_id: Any) -> int:
        if handle not in self.windows:
            return 0
        if process_id is not None:
            process_id.contents.value = self.windows[handle].process_id
        return self.windows[handle].thread_id

    # kernel32

    def GetCurrentThreadId(self) -> int:
        return threading.get_ident()

    def OpenProcess(self, access: int, inherit: bool, process_id: int) -> int | None:
        assert access == win.PROCESS_QUERY_LIMITED_INFORMATION
        found = [w for w in self.windows.values() if w.process_id == process_id]
        if not found or found[0].elevated:
            self._fail(5)
            return None
        self.open_handles += 1
        return process_id

    def CloseHandle(self, handle: int) -> int:
        self.open_handles -= 1
        return 1

    def QueryFullProcessImageNameW(self, handle: int, flags: int, path: Any, length: Any) -> int:
        found = next(w for w in self.windows.values() if w.process_id == handle)
        path.value = f"C:\\Program Files\\{found.program}"
        length.contents.value = len(path.value)
        return 1
