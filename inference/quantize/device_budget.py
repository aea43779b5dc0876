"""How much of a device's memory is left for weights beside a context: what scheme auto fills."""

from __future__ import annotations

from inference.backends.cuda_memory import workspace_bytes
from inference.backends.cuda_plan import MAX_ROWS, PREFILL_CHUNK, RESERVE_BYTES, check_shape, kv_page_bytes
from inference.engine.kv_cache import pages_for
from inference.errors import BackendUnavailableError, InvalidRequestError
from inference.formats.weight_shapes import weight_shapes
from inference.models.model_spec import ModelSpec

_SM_COUNT = 32
"""More than a card has whose memory is so short that bits are counted; more SMs take more memory."""


def matrix_budget(spec: ModelSpec, fit_bytes: int, context_tokens: int) -> int:
    """Bytes that the matrices on the device may have; negative where there is no room at all.

    An embedding of its own is not among them: its rows are read from the host's memory.

    Raises:
        InvalidRequestError: no GPU runs a model of that shape.
    """
    try:
        check_shape(spec)
    except BackendUnavailableError as error:
        raise InvalidRequestError(
            f"Scheme auto fills the memory of a GPU, but {error.reason} Choose w4, w4-all, mixed or w3."
        ) from error
    vectors = sum(4 * shape[0] for shape in weight_shapes(spec).values() if len(shape) == 1)
    kv_bytes = pages_for(context_tokens) * kv_page_bytes(spec)
    beside = workspace_bytes(spec, PREFILL_CHUNK + MAX_ROWS, _SM_COUNT) + RESERVE_BYTES
    return fit_bytes - kv_bytes - beside - vectors
