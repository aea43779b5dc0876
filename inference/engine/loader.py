"""From a model's name to an engine: open, choose a backend, plan the memory, load, allocate."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from inference.backends.backend import Backend, create_backend
from inference.backends.cuda_presence import has_nvidia_gpu
from inference.engine.decoder import EMBEDDING, HEAD, Decoder, load_weights
from inference.engine.device_lock import DeviceLocks, default_lock_dir
from inference.engine.engine import Engine, EngineSizes
from inference.engine.host_memory import available_bytes
from inference.engine.memory_plan import RESERVE_BYTES, MemoryEstimate, estimate_memory
from inference.engine.options import DEFAULT_CONTEXT_TOKENS, EngineOptions
from inference.engine.residency import Residency
from inference.engine.runner import HostRunner, Runner
from inference.errors import BackendUnavailableError, OutOfMemoryError
from inference.formats.model_file import open_model
from inference.formats.model_source import ModelSource
from inference.formats.random_model import PREFIX, RandomModel
from inference.models.rope import inv_freq
from inference.request import ModelEvent, ModelPlan
from inference.store.model_store import ModelStore
from inference.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ChosenBackend:
    """A backend, and why it is not the preferred one ("" where it is)."""

    backend: Backend
    fallback_reason: str = ""


def choose_backend(options: EngineOptions) -> ChosenBackend:
    """The backend that the options name; "auto" is the GPU where there is one that works, else the CPU.

    Raises:
        BackendUnavailableError: none works here.
    """
    if options.backend == "cuda":
        return ChosenBackend(create_backend("cuda", vram_bytes=options.vram_bytes))
    if options.backend != "auto":
        packed = {"packed": True} if options.backend == "torch" else {}
        return ChosenBackend(create_backend(options.backend, threads=options.threads, **packed))
    if not has_nvidia_gpu():
        return host_backend(options)
    try:
        return ChosenBackend(create_backend("cuda", vram_bytes=options.vram_bytes))
    except BackendUnavailableError as error:
        return host_backend(options, error.reason)


def host_backend(options: EngineOptions, gpu_reason: str = "") -> ChosenBackend:
    """Our own kernels on the CPU, else torch with packed weights.

    Args:
        gpu_reason: why the GPU is not used, "" where there is none.

    Raises:
        BackendUnavailableError: neither works here.
    """
    if gpu_reason:
        log.warning("Falling back to the CPU: %s", gpu_reason)
    try:
        return ChosenBackend(create_backend("cpu", threads=options.threads), gpu_reason)
    except BackendUnavailableError as error:
        log.warning("Falling back to torch: %s", error.reason)
        reason = f"{gpu_reason} {error.reason}".strip()
        return ChosenBackend(create_backend("torch", threads=options.threads, packed=True), reason)


def open_source(name: str, models_dir: Path | None = None) -> ModelSource:
    """Opens a catalog id, a path, or a `random:` model; see open_model for what it raises."""
    if name.startswith(PREFIX):
        return RandomModel(name)
    return open_model(ModelStore(models_dir).resolve(name))


class PlannedModel:
    """A model that is open, checked and known to fit, but not loaded. Load it once, or close it."""

    def __init__(self, name: str, options: EngineOptions, freed_bytes: int = 0, freed_device: str = "cpu") -> None:
        """Opens a model.

        Args:
            name: catalog id or path.
            freed_bytes: what the resident model will have given back by the time of `load`.
            freed_device: where.

        Raises:
            ModelNotFoundError, ModelFormatError, UnsupportedModelError: it cannot be opened.
            BackendUnavailableError: no backend works here, or the one that is asked for does not run this model.
            OutOfMemoryError, InvalidRequestError: it does not fit; the context is out of range.
        """
        self.name = name
        self._options = options
        self._source = open_source(name, options.models_dir)
        self._backend: Backend | None = None
        planned = False
        try:
            # Before the weights: a vocabulary that cannot be used is no reason to unload anything. Opening a GPU takes
            # as long and waits for the driver, so both are done at once.
            with ThreadPoolExecutor(1, thread_name_prefix="tokenizer") as thread:
                tokenizer = thread.submit(lambda: Tokenizer.from_data(self._source.tokenizer_data()))
                self._choose(choose_backend(options), freed_bytes, freed_device)
                self._tokenizer = tokenizer.result()
            planned = True
        finally:
            if not planned:
                self.close()

    def _choose(self, chosen: ChosenBackend, freed_bytes: int, freed_device: str) -> None:
        """Takes a backend and plans for it; the CPU for what the GPU refuses, where the choice is ours."""
        self._backend, self.fallback_reason = chosen.backend, chosen.fallback_reason
        on_gpu = chosen.backend.device != "cpu"
        try:
            freed = freed_bytes if chosen.backend.device == freed_device else 0
            self.memory = _estimate(self._source, chosen.backend, self._options, freed).checked()
        except (OutOfMemoryError, BackendUnavailableError) as error:
            if not on_gpu or self._options.backend != "auto":
                raise
            chosen.backend.close()
            self._backend = None
            reason = error.reason if isinstance(error, BackendUnavailableError) else str(error)
            self._choose(host_backend(self._options, reason), freed_bytes, freed_device)

    @property
    def device(self) -> str:
        """What will hold it: "cpu", or a GPU's name for locks."""
        return self.memory.device

    def load(
        self, on_progress: Callable[[float], None] | None = None, should_stop: Callable[[], bool] | None = None
    ) -> Engine:
        """Loads the weights and allocates everything; closes the model's file whatever happens.

        Args:
            on_progress: gets the share that is done, 0 to 1.
            should_stop: asked before each tensor.

        Raises:
            LoadStopped: `should_stop` said so.
            ModelFormatError: a tensor is missing or damaged.
        """
        backend, plan, spec = self._backend, self.memory, self._source.spec
        assert backend is not None, "a model is loaded once, and not after it was closed"
        prefill_chunk = _prefill_chunk(backend, self._options)
        try:
            backend.begin_load(spec, plan.weight_bytes)
            decoder = Decoder(spec, backend, load_weights(self._source, backend, on_progress, should_stop))
            backend.allocate(spec, inv_freq(spec), plan.num_pages, prefill_chunk + backend.max_running)
            runner = _runner(decoder, backend)
            self._backend = None
        finally:
            self.close()
        sizes = EngineSizes(
            num_pages=plan.num_pages,
            context_tokens=plan.context_tokens,
            prefill_chunk=prefill_chunk,
            max_running=backend.max_running,
            weight_bytes=plan.weight_bytes,
            kv_bytes=plan.kv_bytes,
            workspace_bytes=plan.workspace_bytes,
            vocab_size=spec.vocab_size,
        )

        def peak_bytes() -> int:
            return backend.peak_bytes

        return Engine(runner, backend, self._tokenizer, sizes, name=self.name, peak_bytes=peak_bytes)

    def close(self) -> None:
        """Closes the file, and the backend unless an engine has it."""
        self._source.close()
        if self._backend is not None:
            self._backend.close()
            self._backend = None


def plan_model(name: str, options: EngineOptions, freed_bytes: int = 0, freed_device: str = "cpu") -> ModelPlan:
    """What loading a model would take here, as `PlannedModel` would decide it. Reads headers; leaves nothing open.

    Args:
        freed_bytes: what the resident model would give back, and `freed_device` where.

    Raises:
        InferenceError: it cannot be opened, no backend runs it, or the context is out of range. That it does not fit
            is no error: the plan says so.
    """
    source = open_source(name, options.models_dir)
    try:
        return _plan_on(name, source, choose_backend(options), options, freed_bytes, freed_device)
    finally:
        source.close()


def _plan_on(
    name: str, source: ModelSource, chosen: ChosenBackend, options: EngineOptions, freed_bytes: int, freed_device: str
) -> ModelPlan:
    backend = chosen.backend
    freed = freed_bytes if backend.device == freed_device else 0
    may_fall_back = backend.device != "cpu" and options.backend == "auto"
    refusal: BackendUnavailableError | None = None
    try:
        estimate = _estimate(source, backend, options, freed)
        plan = _model_plan(name, source, chosen, estimate, freed)
    except BackendUnavailableError as error:
        if not may_fall_back:
            raise
        refusal = error
    finally:
        backend.close()
    if refusal is None and (plan.fits or not may_fall_back):
        return plan
    reason = plan.cure if refusal is None else refusal.reason
    return _plan_on(name, source, host_backend(options, reason), options, freed_bytes, freed_device)


def _model_plan(
    name: str, source: ModelSource, chosen: ChosenBackend, estimate: MemoryEstimate, freed_bytes: int
) -> ModelPlan:
    plan, cure = estimate.plan, ""
    try:
        estimate.checked()
    except OutOfMemoryError as error:
        cure = str(error)
    return ModelPlan(
        model=name,
        backend=chosen.backend.name,
        context_tokens=plan.context_tokens,
        weight_bytes=plan.weight_bytes,
        kv_bytes=plan.kv_bytes,
        workspace_bytes=plan.workspace_bytes,
        available_bytes=estimate.free_bytes,
        largest_context_tokens=estimate.largest_context_tokens,
        reserve_bytes=plan.reserve_bytes,
        freed_bytes=freed_bytes,
        trained_context_tokens=source.spec.max_context,
        device=plan.device,
        fallback_reason=chosen.fallback_reason,
        cure=cure,
    )


def _estimate(source: ModelSource, backend: Backend, options: EngineOptions, freed_bytes: int) -> MemoryEstimate:
    memory = backend.device_memory(freed_bytes)
    return estimate_memory(
        source.spec,
        backend.planned_model_bytes(source.spec, {name: source.tensor_kind(name) for name in _used_tensors(source)}),
        backend,
        free_bytes=available_bytes() + freed_bytes if memory is None else memory.free_bytes,
        reserve_bytes=RESERVE_BYTES if memory is None else memory.reserve_bytes,
        default_context=DEFAULT_CONTEXT_TOKENS,
        context_tokens=options.context_tokens,
        max_batch_tokens=_prefill_chunk(backend, options) + backend.max_running,
    )


def _prefill_chunk(backend: Backend, options: EngineOptions) -> int:
    return options.prefill_chunk or backend.prefill_chunk


def _runner(decoder: Decoder, backend: Backend) -> Runner:
    """What computes the backend's steps."""
    if backend.device == "cpu":
        return HostRunner(decoder)
    # Only here is it known that the GPU's libraries can be imported.
    from inference.backends.cuda_backend import CudaBackend
    from inference.engine.decode_graph import DeviceRunner

    assert isinstance(backend, CudaBackend), "the only backend with memory of its own"
    return DeviceRunner(decoder, backend)


def _used_tensors(source: ModelSource) -> list[str]:
    """Names of what will be loaded: a tied head needs no memory of its own, even where the file repeats it."""
    names = source.tensor_names()
    return [name for name in names if not (source.spec.tied_head and name == HEAD and EMBEDDING in names)]


def open_residency(options: Callable[[], EngineOptions], notify: Callable[[ModelEvent], None]) -> Residency:
    """The residency of this loader; the options are asked for at every plan."""

    def plan(name: str, freed_bytes: int, freed_device: str) -> PlannedModel:
        return PlannedModel(name, options(), freed_bytes, freed_device)

    return Residency(plan, DeviceLocks(options().lock_dir or default_lock_dir()), notify)


def open_engine(
    name: str,
    options: EngineOptions | None = None,
    on_progress: Callable[[float], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    **changes: object,
) -> Engine:
    """An engine for a catalog id or a path, in one call; for benchmarks and tests. The caller closes it.

    Residency is the worker's affair: this function asks nobody whether another model is loaded.

    Raises:
        InferenceError: see PlannedModel.
        LoadStopped: `should_stop` said so.
    """
    options = dataclasses.replace(options or EngineOptions(), **changes)  # type: ignore[arg-type]
    return PlannedModel(name, options).load(on_progress, should_stop)
