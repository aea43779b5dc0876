"""`deskinfer models`: what there is, what is here, and fetching, checking and removing it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from app.terminal.errors import errors_on_terminal
from inference.byte_size import size_text

if TYPE_CHECKING:
    from app.models.model_list import ListedModel
    from inference.formats.transfer import OnProgress
    from inference.store.catalog import CatalogEntry
    from inference.store.model_store import ModelStore, StoredModel

models_app = typer.Typer(
    help="Language models: what there is, what is here.", no_args_is_help=True, rich_markup_mode=None
)

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The default model where none is given.")]


def open_store() -> ModelStore:
    """The user's store, fetching from the hub of the settings."""
    from app.engine_setup import load_settings
    from inference.store.download import DownloadOptions
    from inference.store.model_store import ModelStore

    endpoint = load_settings().text("hub.endpoint") or None
    return ModelStore(options=DownloadOptions(hub_endpoint=endpoint))


def _name_or_default(name: str) -> str:
    from app.engine_setup import chosen_model, load_settings

    return chosen_model(load_settings(), name)


@models_app.command("list", short_help="Show every known model, and which are here.")
def list_models() -> None:
    """Show every known model: size, licence, whether it is here, where it comes from."""
    with errors_on_terminal():
        default = _name_or_default("")
        store = open_store()
        models, own = store.list(), _own_models(store)
        width = max(len(name) for name in [*(stored.entry.id for stored in models), *(_own_name(each) for each in own)])
        for stored in models:
            entry = stored.entry
            mark = ", default" if entry.id == default else ""
            cells = (entry.id.ljust(width), _size_of(entry).rjust(8), entry.licence.ljust(21), _state(stored) + mark)
            typer.echo("  ".join(cells))
            typer.echo(f"    from {_origin(entry)}")
            if entry.licence_note:
                typer.echo(f"    {entry.licence_note}")
        for model in own:
            mark = ", default" if default in (model.id, _own_name(model)) else ""
            state = "cannot be used" if model.problem else "here"
            cells = (
                _own_name(model).ljust(width),
                size_text(model.num_bytes).rjust(8),
                model.licence.ljust(21),
                state + mark,
            )
            typer.echo("  ".join(cells))
            typer.echo(f"    your own, {model.quantization + ', ' if model.quantization else ''}{model.path}")
            if model.problem:
                typer.echo(f"    {model.problem}")


@models_app.command()
def pull(
    name: _NameArgument = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Fetch a model. A download that was interrupted goes on from what it has."""
    with errors_on_terminal():
        store = open_store()
        wanted = _name_or_default(name)
        stored = next((each for each in store.list() if each.entry.id == wanted.lower()), None)
        if stored is None:
            # A path needs no download; anything else is explained by the store.
            typer.echo(f"{store.resolve(wanted)} is here already.", err=True)
            return
        entry = stored.entry
        if stored.path is not None:
            typer.echo(f"{entry.id} is here already.", err=True)
            return
        if entry.licence_note:
            typer.echo(f"License {entry.licence}: {entry.licence_note}", err=True)
        if stored.partial_bytes:
            typer.echo(f"Going on after {size_text(stored.partial_bytes)} of {_size_of(entry)}.", err=True)
        if not yes and sys.stdin.isatty() and sys.stderr.isatty():
            question = f"Fetch {entry.title}, {_size_of(entry)}, licence {entry.licence}?"
            typer.confirm(question, default=True, abort=True, err=True)
        with progress_bar(f"Fetching {entry.id}") as on_progress:
            path = store.pull(entry.id, on_progress)
        typer.echo(f"{entry.id} is at {path}", err=True)


@models_app.command()
def verify(name: _NameArgument = "") -> None:
    """Read a model as a whole and compare its checksum."""
    with errors_on_terminal():
        from inference.store.own_models import verify_own

        wanted, store = _name_or_default(name), open_store()
        with progress_bar(f"Checking {wanted}") as on_progress:
            if wanted.lower() in store.catalog.entries:
                told = f"{wanted} is whole: {store.verify(wanted, on_progress)}"
            else:
                check = verify_own(store.resolve(wanted), on_progress)
                told = f"{wanted} is whole: every file has its checksum."
                if not check.is_compared:
                    told = f"{wanted} can be read as a whole and its structure is sound; it states no checksum."
                    told += f" Its sha256 is {check.sha256}." if check.sha256 else ""
        typer.echo(told, err=True)


@models_app.command(short_help="Delete a model, or what its download has left.")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name out of `deskinfer models list`, or a path.")],
) -> None:
    """Delete a model of the folder of models, and what an interrupted download has left of it."""
    with errors_on_terminal():
        freed = open_store().remove(name)
        typer.echo(f"Removed {name}: {size_text(freed)} free again." if freed else f"{name} is not here.", err=True)


@models_app.command()
def where(name: _NameArgument = "") -> None:
    """Print the path of a model that is here."""
    with errors_on_terminal():
        typer.echo(str(open_store().resolve(_name_or_default(name))))


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """A bar on standard error; a line every tenth where nobody looks."""
    if not sys.stderr.isatty():
        yield _ProgressLines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[sizes]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, sizes="")
        shown = ""

        def on_progress(done_bytes: int, total_bytes: int, note: str) -> None:
            nonlocal shown
            if note and note != shown:
                shown = note
                progress.console.print(note, markup=False, highlight=False)
            speed = progress.tasks[task].speed
            sizes = " of ".join(size_text(size) for size in (done_bytes, total_bytes) if size)
            sizes += f", {size_text(round(speed))}/s" if speed else ""
            progress.update(task, completed=done_bytes, total=total_bytes or None, sizes=sizes)

        yield on_progress


class _ProgressLines:
    """Progress for a log: each note once, and a line at every tenth."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._note = ""
        self._tenth = 0

    def __call__(self, done_bytes: int, total_bytes: int, note: str) -> None:
        if note and note != self._note:
            # What is counted from here on is something else.
            self._note, self._tenth = note, 0
            typer.echo(note, err=True)
        tenth = 10 * done_bytes // total_bytes if total_bytes else 0
        if tenth > self._tenth:
            self._tenth = tenth
            typer.echo(f"{self._title}: {size_text(done_bytes)} of {size_text(total_bytes)}", err=True)


def _size_of(entry: CatalogEntry) -> str:
    return f"~{size_text(entry.about_bytes)}" if entry.num_bytes is None else size_text(entry.num_bytes)


def _own_models(store: ModelStore) -> list[ListedModel]:
    """What no catalog knows: in the store, and where the settings say."""
    from app.engine_setup import load_settings
    from app.models.model_list import ModelList, Origin, split_paths

    listed = ModelList(store).models(split_paths(load_settings().text("model.paths")))
    return [model for model in listed if model.origin in (Origin.FOLDER, Origin.ADDED)]


def _own_name(model: ListedModel) -> str:
    """What a command takes for it: its name in the store, else its path."""
    return model.path.name if model.path is not None and model.origin.value == "folder" else model.id


def _state(stored: StoredModel) -> str:
    if stored.path is not None:
        return "here"
    return f"{size_text(stored.partial_bytes)} fetched" if stored.partial_bytes else "not here"


def _origin(entry: CatalogEntry) -> str:
    from inference.store.catalog import HubSource

    names = [
        f"the hub ({source.repo})" if isinstance(source, HubSource) else "the package index" for source in entry.sources
    ]
    return ", or ".join(names)
