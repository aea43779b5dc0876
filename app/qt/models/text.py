"""What the window of models says about a model: facts, whether it fits, how its download goes. Holds no widget."""

from __future__ import annotations

from collections.abc import Sequence

from app.memory.holders import MemoryHolder
from app.models.download import Download, DownloadState
from app.models.model_list import ListedModel, Origin
from app.translation import Translator, UserText
from inference.byte_size import size_text
from inference.engine.memory_plan import LEAST_CONTEXT_TOKENS
from inference.request import EngineReading, ModelPlan

TOKENS_PER_PAGE = 500
SEPARATOR = " · "
# The catalog's own words, for the translators.
LICENCE_NOTES = (UserText("For non-commercial research only. Read the licence before you use it at work."),)


def parameters_text(count: int) -> str:
    """1.5B, 494M."""
    return f"{count / 1e9:.2g}B" if count >= 1e9 else f"{count / 1e6:.0f}M"


def facts_line(model: ListedModel, translator: Translator) -> str:
    """What it is for, parameters, quantization, size, licence: what is known of them."""
    tr = translator.tr
    parts = [tr("only for tests")] if model.for_tests else []
    parts += [tr("{count} parameters", count=parameters_text(model.parameters))] if model.parameters else []
    parts += [model.quantization] if model.quantization else []
    if model.num_bytes:
        size = size_text(model.num_bytes)
        parts.append(tr("{size} on the disk", size=size) if model.path is not None else size)
    elif model.about_bytes:
        parts.append(tr("about {size}", size=size_text(model.about_bytes)))
    if model.licence:
        parts.append(model.licence)
    elif model.origin in (Origin.FOLDER, Origin.ADDED) and not model.problem:
        parts.append(tr("licence not stated"))
    return SEPARATOR.join(parts)


def licence_note(model: ListedModel, translator: Translator) -> str:
    """What to know before using it; the catalog's words where nobody has translated them."""
    return translator.tr(model.licence_note) if model.licence_note else ""


def fit_line(plan: ModelPlan, leaves: str, translator: Translator) -> str:
    """Whether it fits, in numbers.

    Args:
        leaves: the resident model that would leave, "" where none is or it is the same.
    """
    tr = translator.tr
    needed, available = size_text(plan.needed_bytes), size_text(plan.available_bytes)
    on_gpu = plan.device != "cpu"
    if plan.fits and leaves and plan.freed_bytes:
        text = tr("Fits: needs {needed} of {free} once {model} has left", needed=needed, free=available, model=leaves)
    elif plan.fits:
        text = tr("Fits: needs {needed} of {free}", needed=needed, free=available)
    elif leaves and plan.freed_bytes:
        text = tr(
            "Does not fit: needs {needed}, and {free} would be free once {model} has left",
            needed=needed,
            free=available,
            model=leaves,
        )
    else:
        text = tr("Does not fit: needs {needed}, and {free} are free", needed=needed, free=available)
    if on_gpu:
        return text + SEPARATOR + tr("on the GPU")
    return text + SEPARATOR + tr("on the CPU, not the GPU") if plan.fallback_reason else text


def cure_line(plan: ModelPlan, holders: Sequence[MemoryHolder], translator: Translator) -> str:
    """What to do where a plan does not fit."""
    tr = translator.tr
    missing = size_text(plan.needed_bytes - plan.available_bytes)
    if plan.device != "cpu":
        cure = tr(
            "Close programs that use the GPU, a game or a video editor for example: {missing} are missing.",
            missing=missing,
        )
    elif holders:
        names = ", ".join(f"{holder.name} ({size_text(holder.num_bytes)})" for holder in holders)
        cure = tr("{missing} are missing. These hold the most: {programs}.", missing=missing, programs=names)
    else:
        cure = tr(
            "Close programs that hold much memory, a browser for example: {missing} are missing.", missing=missing
        )
    if plan.largest_context_tokens >= LEAST_CONTEXT_TOKENS:
        shorter = tr("A context of {tokens} tokens would fit.", tokens=f"{plan.largest_context_tokens:,}")
        return f"{shorter} {cure}"
    return cure


def advice_line(model: ListedModel, total_ram_bytes: int, translator: Translator) -> str:
    """What is known before a download: the memory that its makers' sizes ask for."""
    if not model.min_ram_bytes:
        return ""
    tr = translator.tr
    needed, present = size_text(model.min_ram_bytes), size_text(total_ram_bytes)
    if model.min_ram_bytes > total_ram_bytes:
        return tr(
            "Too large for this machine: wants {needed} of memory, and it has {present}", needed=needed, present=present
        )
    return tr("Suits this machine: wants {needed} of memory, and it has {present}", needed=needed, present=present)


def download_line(download: Download, translator: Translator) -> str:
    """How a download goes: "312 MB of 1.04 GB · 8.4 MB a second · 2 min left"."""
    tr, state = translator.tr, download.state
    if state is DownloadState.CHECKING:
        return tr("Checking that every byte is right…")
    amount = _amount(download, translator)
    if state is DownloadState.STOPPING:
        return SEPARATOR.join([tr("Stopping…"), *amount])
    if state is DownloadState.PAUSED:
        return SEPARATOR.join([tr("Paused"), *amount])
    if state is DownloadState.FAILED:
        return SEPARATOR.join([tr("The download stopped"), *amount])
    if not amount and state is DownloadState.RUNNING:
        return tr("Looking for the best source…")
    parts = [*amount]
    if download.rate_bytes_s > 0:
        parts.append(tr("{size} a second", size=size_text(round(download.rate_bytes_s))))
    if (left := download.remaining_s) is not None:
        parts.append(_time_left(left, translator))
    return SEPARATOR.join(parts)


def _amount(download: Download, translator: Translator) -> list[str]:
    done, total = size_text(download.done_bytes), size_text(download.total_bytes)
    if download.done_bytes and download.total_bytes:
        return [translator.tr("{done} of {total}", done=done, total=total)]
    return [done] if download.done_bytes else []


def _time_left(seconds: float, translator: Translator) -> str:
    tr = translator.tr
    if seconds < 90:
        return tr("{seconds} s left", seconds=max(1, round(seconds)))
    if seconds < 5400:
        return tr("{minutes} min left", minutes=round(seconds / 60))
    return tr("{hours} h left", hours=f"{seconds / 3600:.1f}")


def resident_line(reading: EngineReading, translator: Translator) -> str:
    """What the resident model holds: "1.61 GB: weights 1.04 GB, context 448 MB, ..."."""
    tr = translator.tr
    return tr(
        "{total}: weights {weights}, context {context}, workspace {workspace}",
        total=size_text(reading.weight_bytes + reading.kv_bytes + reading.workspace_bytes),
        weights=size_text(reading.weight_bytes),
        context=size_text(reading.kv_bytes),
        workspace=size_text(reading.workspace_bytes),
    )


def context_text(tokens: int, translator: Translator) -> str:
    """A context in tokens, and in pages, which people know."""
    pages = max(1, round(tokens / TOKENS_PER_PAGE))
    return translator.tr("{tokens} tokens, about {pages} pages", tokens=f"{tokens:,}", pages=pages)
