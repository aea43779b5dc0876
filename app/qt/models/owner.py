"""Runs the window of models: looks at the disk, asks for plans, downloads, switches, and keeps the server's address."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import psutil
from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.engine_client import EngineClient
from app.memory.holders import MemoryHolder, largest_holders
from app.models.download import Download, DownloadState, ModelDownloads
from app.models.files import ModelFiles
from app.models.model_list import (
    ListedModel,
    ModelList,
    Origin,
    same_model,
    split_paths,
    with_names_apart,
    with_path,
    without_path,
)
from app.qt.bridge import Bridge
from app.qt.error_text import error_notice
from app.qt.look.notice import Notice
from app.qt.models.row import RowAction, RowState
from app.qt.models.switcher import ModelSwitcher
from app.qt.remote.owner import RemoteOwner
from app.qt.status import Status
from app.remote.address import is_remote
from app.settings.settings import Settings, SettingsFileError
from app.translation import Translator, UserText
from inference.errors import InferenceError
from inference.request import ModelEvent, ModelPlan, ModelState
from inference.store.download import DownloadOptions
from inference.store.model_store import ModelStore

# Other programs take memory and give it back.
REFRESH_MS = 15_000


class ModelOwner(QObject):
    """Owns the one window of models. UI thread only.

    Attributes:
        window: None until it is opened for the first time.
        downloads: what is being fetched.
        meter: makes the memory meter of the window.

    Signals:
        arrived: a model has been downloaded; its title.
        free_requested: the model is to leave the memory.
    """

    arrived = Signal(str)
    free_requested = Signal()

    def __init__(
        self,
        settings: Settings,
        translator: Translator,
        client: EngineClient,
        default_model: Callable[[], str],
        bridge: Bridge,
        remote: RemoteOwner,
        parent: QObject | None = None,
        store: Callable[[], ModelStore] | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            default_model: which model the settings mean.
            remote: keeps the server of the settings.
            store: tests pass their own.
        """
        super().__init__(parent)
        self._settings, self._translator, self._client = settings, translator, client
        self._default_model, self._post_call = default_model, bridge.post_call
        self._open_store = store or self._store_of_settings
        self.window: ModelSwitcher | None = None
        self.meter: Callable[[], QWidget] | None = None
        self._list = ModelList(self._open_store())
        self._files = ModelFiles(self._open_store)
        self._checks: dict[str, str] = {}
        self.downloads = ModelDownloads(
            self._open_store, lambda download: bridge.post_call(partial(self._on_download, download))
        )
        self._models: tuple[ListedModel, ...] = ()
        self._plans: dict[str, ModelPlan | InferenceError] = {}
        self._holders: Sequence[MemoryHolder] = ()
        self._status = Status()
        self._round = 0
        self._is_listing = self._lists_again = self._is_closed = False
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self.plan_all)
        self.remote = remote
        self.remote.changed.connect(self.refresh)
        self.remote.noticed.connect(self._show_notice)
        settings.listen("model", self._on_setting)
        bridge.model_event.connect(self._on_model_event)

    # --- what the application calls -----------------------------------------------------------------------------

    def open(self) -> None:
        """Opens the window, or brings it to the front."""
        if self.window is None:
            self.window = ModelSwitcher(self._translator)
            if self.meter is not None:
                self.window.resident.set_meter(self.meter())
            self.window.requested.connect(self._on_requested)
            self.window.resident.free_requested.connect(self.free_requested)
            self.window.resident.context_chosen.connect(self.choose_context)
            self.window.file_added.connect(self.add_path)
            self.window.remote_requested.connect(lambda: self.remote.set_up(self.window))
            self.window.folder_requested.connect(self._show_folder)
            self.window.notice.accepted.connect(lambda: self._show_notice(None))
            self.window.looked_at.connect(self._on_looked_at)
        self.refresh()
        self.window.bring_to_front()

    def set_status(self, status: Status) -> None:
        """The engine's state has changed."""
        before, self._status = self._status, status
        self._show()
        if status.model_state is not before.model_state or status.model != before.model:
            self.plan_all()

    def _on_model_event(self, event: ModelEvent) -> None:
        """Says in the window why a model was refused."""
        if event.error is not None:
            self._show_notice(error_notice(event.error, self._translator))
        elif event.state is ModelState.LOADING:
            self._show_notice(None)

    def close(self) -> None:
        """Pauses downloads and hides the window. May be called twice."""
        self._is_closed = True
        self._timer.stop()
        self.downloads.close()
        self._files.close()
        if self.window is not None:
            self.window.hide()

    # --- looking ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Looks at the disk again, on a thread; the rows follow."""
        if self._is_listing:
            self._lists_again = True
            return
        self._is_listing = True
        added, remote = split_paths(self._settings.text("model.paths")), self.remote.address()

        def look() -> None:
            models = self._models  # stays, should the disk hold something that nobody foresaw
            try:
                models = with_names_apart(self._list.models(added, remote))
            finally:
                self._post_call(lambda: self._on_listed(models))

        threading.Thread(target=look, name="model-list", daemon=True).start()

    def plan_all(self) -> None:
        """Asks the engine what every model here would take; answers of an earlier round are dropped."""
        if self._is_closed or self.window is None or not self.window.isVisible():
            return
        self._round += 1
        context = self._settings.integer("model.context_tokens")
        for model in self._models:
            if model.path is not None and not model.problem:
                listener = partial(self._take_plan, self._round, model.id)
                self._client.plan(model.id, context, listener)

    def _take_plan(self, plan_round: int, model_id: str, plan: ModelPlan | InferenceError) -> None:
        """On the engine's thread."""
        self._post_call(lambda: self._on_plan(plan_round, model_id, plan))

    def _on_plan(self, plan_round: int, model_id: str, plan: ModelPlan | InferenceError) -> None:
        if plan_round != self._round or self._is_closed:
            return
        self._plans[model_id] = plan
        if isinstance(plan, ModelPlan) and not plan.fits and plan.device == "cpu" and not self._holders:
            self._look_for_holders()
        self._show()

    def _look_for_holders(self) -> None:
        def look() -> None:
            holders = largest_holders()

            def take() -> None:
                self._holders = holders
                self._show()

            self._post_call(take)

        threading.Thread(target=look, name="memory-holders", daemon=True).start()

    def _on_listed(self, models: tuple[ListedModel, ...]) -> None:
        self._is_listing = False
        if self._is_closed or self.window is None:
            return
        self._models = models
        self._plans = {model.id: self._plans[model.id] for model in models if model.id in self._plans}
        self.window.set_models(models)
        self._show()
        self.plan_all()
        if self._lists_again:
            self._lists_again = False
            self.refresh()

    def _on_looked_at(self, is_seen: bool) -> None:
        self._holders = ()
        if is_seen:
            self._timer.start()
            self.plan_all()
        else:
            self._timer.stop()

    # --- showing ------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if self.window is None or self._is_closed:
            return
        chosen = self._default_model()
        for model in self._models:
            self.window.show_row(self._row_state(model, chosen))
        status, meant = self._status, self._status.model or chosen
        is_here = any(model.is_here for model in self._models if same_model(model.id, meant)) or not self._models
        self.window.resident.show_engine(status, self._client.reading(), self._title_of(meant), is_here)
        plan = self._plans.get(self._id_of(chosen))
        self.window.resident.show_context(
            self._settings.integer("model.context_tokens"), plan if isinstance(plan, ModelPlan) else None
        )

    def _row_state(self, model: ListedModel, chosen: str) -> RowState:
        status = self._status
        is_meant = same_model(model.id, status.model)
        is_resident = is_meant and status.model_state is ModelState.READY and not status.remote_host
        is_leaving = not is_resident and status.model_state is ModelState.READY and not status.remote_host
        leaves = self._title_of(status.model) if is_leaving else ""
        download = self.downloads.get(model.id)
        if download is None and model.can_be_fetched and model.partial_bytes:
            download = Download(model.id, DownloadState.PAUSED, model.partial_bytes, model.num_bytes)
        return RowState(
            model=model,
            is_in_use=same_model(model.id, chosen),
            is_resident=is_resident,
            loading=status.progress if is_meant and status.model_state is ModelState.LOADING else None,
            plan=self._plans.get(model.id),
            download=download,
            leaves=leaves,
            total_ram_bytes=psutil.virtual_memory().total,
            holders=self._holders,
            checking=self._checks.get(model.id, ""),
        )

    def _id_of(self, name: str) -> str:
        return next((model.id for model in self._models if same_model(model.id, name)), name)

    def _title_of(self, name: str) -> str:
        return next((model.title for model in self._models if same_model(model.id, name)), "")

    def _show_notice(self, notice: Notice | None) -> None:
        if self.window is not None:
            self.window.show_notice(notice)

    # --- doing --------------------------------------------------------------------------------------------------

    def _on_requested(self, model_id: str, action: RowAction) -> None:
        model = next((model for model in self._models if model.id == model_id), None)
        if model is None:
            return
        self._show_notice(None)
        if action is RowAction.USE:
            self.use(model)
        elif action is RowAction.USE_SHORTER:
            plan = self._plans.get(model_id)
            if isinstance(plan, ModelPlan):
                self._set({"model.context_tokens": plan.largest_context_tokens})
            self.use(model)
        elif action is RowAction.DOWNLOAD:
            self.downloads.start(model_id)
        elif action is RowAction.PAUSE:
            self.downloads.pause(model_id)
        elif action is RowAction.CANCEL:
            self.downloads.cancel(model_id)
        elif action is RowAction.SET_UP:
            self.remote.set_up(self.window)
        else:
            self._on_file_requested(model, action)

    def _on_file_requested(self, model: ListedModel, action: RowAction) -> None:
        assert model.path is not None, "only rows of models that are here ask for it"
        if action is RowAction.CHECK:
            self._checks[model.id] = self._translator.tr("Checking that every byte is right…")
            self._files.check(model.id, partial(self._post, partial(self._on_checked, model.id)))
            self._show()
        elif action is RowAction.REVEAL:
            folder = model.path if model.path.is_dir() else model.path.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        elif action is RowAction.FORGET:
            self._set({"model.paths": without_path(self._settings.text("model.paths"), model.id)})
            self.refresh()
        elif action is RowAction.DELETE and self.window is not None and self.window.confirm_deletion(model):
            self._delete(model)

    def use(self, model: ListedModel) -> None:
        """Makes a model the one that answers, from here on and after the next start."""
        if model.origin is Origin.REMOTE:
            self._set({"remote.enabled": True})
            self._client.load(model.id)
        else:
            self._set({"remote.enabled": False, "model.default": model.id})
            self._client.load(model.id)
        self._show()

    def choose_context(self, tokens: int) -> None:
        """Changes how much text a model holds; the one in memory is loaded anew by the settings' own listener."""
        self._set({"model.context_tokens": tokens})
        self.plan_all()
        self._show()

    def add_path(self, path: str) -> None:
        """Adds a file or folder of the user to the list."""
        tr = self._translator.tr
        try:
            self._set({"model.paths": with_path(self._settings.text("model.paths"), path)})
        except ValueError as error:
            text = tr('The path has the sign "{sign}" in it. Rename the folder, or move the model.', sign=str(error))
            self._show_notice(Notice(tr("This cannot be added"), text, is_error=True))
            return
        self.refresh()

    def _delete(self, model: ListedModel) -> None:
        """Deletes a model, out of memory first: an open file cannot be deleted everywhere."""
        if same_model(model.id, self._status.model) and not is_remote(self._status.model):
            self._client.unload()
        self._checks.pop(model.id, None)
        self._files.delete(model.id, partial(self._post, self._on_deleted))

    def _on_deleted(self, told: UserText | InferenceError) -> None:
        if isinstance(told, InferenceError):
            self._show_notice(error_notice(told, self._translator))
        self.refresh()

    def _on_checked(self, model_id: str, told: UserText | InferenceError) -> None:
        if isinstance(told, InferenceError):
            self._checks.pop(model_id, None)
            self._show_notice(error_notice(told, self._translator))
        else:
            self._checks[model_id] = self._translator.tr(told)
        self._show()

    def _post(self, take: Callable[[UserText | InferenceError], None], told: UserText | InferenceError) -> None:
        """Any thread."""
        self._post_call(lambda: take(told))

    def _on_download(self, download: Download) -> None:
        if self._is_closed:
            return
        if download.state in (DownloadState.DONE, DownloadState.CANCELLED):
            self.downloads.forget(download.model)
            if download.state is DownloadState.DONE:
                is_meant = same_model(download.model, self._default_model())
                if is_meant and self._status.model_state is not ModelState.READY:
                    self._client.load(download.model)
                self.arrived.emit(self._title_of(download.model) or download.model)
            self.refresh()
        self._show()

    def _show_folder(self) -> None:
        root = self._open_store().root
        root.mkdir(parents=True, exist_ok=True)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(root)))

    # --- settings -----------------------------------------------------------------------------------------------

    def _on_setting(self, key: str, _value: object) -> None:
        if key in ("model.default", "model.context_tokens"):
            self._show()
            self.plan_all()

    def _set(self, values: dict[str, bool | int | str]) -> None:
        for key, value in values.items():
            self._settings.set(key, value)
        try:
            self._settings.save()
        except SettingsFileError as error:
            tr = self._translator.tr
            self._show_notice(Notice(tr("The settings were not saved"), tr(error.text), is_error=True))

    def _store_of_settings(self) -> ModelStore:
        endpoint = self._settings.text("hub.endpoint") or None
        return ModelStore(options=DownloadOptions(hub_endpoint=endpoint))
