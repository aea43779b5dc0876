"""Windows and keys on Windows, over user32."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence

from app.desktop.protocols import DesktopSession, Modifier, Window
from app.platform import windows_calls as win
from app.platform.terminals import WINDOWS_TERMINAL_CLASSES, WINDOWS_TERMINAL_PROGRAMS
from app.platform.windows_calls import WindowsCalls
from app.platform.windows_grabber import WindowsHotkeyGrabber

_log = logging.getLogger(__name__)

_MODIFIER_KEYS = {
    Modifier.CTRL: (win.VK_CONTROL,),
    Modifier.ALT: (win.VK_MENU,),
    Modifier.SHIFT: (win.VK_SHIFT,),
    Modifier.META: (win.VK_LWIN, win.VK_RWIN),
}
# Backspace to Delete, digits, letters and Windows keys, keypad and function keys, Shift to Alt, punctuation. Mouse
# buttons and the codes of input methods, some of which stay "down", are left out.
_KEYBOARD_KEYS = (
    *range(0x08, 0x0E),
    *range(0x10, 0x15),
    0x1B,
    *range(0x20, 0x2F),
    *range(0x30, 0x3A),
    *range(0x41, 0x5E),
    *range(0x60, 0x88),
    *range(0xA0, 0xA6),
    *range(0xBA, 0xC1),
    *range(0xDB, 0xE0),
)
_NAME_LENGTH = 1024


class WindowsDesktop:
    """Desktop over user32; thread-safe, since it keeps no state."""

    def __init__(self, calls: WindowsCalls) -> None:
        """Uses these libraries (windows_calls.load)."""
        self._calls = calls

    def foreground_window(self) -> Window | None:
        """The window the user works in; None while the focus moves, and on the lock screen."""
        handle = self._calls.user32.GetForegroundWindow()
        if not handle:
            return None
        window_class, program = self._class_of(handle), self._program_of(handle)
        is_terminal = window_class in WINDOWS_TERMINAL_CLASSES or program in WINDOWS_TERMINAL_PROGRAMS
        return Window(handle, program or window_class, is_terminal)

    def full_screen_window(self) -> Window | None:
        """By what the shell says of notifications: a full-screen program or a Direct3D one in exclusive mode is on."""
        state = ctypes.c_int32()
        failed = self._calls.shell32.SHQueryUserNotificationState(ctypes.pointer(state))
        if failed or state.value not in (win.QUNS_BUSY, win.QUNS_RUNNING_D3D_FULL_SCREEN):
            return None
        return self.foreground_window()

    def activate(self, window: Window) -> None:
        """Brings a window to the front; Windows may refuse a program that the user is not working with."""
        user32 = self._calls.user32
        if not user32.IsWindow(window.window_id):
            _log.info("The window to go back to is gone.")
            return
        if user32.IsIconic(window.window_id):
            user32.ShowWindow(window.window_id, win.SW_RESTORE)
        if user32.SetForegroundWindow(window.window_id):
            return
        # A thread that shares its input state with the foreground window's may hand the foreground on.
        ours = self._calls.kernel32.GetCurrentThreadId()
        theirs = user32.GetWindowThreadProcessId(user32.GetForegroundWindow(), None)
        if theirs and theirs != ours and user32.AttachThreadInput(ours, theirs, True):
            user32.SetForegroundWindow(window.window_id)
            user32.AttachThreadInput(ours, theirs, False)

    def held_modifiers(self) -> frozenset[Modifier]:
        """By the physical state of the keys."""
        return frozenset(modifier for modifier, keys in _MODIFIER_KEYS.items() if self._any_down(keys))

    def any_key_held(self) -> bool:
        """Whether any key is down; buttons of the mouse do not count."""
        return self._any_down(_KEYBOARD_KEYS)

    def send_copy(self) -> None:
        """Sends Ctrl+Insert, never to a terminal.

        Every edit control knows it as "copy". Unlike Ctrl+C it means the same under every layout, interrupts nothing,
        and cannot become a typed letter over the selection.
        """
        window = self.foreground_window()
        if window is not None and window.is_terminal:
            _log.info("No copy keystroke is sent to a terminal.")
            return
        self._press((win.VK_CONTROL, win.VK_INSERT))

    def send_paste(self) -> None:
        """Sends Ctrl+V; to a terminal Shift+Insert, which all of them know."""
        window = self.foreground_window()
        is_terminal = window is not None and window.is_terminal
        self._press((win.VK_SHIFT, win.VK_INSERT) if is_terminal else (win.VK_CONTROL, ord("V")))

    def owns_primary(self, window: Window) -> bool:
        """False: Windows has one clipboard."""
        return False

    def close(self) -> None:
        """Nothing is open."""

    def _any_down(self, keys: Sequence[int]) -> bool:
        # The highest bit says "down now"; the lowest, "was pressed since last asked", must not count.
        return any(self._calls.user32.GetAsyncKeyState(key) & 0x8000 for key in keys)

    def _class_of(self, handle: int) -> str:
        name = ctypes.create_unicode_buffer(_NAME_LENGTH)
        length = self._calls.user32.GetClassNameW(handle, name, _NAME_LENGTH)
        return name.value[:length].lower()

    def _program_of(self, handle: int) -> str:
        """The file name of the program behind a window, "" where it may not be asked (it runs as administrator)."""
        kernel32, process_id = self._calls.kernel32, ctypes.c_uint32()
        self._calls.user32.GetWindowThreadProcessId(handle, ctypes.pointer(process_id))
        process = kernel32.OpenProcess(win.PROCESS_QUERY_LIMITED_INFORMATION, False, process_id.value)
        if not process:
            return ""
        path, length = ctypes.create_unicode_buffer(_NAME_LENGTH), ctypes.c_uint32(_NAME_LENGTH)
        found = kernel32.QueryFullProcessImageNameW(process, 0, path, ctypes.pointer(length))
        kernel32.CloseHandle(process)
        return path.value.rpartition("\\")[2].lower() if found else ""

    def _press(self, keys: tuple[int, ...]) -> None:
        """Presses and releases keys in one call, so that nothing the user types can come between."""
        events = [self._key_input(key, 0) for key in keys]
        events += [self._key_input(key, win.KEYEVENTF_KEYUP) for key in reversed(keys)]
        array = (win.Input * len(events))(*events)
        sent = self._calls.user32.SendInput(len(events), array, ctypes.sizeof(win.Input))
        if sent != len(events):
            _log.warning(
                "Windows took %d of %d key events; the window may belong to an administrator.", sent, len(events)
            )

    def _key_input(self, key: int, flags: int) -> win.Input:
        # Without the flag, Insert is the 0 of the keypad, which types while Num Lock is on.
        extended = win.KEYEVENTF_EXTENDEDKEY if key == win.VK_INSERT else 0
        scan = self._calls.user32.MapVirtualKeyW(key, win.MAPVK_VK_TO_VSC)
        return win.Input(type=win.INPUT_KEYBOARD, ki=win.KeyboardInput(wVk=key, wScan=scan, dwFlags=flags | extended))


def open_windows(calls: WindowsCalls | None = None) -> DesktopSession:
    """The session of a Windows desktop.

    Args:
        calls: the system's own libraries by default.
    """
    used = calls or win.load()
    return DesktopSession("windows", WindowsDesktop(used), WindowsHotkeyGrabber(used))
