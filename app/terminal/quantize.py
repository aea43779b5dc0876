"""`deskinfer quantize`: makes a checkpoint of fewer bits out of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.byte_size import ByteSizeError, byte_size
from app.terminal.errors import INTERRUPTED, UsageError, errors_on_terminal
from app.terminal.models import open_store, progress_bar
from inference.byte_size import size_text

if TYPE_CHECKING:
    from inference.formats.checkpoint.manifest import Recipe


def quantize(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A model name, .gguf or Hugging Face directory.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The directory to write; empty or new.")],
    scheme: Annotated[str, typer.Option(help="w4, w4-all, mixed, w3 or auto; see the guide.")] = "w4",
    group: Annotated[int, typer.Option(help="Weights that share a scale: 32, 64 or 128.")] = 128,
    lora: Annotated[Path | None, typer.Option(metavar="DIR", help="Merge this PEFT adapter first.")] = None,
    calibrate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A text like yours: loses less, takes longer.")
    ] = None,
    fit: Annotated[str, typer.Option(metavar="SIZE", help="With auto: the device's memory, like 3.2GB.")] = "",
    context: Annotated[int, typer.Option(min=1, help="With auto: tokens that have to fit beside the weights.")] = 8192,
    threads: Annotated[int, typer.Option(min=0, help="0: one for each core.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite another checkpoint in OUT.")] = False,
) -> None:
    """Make a smaller checkpoint of a model. Stopped, the same command goes on where it was."""
    with errors_on_terminal():
        from inference.quantize.job import QuantizeOptions, quantize_model

        options = QuantizeOptions(scheme, group, lora, calibrate, _fit_bytes(fit), context, force, threads or None)
        path = open_store().resolve(source)
        try:
            with progress_bar(f"Quantizing {path.name}") as on_progress:
                recipe = quantize_model(path, out, options, on_progress)
        except KeyboardInterrupt:
            kept = f"What is finished is kept in {out}; the same command goes on from it."
            typer.echo(f"\nStopped. {kept if out.is_dir() else 'Nothing was written yet.'}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        typer.echo(_summary(out, recipe), err=True)
        sys.stdout.write(f"{out}\n")


def _fit_bytes(text: str) -> int | None:
    if not text:
        return None
    try:
        return byte_size(text)
    except ByteSizeError as error:
        raise UsageError(str(error)) from error


def _summary(out: Path, recipe: Recipe) -> str:
    """What was made: "w4 of model.gguf, 812 MB: 28 matrices of w4g128, ..."."""
    counts: dict[str, int] = {}
    for name in recipe.formats.values():
        counts[name] = counts.get(name, 0) + 1
    size = sum(path.stat().st_size for path in out.iterdir() if path.is_file())
    adapter = f" with {recipe.adapter.name}" if recipe.adapter is not None else ""
    formats = ", ".join(
        f"{count} {'matrix' if count == 1 else 'matrices'} of {name}" for name, count in sorted(counts.items())
    )
    return f"{recipe.scheme} of {recipe.source.name}{adapter}, {size_text(size)}: {formats}."
