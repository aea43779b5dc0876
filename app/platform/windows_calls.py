"""The calls into user32, kernel32 and shell32 that the Windows desktop makes, with their structures.

The structures have the layout of 64-bit and 32-bit Windows on every system (ctypes.wintypes has not), so that
everything but `load` runs on Linux too, against a model of user32.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ERROR_HOTKEY_ALREADY_REGISTERED = 1409

WM_QUIT, WM_HOTKEY, WM_APP = 0x0012, 0x0312, 0x8000
PM_NOREMOVE = 0
MOD_ALT, MOD_CONTROL, MOD_SHIFT, MOD_WIN, MOD_NOREPEAT = 0x1, 0x2, 0x4, 0x8, 0x4000
INPUT_KEYBOARD = 1
KEYEVENTF_EXTENDEDKEY, KEYEVENTF_KEYUP = 0x1, 0x2
MAPVK_VK_TO_VSC = 0
SW_RESTORE = 9
QUNS_BUSY, QUNS_RUNNING_D3D_FULL_SCREEN = 2, 3
PROCESS_QUERY_LIMITED_INFORMATION = 0x1000

VK_SHIFT, VK_CONTROL, VK_MENU, VK_LWIN, VK_RWIN, VK_INSERT = 0x10, 0x11, 0x12, 0x5B, 0x5C, 0x2D

# Key names of app.desktop.hotkeys to virtual keys (winuser.h); letters and digits are their ASCII codes, F1 is 0x70.
_NAMED_KEYS = {
    "BACKSPACE": 0x08,
    "TAB": 0x09,
    "RETURN": 0x0D,
    "PAUSE": 0x13,
    "ESCAPE": 0x1B,
    "SPACE": 0x20,
    "PAGEUP": 0x21,
    "PAGEDOWN": 0x22,
    "END": 0x23,
    "HOME": 0x24,
    "LEFT": 0x25,
    "UP": 0x26,
    "RIGHT": 0x27,
    "DOWN": 0x28,
    "PRINT": 0x2C,
    "INSERT": VK_INSERT,
    "DELETE": 0x2E,
    "MENU": 0x5D,
    "SEMICOLON": 0xBA,
    "EQUAL": 0xBB,
    "COMMA": 0xBC,
    "MINUS": 0xBD,
    "PERIOD": 0xBE,
    "SLASH": 0xBF,
    "GRAVE": 0xC0,
    "BRACKETLEFT": 0xDB,
    "BACKSLASH": 0xDC,
    "BRACKETRIGHT": 0xDD,
    "APOSTROPHE": 0xDE,
}


def virtual_key(key: str) -> int | None:
    """The virtual key of a key name, None for an unknown one."""
    if len(key) == 1 and key.isascii() and key.isalnum():
        return ord(key.upper())
    if key.startswith("F") and key[1:].isdecimal() and 1 <= int(key[1:]) <= 24:
        return 0x70 + int(key[1:]) - 1
    return _NAMED_KEYS.get(key)


class Point(ctypes.Structure):
    """POINT: LONG has 32 bits on Windows, also in 64-bit programs."""

    _fields_ = (("x", ctypes.c_int32), ("y", ctypes.c_int32))


class Message(ctypes.Structure):
    """MSG: 48 bytes in a 64-bit program."""

    _fields_ = (
        ("hwnd", ctypes.c_void_p),
        ("message", ctypes.c_uint32),
        ("wParam", ctypes.c_size_t),
        ("lParam", ctypes.c_ssize_t),
        ("time", ctypes.c_uint32),
        ("pt", Point),
        ("lPrivate", ctypes.c_uint32),
    )


class MouseInput(ctypes.Structure):
    """MOUSEINPUT: never sent, but the largest member of INPUT's union, which gives INPUT its size."""

    _fields_ = (
        ("dx", ctypes.c_int32),
        ("dy", ctypes.c_int32),
        ("mouseData", ctypes.c_uint32),
        ("dwFlags", ctypes.c_uint32),
        ("time", ctypes.c_uint32),
        ("dwExtraInfo", ctypes.c_size_t),
    )


class KeyboardInput(ctypes.Structure):
    """KEYBDINPUT."""

    _fields_ = (
        ("wVk", ctypes.c_uint16),
        ("wScan", ctypes.c_uint16),
        ("dwFlags", ctypes.c_uint32),
        ("time", ctypes.c_uint32),
        ("dwExtraInfo", ctypes.c_size_t),
    )


class _InputUnion(ctypes.Union):
    _fields_ = (("mi", MouseInput), ("ki", KeyboardInput))


class Input(ctypes.Structure):
    """INPUT: 40 bytes in a 64-bit program; SendInput refuses any other size."""

    _anonymous_ = ("u",)
    _fields_ = (("type", ctypes.c_uint32), ("u", _InputUnion))


@dataclass(frozen=True, slots=True)
class WindowsCalls:
    """The libraries, and the error code that the last failed call of this thread left behind."""

    user32: Any
    kernel32: Any
    shell32: Any
    last_error: Callable[[], int]


_BOOL, _UINT, _INT = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int32
_HANDLE, _WPARAM, _LPARAM = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ssize_t
_MESSAGE_POINTER = ctypes.POINTER(Message)
# Results and arguments: without them ctypes would cut 64-bit handles to 32 bits.
_USER32 = {
    "RegisterHotKey": (_BOOL, (_HANDLE, _INT, _UINT, _UINT)),
    "UnregisterHotKey": (_BOOL, (_HANDLE, _INT)),
    "GetMessageW": (_INT, (_MESSAGE_POINTER, _HANDLE, _UINT, _UINT)),
    "PeekMessageW": (_BOOL, (_MESSAGE_POINTER, _HANDLE, _UINT, _UINT, _UINT)),
    "PostThreadMessageW": (_BOOL, (_UINT, _UINT, _WPARAM, _LPARAM)),
    "SendInput": (_UINT, (_UINT, ctypes.POINTER(Input), _INT)),
    "MapVirtualKeyW": (_UINT, (_UINT, _UINT)),
    "GetAsyncKeyState": (ctypes.c_int16, (_INT,)),
    "GetForegroundWindow": (_HANDLE, ()),
    "SetForegroundWindow": (_BOOL, (_HANDLE,)),
    "IsWindow": (_BOOL, (_HANDLE,)),
    "IsIconic": (_BOOL, (_HANDLE,)),
    "ShowWindow": (_BOOL, (_HANDLE, _INT)),
    "GetClassNameW": (_INT, (_HANDLE, ctypes.c_wchar_p, _INT)),
    "GetWindowThreadProcessId": (_UINT, (_HANDLE, ctypes.POINTER(_UINT))),
    "AttachThreadInput": (_BOOL, (_UINT, _UINT, _BOOL)),
}
_KERNEL32 = {
    "GetCurrentThreadId": (_UINT, ()),
    "OpenProcess": (_HANDLE, (_UINT, _BOOL, _UINT)),
    "CloseHandle": (_BOOL, (_HANDLE,)),
    "QueryFullProcessImageNameW": (_BOOL, (_HANDLE, _UINT, ctypes.c_wchar_p, ctypes.POINTER(_UINT))),
}
_SHELL32 = {"SHQueryUserNotificationState": (_INT, (ctypes.POINTER(_INT),))}


def load() -> WindowsCalls:
    """Loads the real libraries.

    Raises:
        OSError: this is not Windows.
    """
    if sys.platform == "win32":
        user32 = ctypes.WinDLL("user32", use_last_error=True)
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        shell32 = ctypes.WinDLL("shell32", use_last_error=True)
        for library, signatures in ((user32, _USER32), (kernel32, _KERNEL32), (shell32, _SHELL32)):
            for name, (result, arguments) in signatures.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
        return WindowsCalls(user32, kernel32, shell32, ctypes.get_last_error)
    raise OSError("user32.dll exists on Windows alone")
