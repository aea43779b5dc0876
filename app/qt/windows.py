"""The windows and what keeps them, in one import that the tray icon does not wait for."""

from app.focus_capture import FocusCapture
from app.memory_reading import MemoryReader
from app.qt.after_answer import AfterAnswer
from app.qt.chat_desk import ChatDesk
from app.qt.clipboard import QtClipboard
from app.qt.controller import AnswerController
from app.qt.diagnostics_desk import DiagnosticsDesk
from app.qt.focus_frame import FocusFrame
from app.qt.gateway_desk import GatewayDesk
from app.qt.history_binding import HistoryBinding
from app.qt.main_window import MainWindow
from app.qt.memory_feed import MemoryFeed
from app.qt.memory_keeper import MemoryKeeper
from app.qt.model_binding import ModelBinding
from app.qt.popup import Popup
from app.qt.portal_binding import hotkeys_of
from app.qt.settings_owner import SettingsOwner
from app.qt.vram_meter import VramMeter
from app.qt.welcome_owner import WelcomeOwner

__all__ = [
    "AfterAnswer",
    "AnswerController",
    "ChatDesk",
    "DiagnosticsDesk",
    "FocusCapture",
    "FocusFrame",
    "GatewayDesk",
    "HistoryBinding",
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
    "hotkeys_of",
]
