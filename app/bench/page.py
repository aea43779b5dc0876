"""The page of a benchmark: our figures and the peers' in one table, memory, and the floor."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, TTFT_MS, WALL_MS, Figures
from app.bench.peers import PeerResult
from app.bench.protocol import CHAT, DECODE, PREFILL, Case
from app.bench.report import Report, memory_limit_bytes

WIDTH = 100
_ROWS = {
    CHAT: (TTFT_MS, DECODE_TOK_S, WALL_MS),
    PREFILL: (PREFILL_TOK_S, TTFT_MS),
    DECODE: (DECODE_TOK_S,),
}
_UNITS = {PREFILL_TOK_S: "tok/s", DECODE_TOK_S: "tok/s", TTFT_MS: "TTFT ms", WALL_MS: "total ms"}
_TIMES = (TTFT_MS, WALL_MS)
_RATIO_WIDTH = 6


def print_page(report: Report, console: Console | None = None) -> None:
    """Writes the page; where no terminal says otherwise, for 100 columns."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(page(report))


def page(report: Report) -> Group:
    """All parts of the page."""
    parts: list[Text | Table] = [Text("\n".join(_head(report))), _speeds(report)]
    parts += [Text("\n".join(lines)) for lines in (list(_peer_lines(report)), list(_memory(report))) if lines]
    if report.ours.values and any(case.what == DECODE for case in report.plan.cases):
        parts.append(_floor(report))
    spaced: list[Text | Table] = [part for item in parts for part in (item, Text())]
    return Group(*spaced)


def _head(report: Report) -> Iterator[str]:
    loaded, machine = report.loaded, report.machine
    on_cpu = f"{machine.cpu}, {loaded.threads} threads"
    where = "; ".join(machine.gpus) or "GPU" if loaded.device_peak_bytes or loaded.backend == "cuda" else on_cpu
    yield f"{loaded.model}, backend {loaded.backend}, context {loaded.context_tokens:,}"
    yield where
    yield f"{machine.date}, {machine.system}, Python {machine.python}"
    yield f"$ {machine.command}"
    first, *more = loaded.load_s
    again = f", again {min(more):.2f} s at best" if more else ""
    yield f"load {first:.2f} s{again}; medians of {report.plan.repeats} after one that does not count"


def _speeds(report: Report) -> Table:
    shown = [peer for peer in report.peers if peer.figures.values]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("DeskInfer", justify="right", no_wrap=True)
    for peer in shown:
        table.add_column(escape(peer.name), justify="right", overflow="fold")
    before = ""
    for case in report.plan.cases:
        if before and before != case.what:
            table.add_row()
        before, label = case.what, case.label
        names = [n for n in _ROWS[case.what] if any(f.median(case, n) for f in _all_figures(report))]
        for name in names or _ROWS[case.what][:1]:
            table.add_row(label, _UNITS[name], *_cells(report, shown, case, name))
            label = ""
    return table


def _all_figures(report: Report) -> list[Figures]:
    return [report.ours, *(peer.figures for peer in report.peers)]


def _cells(report: Report, shown: list[PeerResult], case: Case, name: str) -> Iterator[Text]:
    ours = report.ours.median(case, name)
    yield Text(_number(ours), style="bold")
    for peer in shown:
        theirs = peer.figures.median(case, name)
        cell = Text(_number(theirs))
        if ours and theirs:
            ratio = theirs / ours if name in _TIMES else ours / theirs
            shown_ratio = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
            cell.append(f"{shown_ratio}x".rjust(_RATIO_WIDTH), style="green" if ratio >= 1 else "red")
        else:
            cell.append(" " * _RATIO_WIDTH)
        yield cell


def _peer_lines(report: Report) -> Iterator[str]:
    if any(peer.figures.values for peer in report.peers):
        yield "1.50x behind a figure: DeskInfer is 1.50 times as fast. TTFT: time to first token."
    for peer in report.peers:
        if peer.skipped:
            yield f"{peer.name} skipped: {peer.skipped}"
            continue
        memory = f", {_mb(peer.peak_bytes)} MB on its device" if peer.peak_bytes else ""
        if peer.note or memory:
            yield f"{peer.name}: {peer.note}{memory}"
        if peer.linears_ms:
            times = ", ".join(f"{ms:.2f} ms for {n} token{'s' * (n > 1)}" for n, ms in peer.linears_ms.items())
            most = f"; at most {1000 / peer.linears_ms[1]:,.0f} tok/s" if peer.linears_ms.get(1) else ""
            yield f"{peer.name}, all linear layers and the head: {times}{most}"
    yield from (f"left out: {reason}" for reason in report.skipped)


def _memory(report: Report) -> Iterator[str]:
    loaded = report.loaded
    parts = {"weights": loaded.weight_bytes, "KV": loaded.kv_bytes, "workspace": loaded.workspace_bytes}
    line = ", ".join(f"{name} {_mb(size)} MB" for name, size in parts.items() if size)
    yield line
    if loaded.device_peak_bytes:
        peak, over = loaded.device_peak_bytes, loaded.device_peak_bytes / max(1, sum(parts.values())) - 1
        yield f"on the GPU at most {_mb(peak)} MB ({peak / 2**30:.3f} GiB) reserved, {over:+.1%} to the plan"
    limit = memory_limit_bytes(loaded.file_bytes)
    host = f"process {_mb(loaded.host_peak_bytes)} MB at most"
    if loaded.file_bytes and not loaded.device_peak_bytes:
        fits = "within" if loaded.host_peak_bytes <= limit else "ABOVE"
        host += f", {fits} the limit of {_mb(limit)} MB for a file of {_mb(loaded.file_bytes)} MB"
    yield host


def _floor(report: Report) -> Table:
    rate = report.roofline.read_bytes_s
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=f"The floor of decoding: this device reads {rate / 1e9:,.1f} GB/s" if rate else "Bytes of decoding",
        title_justify="left",
        title_style="bold",
    )
    for name in ("tokens in the cache", "MB a token", "floor tok/s", "DeskInfer tok/s", "share", "GB/s"):
        table.add_column(name, justify="right")
    for case in report.plan.cases:
        ours = report.ours.median(case, DECODE_TOK_S)
        if case.what == DECODE and ours:
            context = report.context_at(case.n)
            size, floor = report.roofline.token_bytes(context), report.roofline.floor_tok_s(context)
            share = f"{ours / floor:.0%}" if floor else "-"
            cells = (f"{size / 1e6:,.1f}", _number(floor or None), _number(ours), share, f"{ours * size / 1e9:,.1f}")
            table.add_row(f"{context:,.0f}", *cells)
    return table


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 20 else f"{value:,.2f}"
