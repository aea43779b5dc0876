"""The very first start: shows the welcome once, and fetches the model that the user says yes to, never another."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import psutil
from PySide6.QtCore import QObject, Signal

from app.models.download import Download, DownloadState, ModelDownloads
from app.paths import assets_dir, welcomed_file
from app.qt.hotkeys.binding import HotkeyStatus
from app.qt.settings.controls import ask_for_file
from app.qt.settings.owner import HOTKEY_PAGE, SettingsOwner
from app.qt.settings.row import SettingRow
from app.settings.settings import SettingError, SettingsFileError, Value
from inference.errors import InferenceError

if TYPE_CHECKING:
    from app.qt.home.welcome import OfferedModel, Welcome
    from inference.store.model_store import ModelStore

_log = logging.getLogger(__name__)
_SAMPLES = {"en": "english.txt", "zh": "chinese.txt"}
PostCall = Callable[[Callable[[], object]], None]


class WelcomeOwner(QObject):
    """Owns the welcome. UI thread only.

    Attributes:
        window: while it is open.

    Signals:
        model_arrived: the model that the settings mean is here now.
        closed: the user is through with it.
    """

    model_arrived = Signal()
    closed = Signal()

    def __init__(
        self,
        settings_owner: SettingsOwner,
        default_model: Callable[[], str],
        post_call: PostCall,
        open_store: Callable[[], ModelStore] | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            default_model: which model the settings mean.
            post_call: runs a function on the UI thread.
            open_store: tests pass their own.
        """
        super().__init__(settings_owner)
        self._settings, self._translator = settings_owner.settings, settings_owner.translator
        self._settings_owner = settings_owner
        self._default_model, self._open_store = default_model, open_store or self._store_of_settings
        self._downloads = ModelDownloads(
            self._open_store, lambda download: post_call(partial(self._on_download, download))
        )
        self.window: Welcome | None = None
        settings_owner.hotkeys_changed.connect(self._show_hotkeys)

    def begin(self) -> bool:
        """Opens the welcome at the very first start; whether the model that is meant can be loaded now.

        A model that is not here is no error while the welcome offers it.
        """
        if welcomed_file().exists():
            return True
        self.open()
        return self._is_here(self._default_model())

    def open(self) -> None:
        """Opens the welcome."""
        # Once in a lifetime, and it takes NumPy along.
        from app.qt.home.welcome import Welcome

        tr = self._translator
        rows = [SettingRow(self._settings.registry[key], tr) for key in ("language.first", "language.second")]
        for row in rows:
            row.show_value(self._settings.get(row.key))
            row.edited.connect(partial(self._change, row))
        sample = (assets_dir("samples") / _SAMPLES[tr.language]).read_text(encoding="utf-8").strip()
        window = self.window = Welcome(tr, rows, sample)
        window.model.set_models(self._offered())
        window.model.chosen.connect(self._on_chosen)
        window.model.download_requested.connect(self._downloads.start)
        window.model.pause_requested.connect(self._downloads.pause)
        window.model.file_requested.connect(self._ask_for_file)
        window.hotkeys.settings_requested.connect(lambda: self._settings_owner.open(HOTKEY_PAGE))
        window.finished.connect(self._on_finished)
        self._show_hotkeys()
        window.show()
        window.raise_()
        window.activateWindow()

    def close(self) -> None:
        """Pauses a download and hides the window, which comes again at the next start. May be called twice."""
        self._downloads.close()
        if self.window is not None:
            self.window.finished.disconnect(self._on_finished)
            self.window.close()
            self.window = None

    # --- models -------------------------------------------------------------------------------------------------

    def _store_of_settings(self) -> ModelStore:
        from inference.store.download import DownloadOptions
        from inference.store.model_store import ModelStore

        return ModelStore(options=DownloadOptions(hub_endpoint=self._settings.text("hub.endpoint") or None))

    def _offered(self) -> list[OfferedModel]:
        """The models of the catalog that are worth it on this machine, the one that is meant first."""
        from app.models.model_list import split_title
        from app.qt.home.welcome import OfferedModel

        meant, store = self._default_model(), self._open_store()
        useful = store.catalog.useful_models(psutil.virtual_memory().total)
        offered = []
        for stored in store.list():
            entry = stored.entry
            if entry.id != meant and entry.id not in useful:
                continue
            size = stored.num_bytes or entry.num_bytes or 0
            facts = (entry.id, split_title(entry)[0], entry.licence, entry.licence_note, size, entry.about_bytes)
            offered.append(OfferedModel(*facts, is_here=stored.path is not None))
        return sorted(offered, key=lambda model: model.id != meant)

    def _is_here(self, name: str) -> bool:
        try:
            self._open_store().resolve(name)
        except InferenceError:
            return False
        return True

    def _on_chosen(self, model: str) -> None:
        if self._is_here(model):
            self._use(model)

    def _use(self, model: str) -> None:
        """Makes it the model that is meant; the settings stay empty where it is that already."""
        if model != self._default_model():
            self._set("model.default", model)
        self.model_arrived.emit()

    def _on_download(self, download: Download) -> None:
        if self.window is not None:
            self.window.model.show_download(download)
        if download.state is DownloadState.DONE:
            self._use(download.model)

    def _ask_for_file(self) -> None:
        window, tr = self.window, self._translator.tr
        assert window is not None
        path = ask_for_file(window, tr("Choose a model"), tr("Models (*.gguf)"))
        if path:
            self._use(path)
            window.model.show_file(path)

    # --- settings and hotkeys -----------------------------------------------------------------------------------

    def _change(self, row: SettingRow, key: str, value: Value) -> None:
        try:
            self._set(key, value)
        except SettingError as error:
            row.refuse(self._translator.tr(error.text))
            return
        row.show_value(self._settings.get(key))

    def _set(self, key: str, value: Value) -> None:
        self._settings.set(key, value)
        try:
            self._settings.save()
        except SettingsFileError:
            # It holds until the end of the app; the settings dialog tells why it is not saved.
            _log.warning("the settings cannot be saved")

    def _show_hotkeys(self) -> None:
        if self.window is None:
            return
        owner = self._settings_owner
        on_selection = [each for each in owner.statuses if self._is_of_selection(each)]
        self.window.hotkeys.set_hotkeys(on_selection, owner.limits)

    @staticmethod
    def _is_of_selection(status: HotkeyStatus) -> bool:
        return status.command_id.startswith("action.") and not status.command_id.endswith(".clipboard")

    def _on_finished(self) -> None:
        self.window = None
        try:
            welcomed_file().parent.mkdir(parents=True, exist_ok=True)
            welcomed_file().touch()
        except OSError as error:
            _log.warning("the welcome will be shown again: %s", type(error).__name__)
        self.closed.emit()
