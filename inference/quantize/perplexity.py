"""Perplexity of a model on a text, by any backend: what quantization loses, and whether two backends agree.

    python -m inference.quantize.perplexity MODEL [TEXT_FILE] [--backend cpu] [--tokens 20000]

The text's tokens are cut into windows of 512; each window starts anew, and every token after its first is scored. The
result is e to the mean of the negative log-probabilities, which are summed in float64: the same input gives the same
figure. Without a file the text is Python's own language reference, which comes with every interpreter. A file NAME.npy,
as `--save-ids` writes it, holds token ids: so a machine without a tokenizer, or another Python, scores the same text.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from inference.backends.backend import PAGE_SIZE, Backend, Batch, create_backend
from inference.engine.decoder import Decoder, load_weights
from inference.engine.kv_cache import pages_for
from inference.errors import InferenceError, InvalidRequestError
from inference.formats.model_file import open_model
from inference.formats.model_source import ModelSource
from inference.models.rope import inv_freq
from inference.quantize.text_file import read_text_file

WINDOW = 512
CHUNK = 128
"""Tokens of a step; logits of all of them are in memory at once."""


@runtime_checkable
class DeviceBackend(Protocol):
    """A backend whose arrays are not NumPy's: its steps are prepared, and their results read."""

    @property
    def max_logit_rows(self) -> int: ...

    def prepare_prefill(self, batch: Batch) -> None: ...

    def read(self, rows: Any) -> NDArray[np.float32]: ...


OnWindow = Callable[[int, int, float], None]


@dataclass(frozen=True, slots=True)
class Perplexity:
    """A measurement.

    Attributes:
        negative_log_likelihood: mean over the scored tokens, in nats.
        scored: tokens that were scored.
        text_sha256: of the token ids, so that figures of different texts are not compared.
    """

    negative_log_likelihood: float
    scored: int
    text_sha256: str

    @property
    def value(self) -> float:
        """Perplexity."""
        return math.exp(self.negative_log_likelihood)


def reference_text() -> str:
    """Python's language reference as the interpreter's `help` has it, some 600 kB; it differs between versions."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def measure_perplexity(
    source: ModelSource,
    backend: Backend,
    token_ids: Sequence[int] | NDArray[np.int32],
    *,
    window: int = WINDOW,
    on_window: OnWindow | None = None,
) -> Perplexity:
    """Loads the model into the backend and scores the tokens; closes neither.

    Args:
        token_ids: at least two.
        on_window: called with (tokens scored, tokens to score, perplexity so far) after each window.

    Raises:
        InvalidRequestError: too few tokens, or a window that the model was not trained for.
    """
    spec = source.spec
    if len(token_ids) < 2 or not 2 <= window <= spec.max_context:
        raise InvalidRequestError(
            f"{len(token_ids)} tokens in windows of {window} cannot be scored: there must be two or more, in windows of"
            f" 2 to {spec.max_context}."
        )
    tensors = {name: source.tensor_kind(name) for name in source.tensor_names()}
    backend.begin_load(spec, backend.planned_model_bytes(spec, tensors))
    decoder = Decoder(spec, backend, load_weights(source, backend))
    backend.allocate(spec, inv_freq(spec), pages_for(window), CHUNK)
    ids = np.asarray(token_ids, dtype=np.int32)
    windows = [ids[start : start + window] for start in range(0, len(ids), window)]
    to_score = sum(len(one) - 1 for one in windows)
    total, scored = 0.0, 0
    for one in windows:
        total += _score(decoder, backend, one)
        scored += len(one) - 1
        if on_window is not None and scored:
            on_window(scored, to_score, math.exp(total / scored))
    return Perplexity(total / scored, scored, hashlib.sha256(ids.tobytes()).hexdigest())


def _score(decoder: Decoder, backend: Backend, ids: NDArray[np.int32]) -> float:
    """Sum of the negative log-probabilities of ids[1:], each given all before it."""
    pages = np.arange(pages_for(len(ids)), dtype=np.int32)[None]
    total = 0.0
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        targets = ids[start + 1 : start + 1 + len(chunk)]
        batch = Batch(
            token_ids=chunk,
            positions=np.arange(start, start + len(chunk), dtype=np.int32),
            query_starts=np.array([0, len(chunk)], dtype=np.int32),
            context_lengths=np.array([start + len(chunk)], dtype=np.int32),
            page_tables=pages[:, : -(-(start + len(chunk)) // PAGE_SIZE)],
            logit_rows=np.arange(len(targets), dtype=np.int32),
        )
        for row, target in zip(_logits(decoder, backend, batch), targets, strict=True):
            wide = row.astype(np.float64)
            top = wide.max()
            total += math.log(np.exp(wide - top).sum()) + top - wide[target]
    return float(total)


def _logits(decoder: Decoder, backend: Backend, batch: Batch) -> Iterator[NDArray[np.float32]]:
    """The rows of logits that the batch asks for. A GPU has room for a few at a time: there the step is run again."""
    if not isinstance(backend, DeviceBackend):
        rows = decoder.forward(batch)
        assert rows is not None, "nothing stops this step"
        yield from rows
        return
    for start in range(0, len(batch.logit_rows), backend.max_logit_rows):
        part = replace(batch, logit_rows=batch.logit_rows[start : start + backend.max_logit_rows])
        backend.prepare_prefill(part)
        yield from backend.read(decoder.forward(part))


def token_ids_of(source: ModelSource, text: Path | None) -> NDArray[np.int32]:
    """The ids of a text, of a file of ids, or of the text that comes with Python.

    Raises:
        InvalidRequestError: the file cannot be read, or holds no ids of this model.
    """
    if text is not None and text.suffix == ".npy":
        return _saved_ids(text, source.spec.vocab_size)
    # Not needed where ids are given.
    from inference.text.tokenizer import Tokenizer

    content = reference_text() if text is None else read_text_file(text)
    return np.asarray(Tokenizer.from_data(source.tokenizer_data()).encode_text(content), np.int32)


def _saved_ids(path: Path, vocab_size: int) -> NDArray[np.int32]:
    try:
        ids = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror or error}. Check the path.") from error
    except (ValueError, EOFError) as error:
        raise InvalidRequestError(f"{path} is no array of NumPy's. Write it with --save-ids.") from error
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InvalidRequestError(f"{path} holds no list of whole numbers. Write it with --save-ids.")
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise InvalidRequestError(
            f"{path} holds ids from {ids.min()} to {ids.max()}, but this model's are 0 to {vocab_size - 1}. Take the"
            " model that they were written with."
        )
    return ids.astype(np.int32)


def _open(model: str) -> ModelSource:
    if Path(model).exists():
        return open_model(Path(model))
    from inference.store.model_store import ModelStore

    return open_model(ModelStore().resolve(model))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="perplexity", description="Perplexity of a model on a text.")
    parser.add_argument("model", help="a catalog id or a path")
    parser.add_argument("text", nargs="?", type=Path, help="a UTF-8 file, or token ids as .npy")
    parser.add_argument("--save-ids", type=Path, metavar="FILE.npy", help="write the ids that are scored")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--tokens", type=int, default=20_000, help="the most to score")
    chosen = parser.parse_args(arguments)
    if chosen.tokens < 2:
        parser.error(f"argument --tokens: {chosen.tokens} cannot be scored; give 2 or more")
    try:
        _measure(chosen)
    except (InferenceError, OSError) as error:
        sys.exit(f"perplexity: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _measure(chosen: argparse.Namespace) -> None:
    source = _open(chosen.model)
    # The head's short cut for unlikely tokens is for choosing, not for measuring.
    options = {"exact_logits": True} if chosen.backend == "cpu" else {}
    try:
        backend = create_backend(chosen.backend, **options)
    except BaseException:
        source.close()
        raise
    try:
        ids = token_ids_of(source, chosen.text)[: chosen.tokens]
        if chosen.save_ids is not None:
            np.save(chosen.save_ids, ids)
        found = measure_perplexity(source, backend, ids, on_window=_show)
    finally:
        source.close()
        backend.close()
    sys.stdout.write(
        f"{found.value:.4f} perplexity ({found.negative_log_likelihood:.6f} nats) over {found.scored} tokens"
        f" of {found.text_sha256[:16]}, {chosen.backend}, {chosen.model}\n"
    )


def _show(scored: int, to_score: int, value: float) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{scored} of {to_score} tokens, perplexity {value:.3f}  ")


if __name__ == "__main__":
    main()
