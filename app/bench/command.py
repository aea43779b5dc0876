"""`deskinfer bench`: its options, and what they mean for the run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.terminal.errors import UsageError, engine_errors, errors_on_terminal

if TYPE_CHECKING:
    from app.bench.peers import Peer
    from app.bench.protocol import Plan
    from app.bench.report import Report

_AUTO = "auto"
_CPU_DEPTHS = (0, 2048)
# 32k less the tokens to decode: the context that Qwen2.5 was trained for.
_GPU_DEPTHS = (0, 2048, 8192, 32512)
_CPU_PROMPTS, _GPU_PROMPTS = (58, 512), (58, 512, 2048)


def bench(
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="ID", help="A name, a path, or random:qwen2.5-3b:w4.")
    ] = "",
    backend: Annotated[str, typer.Option(help="auto, cuda, cpu or torch.")] = _AUTO,
    threads: Annotated[int, typer.Option(min=0, help="Of the CPU; 0: as in the settings.")] = 0,
    vram: Annotated[str, typer.Option(metavar="SIZE", help="The most to take of the GPU's memory: 3.237GiB.")] = "",
    prompt: Annotated[str, typer.Option(help="Lengths of prefills, tokens: 58,512,2048.")] = _AUTO,
    depth: Annotated[str, typer.Option(help="Tokens in the cache before decoding: 0,2048,8192.")] = _AUTO,
    decode: Annotated[int, typer.Option(min=0, help="Tokens decoded at each depth; 0: 128 on a GPU, 64.")] = 0,
    repeat: Annotated[int, typer.Option(min=1, help="Measurements of each.")] = 3,
    loads: Annotated[int, typer.Option(min=1, help="Load the model so often; the first time counts apart.")] = 1,
    chat: Annotated[bool, typer.Option(help="The two prompts in Chinese too.")] = True,
    peer: Annotated[str, typer.Option(metavar="COMMAND", help="Another engine's, printing JSON lines.")] = "",
    llama_bench: Annotated[str, typer.Option(metavar="PROGRAM", help="llama.cpp's own benchmark.")] = "",
    gguf: Annotated[str, typer.Option(metavar="FILE", help="The model that llama-bench loads.")] = "",
    server: Annotated[str, typer.Option(metavar="URL", help="An OpenAI-compatible server, such as Ollama.")] = "",
    server_model: Annotated[str, typer.Option(metavar="NAME", help="The server's model.")] = "",
    transformers: Annotated[
        str, typer.Option(metavar="DIR", help="Hugging Face's library on this model, 16 bits and NF4.")
    ] = "",
    torch_int4: Annotated[bool, typer.Option("--torch-int4", help="PyTorch's 4-bit linear layers, CUDA only.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write every measurement.")] = None,
) -> None:
    """Measure speed and memory, beside other engines in the same run.

    Prefill and decode at plain lengths, and a system prompt with two prompts in Chinese, 64 new tokens each, always the
    most probable one. A peer that cannot run is skipped with its reason.
    """
    with errors_on_terminal():
        from app.bench.page import print_page
        from app.bench.protocol import Plan
        from app.bench.run import run_bench, with_peers
        from app.engine_setup import EngineChoice, chosen_model, engine_options, load_settings

        settings = load_settings()
        on_gpu = expects_gpu(backend)
        prompts, depths = lengths(prompt, depth, on_gpu)
        plan = Plan(prompts, depths, decode or (128 if on_gpu else 64), repeat, chat)
        check_run(plan, json_file)
        name = chosen_model(settings, model)
        options = engine_options(settings, EngineChoice(backend, vram_bytes(vram)))
        options = dataclasses.replace(options, threads=threads or options.threads)
        peers = [
            *_programs(llama_bench, gguf, 0 if on_gpu else options.threads or _cores()),
            *_server(server, server_model),
            *_torch(transformers, name if torch_int4 else "", on_gpu),
        ]
        with engine_errors(EngineChoice(backend)):
            report = run_bench(name, options, plan, peer, loads)
        # Twice, so that nothing is lost where a peer takes the whole process with it or is interrupted.
        _write(report, json_file)
        report = with_peers(report, peers)
        _write(report, json_file)
        print_page(report)


def _write(report: Report, json_file: Path | None) -> None:
    if json_file is not None:
        json_file.write_text(report.as_json(), encoding="utf-8")


def check_run(plan: Plan, path: Path | None) -> None:
    """Raises UsageError where nothing is to be measured, or the file could not be written after minutes of it."""
    if not plan.cases:
        raise UsageError("There is nothing to measure. Give lengths to --prompt or --depth, or leave out --no-chat.")
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir():
        reason = "it is a directory"
    elif not folder.is_dir():
        reason = f"there is no directory {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        reason = "permission denied"
    else:
        return
    raise UsageError(f"{path} cannot be written: {reason}. Choose another file for --json.")


def numbers(text: str) -> tuple[int, ...]:
    """Reads "58,512" or "58 512". Raises UsageError."""
    try:
        found = tuple(int(word) for word in text.replace(",", " ").split())
    except ValueError as error:
        raise UsageError(f'"{text}" is no list of whole numbers. Write it like 58,512.') from error
    if any(number < 0 for number in found):
        raise UsageError(f'"{text}" holds a negative number, but lengths are 0 or more.')
    return found


def lengths(prompt: str, depth: str, on_gpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths of prefills, and depths in ascending order; those of the device where "auto" is said."""
    prompts = _GPU_PROMPTS if on_gpu else _CPU_PROMPTS
    depths = _GPU_DEPTHS if on_gpu else _CPU_DEPTHS
    return prompts if prompt == _AUTO else numbers(prompt), depths if depth == _AUTO else tuple(sorted(numbers(depth)))


def vram_bytes(text: str) -> int | None:
    """Bytes of "3.237GiB"; None for nothing. Raises UsageError."""
    from app.byte_size import ByteSizeError, byte_size

    try:
        return byte_size(text) if text else None
    except ByteSizeError as error:
        raise UsageError(str(error)) from error


def expects_gpu(backend: str) -> bool:
    """Whether a run with this backend will use a GPU: then longer contexts are measured."""
    from app.bench.machine import gpu_lines

    return backend == "cuda" or (backend == _AUTO and bool(gpu_lines()))


def _cores() -> int:
    import psutil

    return psutil.cpu_count(logical=False) or 1


def _programs(llama_bench: str, gguf: str, threads: int) -> Iterator[Peer]:
    if llama_bench:
        from app.bench.llama_bench import LlamaBench

        yield LlamaBench(llama_bench, gguf, threads)


def _server(url: str, model: str) -> Iterator[Peer]:
    if url:
        from app.bench.chat_server import ChatServer

        if not model:
            raise UsageError("A server needs the name of one of its models: --server-model NAME")
        yield ChatServer(url, model)


def _torch(directory: str, int4_model: str, on_gpu: bool) -> Iterator[Peer]:
    """Peers in processes of their own, with the libraries that they need."""
    from app.bench.peers import ModulePeer

    device = "--device=cuda" if on_gpu else "--device=cpu"
    if directory:
        for name, more in (("HF 16 bits", ()), ("HF NF4", ("--nf4",))):
            yield ModulePeer(name, "app.bench.transformers_peer", (directory, device, *more))
    if int4_model:
        yield ModulePeer("torch int4", "app.bench.torch_int4_peer", tuple(map(str, _matrices(int4_model))))


def _matrices(model: str) -> list[str]:
    """Rows, columns and number of the linear layers of a model, as ROWSxCOLUMNSxNUMBER; the head comes last."""
    from inference.engine.loader import open_source

    source = open_source(model)
    try:
        spec = source.spec
        layer = (
            (spec.q_size + 2 * spec.kv_size, spec.hidden_size),
            (spec.hidden_size, spec.q_size),
            (2 * spec.intermediate_size, spec.hidden_size),
            (spec.hidden_size, spec.intermediate_size),
        )
        found = [f"{rows}x{columns}x{spec.num_layers}" for rows, columns in layer]
        return [*found, f"{spec.vocab_size}x{spec.hidden_size}x1"]
    finally:
        source.close()
