"""Makes the pictures of the documentation: the real app with a real model, on a virtual display.

Usage: python -m tests.pictures.make_pictures [--language en|zh] [--scene NAME ...] [--out docs/images]

Every picture is NAME-LANGUAGE.png, those in dark colours NAME-dark-LANGUAGE.png. The models must be on this machine
(deskinfer models pull); nothing is fetched from a network: downloads come from slow_hub.py and never arrive.
Needs what the end-to-end tests need: Xvfb, openbox, trayer, xdotool, and a font for each language.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inference.errors import ModelNotFoundError
from inference.store.model_store import ModelStore
from installer import system_packages
from installer.shell import Shell
from tests.e2e.conftest import Editor, PipedProgram
from tests.pictures.slow_hub import SlowHub, slow_hub
from tests.pictures.small_picture import take_picture
from tests.x_display import XDisplay, wait_for, x_display

ROOT = Path(__file__).parent.parent.parent
MODEL, SMALL_MODEL, ABSENT_MODEL = "qwen2.5-coder-1.5b-instruct", "smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct"
SCREEN = (1280, 900)
WALL = 0x5F7183
MARGIN_PX, TITLE_PX = 20, 26
EDITOR_SIZE = (700, 130)
LOCALES = {"en": "en_US.UTF-8", "zh": "zh_CN.UTF-8"}
FONT_LANGUAGES = {"en": "en", "zh": "zh-cn"}
CORNER = (SCREEN[0] - 10, 10)
ANSWER_S = 240.0
TEXTS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "texts.toml").read_text(encoding="utf-8"))
DARK = {"popup", "chat", "models", "settings"}

Rect = tuple[int, int, int, int]


class PicturedApp(PipedProgram):
    """The app under pictured_app.py."""

    def __init__(self, display: XDisplay, log: Path) -> None:
        super().__init__(display, [sys.executable, "-m", "tests.pictures.pictured_app"], log)
        wait_for(lambda: self.ask("started"), "the app", 30)

    def window(self, kind: str) -> dict[str, Any]:
        """Where a window is, once it is on the screen."""
        return dict(wait_for(lambda: self.ask("window", kind=kind), f"the window {kind}", 20))

    def press(self, kind: str, button: str) -> None:
        """Clicks a button of a window."""
        self.display.click(*wait_for(lambda: self.window(kind)["buttons"].get(button), f"the button {button}"))

    def wait_for_popup(self, state: str) -> None:
        """Waits for a state of the popup."""
        wait_for(lambda: self.ask("popup")["state"] == state, lambda: f"{state}; {self.ask('popup')}", ANSWER_S)

    def wait_for_model(self, model: str = MODEL) -> None:
        """Waits until a model is in memory."""
        wait_for(lambda: self.ask("engine") == {"state": "ready", "model": model}, "the model", ANSWER_S)


class Studio:
    """One display with one running app, and what is done in front of it.

    Attributes:
        texts: of the language of the windows.
    """

    def __init__(self, display: XDisplay, app: PicturedApp, language: str, out: Path, hub: SlowHub) -> None:
        self.display, self.app, self.language, self.out, self.hub = display, app, language, out, hub
        self.texts = TEXTS[language]
        self.theme = "light"
        self.chatted = False
        self.editor: Editor | None = None

    def keep(self, name: str, rect: Rect | None = None, kind: str = "", border: bool = True) -> None:
        """Takes a picture of a part of the screen, or of a window without its frame."""
        time.sleep(0.35)  # the last frame is painted
        x, y, width, height = rect or self.place_of(kind)
        is_dark = self.theme == "dark"
        path = self.out / f"{name}{'-dark' if is_dark else ''}-{self.language}.png"
        edge = ("#3a3f46" if is_dark else "#c3c9d1") if border else ""
        take_picture(self.display, (x, y, width, height), edge, path)
        sys.stdout.write(f"{path.name}: {path.stat().st_size // 1000} kB\n")
        sys.stdout.flush()

    def place_of(self, kind: str) -> Rect:
        """Where a window of the app is on the screen, without the window manager's frame."""
        return self.display.geometry(self.app.window(kind)["id"])

    def set_theme(self, theme: str) -> None:
        """Light or dark, by the setting."""
        self.theme = theme
        self.app.ask("set", key="appearance.theme", value=theme)

    def run_on_selection(self, text: str, keys: str, pause: Callable[[], None] | None = None) -> None:
        """Selects a text in an editor, presses a hotkey and waits for the end."""
        editor = self.editor = Editor(self.display, self.app.log, self.texts["editor"])
        self.display.run("xdotool", "windowsize", str(editor.window_id), *map(str, EDITOR_SIZE))
        self.display.run("xdotool", "windowmove", str(editor.window_id), "60", "60")
        editor.focus()
        editor.select_all(text)
        self.display.move_mouse(230, 60 + EDITOR_SIZE[1] - 50)
        self.display.tap(keys)
        (pause or (lambda: self.app.wait_for_popup("FINISHED")))()
        self.display.move_mouse(*CORNER)
        time.sleep(1.0)  # what was lost is looked for on a thread of its own

    def keep_popup(self, name: str) -> None:
        """Takes a picture of the popup and the editor behind it, with some of the wall around them."""
        assert self.editor is not None
        boxes = [self.display.geometry(self.editor.window_id), self.place_of("Popup")]
        left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
        right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
        left, top, right, bottom = left - MARGIN_PX, top - TITLE_PX - MARGIN_PX, right + MARGIN_PX, bottom + MARGIN_PX
        self.keep(name, (left, top, right - left, bottom - top), border=False)

    def end_popup(self) -> None:
        """Closes popup and editor."""
        assert self.editor is not None
        self.app.ask("close", kind="Popup")
        self.editor.close()
        self.editor = None

    @contextmanager
    def window(self, command: str, kind: str, size: tuple[int, int] | None = None) -> Iterator[None]:
        """Opens a window in the middle of the screen, and closes it again."""
        self.app.ask("command", id=command)
        window = self.app.window(kind)
        if size is not None:
            self.display.run("xdotool", "windowsize", "--sync", str(window["id"]), *map(str, size))
        self.display.run("xdotool", "windowmove", str(window["id"]), "90", "50")
        self.display.move_mouse(*CORNER)
        try:
            yield
        finally:
            self.app.ask("close", kind=kind)


def popup(studio: Studio) -> None:
    """A summary beside the text."""
    studio.run_on_selection(studio.texts["summarize"], "ctrl+shift+1")
    studio.keep_popup("popup")
    studio.end_popup()


def changes(studio: Studio) -> None:
    """A rewritten text with its changes."""
    studio.run_on_selection(studio.texts["rewrite"], "ctrl+shift+3")
    studio.keep_popup("changes")
    studio.end_popup()


def todos(studio: Studio) -> None:
    """To-dos, the sentence of the second one marked."""
    studio.run_on_selection(studio.texts["todos"], "ctrl+shift+4")
    studio.app.ask("call", kind="Popup", path="pages.todo_view.list.chosen.emit", arguments=[1])
    studio.keep_popup("todos")
    studio.end_popup()


def flagged(studio: Studio) -> None:
    """A translation in which the model has got a number wrong."""
    studio.run_on_selection(studio.texts["translate"], "ctrl+shift+2")
    studio.keep_popup("flagged")
    studio.end_popup()


def long_text(studio: Studio) -> None:
    """A long text: the second part under way, then the end."""

    def second_part() -> None:
        sign = studio.texts["second_part"]
        wait_for(lambda: sign in studio.app.ask("popup")["small_print"], "the second part", ANSWER_S)

    studio.run_on_selection(_report(studio.texts), "ctrl+shift+1", second_part)
    studio.keep_popup("long-text")
    studio.app.wait_for_popup("FINISHED")
    studio.keep_popup("long-text-done")
    studio.end_popup()


def _report(texts: dict[str, Any]) -> str:
    """A long text: each month in every district."""
    paragraphs = []
    for number, (month, district) in enumerate((m, d) for m in texts["months"] for d in texts["districts"]):
        values = {"month": month, "district": district, "n": 40 + 7 * number % 53, "cost": 1200 + 310 * number % 4100}
        paragraphs.append(texts["report"].strip().format(**values))
    return "\n\n".join([texts["report_title"], *paragraphs])


def chat(studio: Studio) -> None:
    """A conversation with code and a table, others at its side."""
    with studio.window("chat.open", "ChatWindow", (980, 740)):
        if not studio.chatted:
            for question in (*studio.texts["chats"], studio.texts["chat"]):
                studio.app.ask("call", kind="ChatWindow", path="begin", arguments=[])
                studio.app.ask("put", kind="ChatWindow", text=question)
                studio.display.tap("return")
                wait_for(lambda: studio.app.ask("chat"), "the answer's begin", 20)
                wait_for(lambda: not studio.app.ask("chat"), "the answer", ANSWER_S)
            studio.app.ask("put", kind="ChatWindow", text=studio.texts["draft"])
            studio.chatted = True
            time.sleep(1.0)
        studio.keep("chat", kind="ChatWindow")


def models(studio: Studio) -> None:
    """Models: one in memory, one that fits, one that is being fetched; the meter has seen the first one come and go."""
    with studio.window("models.open", "ModelSwitcher", (760, 820)):
        if studio.theme == "light":
            time.sleep(25.0)
            studio.app.ask("command", id="model.unload")
            time.sleep(20.0)
            studio.app.ask("load", model=MODEL)
            studio.app.wait_for_model()
            time.sleep(15.0)
        studio.app.ask("model", id=ABSENT_MODEL, action="DOWNLOAD")
        time.sleep(9.0)
        studio.keep("models", kind="ModelSwitcher")
        studio.app.ask("model", id=ABSENT_MODEL, action="CANCEL")
        time.sleep(1.0)


def refused(studio: Studio) -> None:
    """A model that does not fit, what is missing and what would help; and an action that meets that."""
    studio.app.ask("command", id="model.unload")
    wait_for(lambda: studio.app.ask("engine")["state"] != "ready", "the memory", 20)
    studio.app.ask("free_bytes", bytes=760 << 20)
    with studio.window("models.open", "ModelSwitcher", (760, 690)):
        studio.app.ask("plan_again")
        time.sleep(3.0)
        studio.keep("refused", kind="ModelSwitcher")
    studio.run_on_selection(studio.texts["summarize"], "ctrl+shift+1", lambda: studio.app.wait_for_popup("NOTICE"))
    studio.keep_popup("refused-popup")
    studio.end_popup()
    studio.app.ask("free_bytes", bytes=0)
    studio.app.ask("load", model=MODEL)
    studio.app.wait_for_model()


def settings(studio: Studio) -> None:
    """Two pages of the settings."""
    with studio.window("settings.open", "SettingsDialog", (840, 640)):
        studio.keep("settings", kind="SettingsDialog")
        if studio.theme == "light":
            studio.app.ask("settings_page", id="hotkeys")
            studio.keep("settings-hotkeys", kind="SettingsDialog")
            studio.app.ask("settings_page", id="general")


def home(studio: Studio) -> None:
    """The home window."""
    with studio.window("window.open", "MainWindow", (600, 720)):
        time.sleep(4.0)
        studio.keep("home", kind="MainWindow")


SCENES = {
    scene.__name__: scene
    for scene in (popup, changes, todos, flagged, chat, settings, models, home, long_text, refused)
}


def welcome(display: XDisplay, folder: Path, language: str, out: Path, hub: SlowHub) -> None:
    """The very first start: nothing is here yet."""
    app = PicturedApp(display, folder / "welcome.log")
    studio = Studio(display, app, language, out, hub)
    try:
        window = app.window("Welcome")
        display.run("xdotool", "windowmove", str(window["id"]), "90", "50")
        display.move_mouse(*CORNER)
        studio.keep("welcome-languages", kind="Welcome")
        app.ask("call", kind="Welcome", path="show_step", arguments=[1])
        app.ask("call", kind="Welcome", path="model.get_button.click", arguments=[])
        time.sleep(9.0)
        studio.keep("welcome-model", kind="Welcome")
        app.ask("call", kind="Welcome", path="model.get_button.click", arguments=[])
        app.ask("call", kind="Welcome", path="show_step", arguments=[2])
        studio.keep("welcome-hotkeys", kind="Welcome")
        app.ask("close", kind="Welcome")
    finally:
        app.close()


@contextmanager
def home_folders(folder: Path, language: str, endpoint: str) -> Iterator[Path]:
    """Settings, state and data of a new user; models of this machine are put there by `bring_models`."""
    kept = dict(os.environ)
    for name in ("CONFIG", "STATE", "RUNTIME", "DATA"):
        place = folder / name.lower()
        place.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR" if name == "RUNTIME" else f"XDG_{name}_HOME"] = str(place)
    os.environ["QT_FONT_DPI"] = "110"
    file = folder / "config" / "deskinfer" / "settings.toml"
    file.parent.mkdir()
    file.write_text(
        f'[hub]\nendpoint = "{endpoint}"\n[appearance]\ntheme = "light"\n[model]\nidle_minutes = 0\n',
        encoding="utf-8",
    )
    try:
        yield folder / "data" / "deskinfer"
    finally:
        os.environ.clear()
        os.environ.update(kept)


def bring_models(source: Path, data: Path) -> None:
    """Links to the models of this machine, all but one that the pictures show as absent."""
    models = data / "models"
    shutil.rmtree(models, ignore_errors=True)
    models.mkdir(parents=True)
    for name in (MODEL, SMALL_MODEL):
        (models / name).symlink_to(source / name)


def pictures_of(language: str, scenes: list[str], out: Path) -> None:
    """All pictures in one language."""
    source = ModelStore().root
    with (
        tempfile.TemporaryDirectory() as name,
        slow_hub() as hub,
        home_folders(Path(name), language, hub.address) as data,
        x_display(Path(name), f"{SCREEN[0]}x{SCREEN[1]}x24") as display,
    ):
        display.environment = {
            **{name: value for name, value in display.environment.items() if name != "LC_ALL"},
            "LC_CTYPE": "C.UTF-8",
            "LC_MESSAGES": LOCALES[language],
        }
        display.start_window_manager()
        core = display._connection.core
        core.ChangeWindowAttributes(display._root, 2, [WALL])
        core.ClearArea(False, display._root, 0, 0, 0, 0)
        display._round_trip()
        display.start("trayer", "--edge", "bottom", "--align", "right", "--width", "8", "--height", "28")
        wait_for(display.tray_owner, "the tray")
        if "welcome" in scenes:
            welcome(display, Path(name), language, out, hub)
        bring_models(source, data)
        (data / "welcomed").touch()
        hub.head_start_bytes = 190_000_000
        app = PicturedApp(display, Path(name) / "app.log")
        studio = Studio(display, app, language, out, hub)
        try:
            app.wait_for_model()
            for scene in (name for name in SCENES if name in scenes):
                SCENES[scene](studio)
                if scene in DARK:
                    studio.set_theme("dark")
                    SCENES[scene](studio)
                    studio.set_theme("light")
        finally:
            app.close()


def fonts_lacking(languages: Iterable[str], shell: Shell | None = None) -> list[str]:
    """Debian packages of the fonts that these languages of the windows need and this machine lacks."""
    shell = shell or Shell()
    wanted = {language: system_packages.TEST_FONTS[FONT_LANGUAGES[language]] for language in languages}
    return [font for language, font in wanted.items() if not system_packages.has_font(shell, FONT_LANGUAGES[language])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", action="append", choices=list(TEXTS))
    parser.add_argument("--scene", action="append", choices=["welcome", *SCENES])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    for model in (MODEL, SMALL_MODEL):
        try:
            ModelStore().resolve(model)
        except ModelNotFoundError as error:
            parser.error(str(error))
    languages = options.language or list(TEXTS)
    if lacking := fonts_lacking(languages):
        parser.error(f"the pictures would show boxes in place of text. Install what Debian calls {', '.join(lacking)}.")
    options.out.mkdir(parents=True, exist_ok=True)
    for language in languages:
        pictures_of(language, options.scene or ["welcome", *SCENES], options.out)


if __name__ == "__main__":
    main()
