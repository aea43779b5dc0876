"""When memory is given back: never in use, never for ever by accident, and once for each full-screen program."""

import pytest

from app.desktop.full_screen import may_need_gpu
from app.desktop.protocols import Window
from app.memory.idle import LEAST_REST_S, UnloadPolicy
from app.remote.address import REMOTE_PREFIX
from inference.request import EngineReading, ModelState

READY = EngineReading(state=ModelState.READY, backend="cuda")
GAME = Window(7, "supertux2")


def policy(idle_s: float = 900.0) -> UnloadPolicy:
    made = UnloadPolicy()
    made.idle_s, made.yields = idle_s, True
    made.note_use(1000.0)
    return made


def busy(running: int = 0, waiting: int = 0) -> EngineReading:
    return EngineReading(state=ModelState.READY, backend="cuda", running=running, waiting=waiting)


def test_time_runs_from_the_last_use_of_any_kind() -> None:
    idle = policy()
    assert idle.due_in_s(1000.0, READY) == 900.0
    assert idle.due_in_s(1900.0, READY) == 0.0
    answered = EngineReading(state=ModelState.READY, used_at_s=1500.0)
    assert idle.due_in_s(1900.0, answered) == 500.0
    idle.note_use(1800.0)  # typing
    assert idle.due_in_s(1900.0, answered) == 800.0


@pytest.mark.parametrize("engine", [busy(running=1), busy(waiting=1)])
def test_what_runs_or_waits_keeps_the_model(engine: EngineReading) -> None:
    assert policy().due_in_s(99_999.0, engine) == 900.0
    assert not policy().yields_to(GAME, 99_999.0, engine)


def test_zero_minutes_and_an_empty_engine_are_never_due() -> None:
    assert policy(0.0).due_in_s(99_999.0, READY) is None
    assert policy().due_in_s(99_999.0, EngineReading()) is None
    assert policy().due_in_s(99_999.0, EngineReading(state=ModelState.LOADING)) is None


def test_a_model_on_a_server_is_not_ours_to_unload() -> None:
    elsewhere = EngineReading(state=ModelState.READY, model=f"{REMOTE_PREFIX}http://localhost/m", backend="remote")
    assert policy().due_in_s(99_999.0, elsewhere) is None
    assert not policy().yields_to(GAME, 99_999.0, elsewhere)


def test_each_full_screen_window_gets_the_gpu_once() -> None:
    idle = policy()
    assert not idle.yields_to(None, 2000.0, READY)
    assert idle.yields_to(GAME, 2000.0, READY)
    assert not idle.yields_to(GAME, 3000.0, READY)
    assert idle.yields_to(Window(8, "othergame"), 3000.0, READY)


def test_a_model_that_was_used_just_now_stays() -> None:
    idle = policy()
    assert not idle.yields_to(GAME, 1000.0 + LEAST_REST_S - 1, READY)
    assert idle.yields_to(GAME, 1000.0 + LEAST_REST_S, READY)


def test_nothing_yields_where_the_user_does_not_want_it() -> None:
    idle = policy()
    idle.yields = False
    assert not idle.yields_to(GAME, 2000.0, READY)


@pytest.mark.parametrize(
    "program", ["mpv", "vlc.exe", "firefox", "google-chrome", "org.gnome.totem", "code", "libreoffice-impress"]
)
def test_films_pages_and_work_are_no_games(program: str) -> None:
    assert not may_need_gpu(program)
    assert not policy().yields_to(Window(9, program), 2000.0, READY)


@pytest.mark.parametrize("program", ["supertux2", "steam_app_620", "decoder", "frozen-bubble", "witcher3.exe", ""])
def test_all_others_may_be(program: str) -> None:
    assert may_need_gpu(program)


def test_a_terminal_that_fills_the_screen_is_no_game() -> None:
    assert not policy().yields_to(Window(10, "foot", is_terminal=True), 2000.0, READY)
