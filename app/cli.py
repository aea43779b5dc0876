"""`deskinfer`: the command line. Composition root of the terminal, as app/__main__.py is of the windows.

Nothing heavy is imported before a command needs it, so that --help and --action answer at once.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from app.bench.command import bench
from app.terminal.errors import UsageError, engine_errors, errors_on_terminal
from app.terminal.models import models_app
from app.terminal.quantize import quantize

if TYPE_CHECKING:
    from app.engine_setup import EngineChoice

_ORDER = ("run", "ask", "models", "doctor", "serve", "bench", "quantize")


class _Commands(TyperGroup):
    """Lists what most users need first."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """See TyperGroup."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    cls=_Commands,
    help="Summarize, translate, rewrite, proofread, find to-dos: with a language model on this machine.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models_app, name="models")
app.command()(quantize)

ModelOption = Annotated[
    str, typer.Option("--model", "-m", metavar="ID", help="A name out of `deskinfer models list`, or a path.")
]
BackendOption = Annotated[
    str, typer.Option("--backend", metavar="NAME", help="auto, cuda, cpu or torch, in place of the settings.")
]
VramOption = Annotated[
    str, typer.Option("--vram", metavar="SIZE", help="The most to take of the GPU's memory, like 3.5GB.")
]


def main() -> None:
    """Entry of the `deskinfer` command."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by who has started us, as some launchers do, or a Windows program without a console.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show must not end an answer.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="deskinfer")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"deskinfer {version('deskinfer')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    action: Annotated[
        str, typer.Option(metavar="ID", help="Run an action in the running app, as its hotkey does.")
    ] = "",
    clipboard: Annotated[bool, typer.Option("--clipboard", help="With --action: on the clipboard's text.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Summarize, translate, rewrite, proofread, find to-dos: with a language model on this machine."""
    if action:
        with errors_on_terminal():
            _send_to_app({"command": "action", "action": action, "source": "clipboard" if clipboard else "selection"})
        raise typer.Exit
    if clipboard:
        with errors_on_terminal():
            raise UsageError("--clipboard is for --action here; deskinfer ask has one of its own, behind its name.")
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _send_to_app(command: dict[str, object]) -> None:
    from app.instance.instance import send_to_running

    reply = send_to_running(command)
    if reply is None:
        raise UsageError("DeskInfer does not run. Start it first: deskinfer run")
    if "error" in reply:
        raise UsageError(str(reply["error"]))


def _engine_choice(backend: str, vram: str) -> EngineChoice | None:
    """What the command line says about the engine; None where that is nothing."""
    if not backend and not vram:
        return None
    from app.byte_size import ByteSizeError, byte_size
    from app.engine_setup import EngineChoice

    try:
        return EngineChoice(backend, byte_size(vram) if vram else None)
    except ByteSizeError as error:
        raise UsageError(str(error)) from error


@app.command(short_help="Start the tray app; without a display, show here what it does.")
def run(model: ModelOption = "", backend: BackendOption = "", vram: VramOption = "") -> None:
    """Start the tray app; without a display, show the actions on a sample text here."""
    with errors_on_terminal():
        choice = _engine_choice(backend, vram)
    if sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        from app.__main__ import main as start_windows
        from app.engine_setup import build_engine
        from app.instance.instance import is_running

        if (model or choice) and is_running():
            message = "The app runs already, with an engine of its own. Quit it first to start it with another one."
            typer.echo(message, err=True)
            raise typer.Exit(1)
        raise typer.Exit(start_windows([], partial(build_engine, model=model, choice=choice), choice))
    with errors_on_terminal(), engine_errors(choice):
        from app.engine_setup import open_worker
        from app.terminal.demo import run_demo

        typer.echo("There is no display here, so no tray icon and no hotkeys. This is what they would do:\n", err=True)
        worker = open_worker(model) if choice is None else open_worker(model, choice)
        try:
            run_demo(worker, sys.stdout, sys.stderr)
        finally:
            worker.close()
        typer.echo("Ask your own: deskinfer ask --action summarize TEXT (see deskinfer ask --help)", err=True)


@app.command(short_help="Ask the model, or run an action on a text.")
def ask(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="The question, or the text of an action.")
    ] = None,
    action: Annotated[
        str,
        typer.Option(
            "--action", "-a", metavar="ID", help="summarize, translate, rewrite, proofread, todos, or one of yours."
        ),
    ] = "",
    model: ModelOption = "",
    system: Annotated[str, typer.Option("--system", "-s", help="What the model is told first.")] = "",
    clipboard: Annotated[bool, typer.Option("--clipboard", "-c", help="Take the clipboard's text.")] = False,
    temperature: Annotated[float | None, typer.Option(help="0 always takes the most probable token.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the k most probable tokens; 0: all.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the most probable tokens of this share; 1: all.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same answer.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(help="End the answer after so many tokens.")] = None,
    todo_format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORM", help="Of to-dos: markdown, json or ics.")
    ] = "",
    backend: BackendOption = "",
    vram: VramOption = "",
    server: Annotated[
        str, typer.Option(metavar="URL", help="Ask an OpenAI-compatible server; DESKINFER_SERVER_KEY may hold its key.")
    ] = "",
    server_model: Annotated[str, typer.Option(metavar="NAME", help="The server's model; else its first.")] = "",
    stats: Annotated[bool, typer.Option("--stats", help="Print tokens and times on standard error.")] = False,
) -> None:
    """Ask the model, or run an action on a text of any length. The answer streams to standard output.

    \b
      deskinfer ask "What is a mutex?"
      git diff | deskinfer ask "What has changed?"
      deskinfer ask --clipboard "What does this error mean?"
      deskinfer ask --action summarize < letter.txt

    A question's words come after the text that a pipe, a file or the clipboard gives, and say what to do with it. An
    action takes one text, out of one of these places. "-" as the last word reads what is typed, up to Ctrl+D (on
    Windows Ctrl+Z and Enter).
    """
    with errors_on_terminal():
        from app.engine_setup import tell_problems
        from app.terminal.ask import Wanted, answer_given, chosen_engine
        from app.terminal.given_text import read_given

        chosen = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
            "max_new_tokens": max_new_tokens,
        }
        sampling = {name: value for name, value in chosen.items() if value is not None}
        wanted = Wanted(action, system, sampling, todo_format)
        given = read_given(text or [], clipboard)
        tell_problems(sys.stderr)
        choice = _engine_choice(backend, vram)
        engine = chosen_engine(model, choice, server, server_model)
        with engine_errors(choice):
            answer_given(given, wanted, model, stats, engine)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; other machines need a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 18000,
    model: ModelOption = "",
    backend: BackendOption = "",
    vram: VramOption = "",
) -> None:
    """Serve the model to other programs, as OpenAI's API. DESKINFER_API_KEY sets the key that they must send."""
    with errors_on_terminal():
        from app.gateway.setup import serve as serve_here

        serve_here(host, port, model, _engine_choice(backend, vram), sys.stderr)


@app.command(short_help="Tell what this machine can do and what is wrong.")
def doctor() -> None:
    """Tell what this machine can do and what is wrong, in one page for a bug report."""
    with errors_on_terminal():
        from app.diagnostics.doctor import page

        typer.echo(page())


app.command(short_help="Measure speed and memory, beside other engines too.")(bench)

if __name__ == "__main__":
    main()
