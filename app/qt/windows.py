"""The windows and what keeps them, in one import that the tray icon does not wait for."""

from app.capture.focus_capture import FocusCapture
from app.memory.reading import MemoryReader
from app.qt.chat.desk import ChatDesk
from app.qt.clipboard import QtClipboard
from app.qt.history_binding import HistoryBinding
from app.qt.home.main_window import MainWindow
from app.qt.home.welcome_owner import WelcomeOwner
from app.qt.hotkeys.desk import HotkeyDesk
from app.qt.look.focus_frame import FocusFrame
from app.qt.memory.feed import MemoryFeed
from app.qt.memory.keeper import MemoryKeeper
from app.qt.memory.meter import VramMeter
from app.qt.models.binding import ModelBinding
from app.qt.popup.after_answer import AfterAnswer
from app.qt.popup.controller import AnswerController
from app.qt.popup.popup import Popup
from app.qt.settings.diagnostics_desk import DiagnosticsDesk
from app.qt.settings.gateway_desk import GatewayDesk
from app.qt.settings.owner import SettingsOwner

__all__ = [
    "AfterAnswer",
    "AnswerController",
    "ChatDesk",
    "DiagnosticsDesk",
    "FocusCapture",
    "FocusFrame",
    "GatewayDesk",
    "HistoryBinding",
    "HotkeyDesk",
    "MainWindow",
    "MemoryFeed",
    "MemoryKeeper",
    "MemoryReader",
    "ModelBinding",
    "Popup",
    "QtClipboard",
    "SettingsOwner",
    "VramMeter",
    "WelcomeOwner",
]
