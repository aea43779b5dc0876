"""The popup on two monitors of different size and scale, as far as a platform without monitors can tell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gui

# A desktop monitor, and right of it a laptop's of twice the scale, a little lower.
SCREENS = [
    {"name": "desk", "x": 0, "y": 0, "width": 1920, "height": 1080, "dpr": 1},
    {"name": "laptop", "x": 1920, "y": 200, "width": 1280, "height": 800, "dpr": 2},
]
SCRIPT = """
import json, sys
from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from app.actions.answer_review import Subject
from app.qt.popup.popup import Popup
from app.text.checks import SUMMARY_CHECKS
from app.translation import Translator

app = QApplication(sys.argv)
areas = [screen.availableGeometry() for screen in QGuiApplication.screens()]
popup = Popup(Translator("en"))
found = []
for x, y in ((100, 100), (1900, 1060), (1930, 210), (3190, 990), (2500, 600)):
    popup.begin("Summarize", "", Subject("None.", "text", False, SUMMARY_CHECKS))
    popup.show_near(QPoint(x, y), areas)
    app.processEvents()
    for _ in range(60):
        popup.append("A line of an answer with 12 words.\\n")
    popup.finish("model")
    app.processEvents()
    rect = popup.geometry()
    inside = [index for index, area in enumerate(areas) if area.contains(rect)]
    found.append([inside, popup.screen().devicePixelRatio(), rect.width()])
print(json.dumps({"areas": [area.getRect() for area in areas], "found": found}))
"""


def test_it_opens_and_grows_on_the_monitor_of_the_cursor(tmp_path: Path, project_root: Path):
    config = tmp_path / "screens.json"
    config.write_text(json.dumps({"screens": SCREENS}), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, "-platform", f"offscreen:configfile={config.as_posix()}"],
        cwd=project_root,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert len(told["areas"]) == 2
    assert [inside for inside, *_ in told["found"]] == [[0], [0], [1], [1], [1]]
    assert [ratio for _, ratio, *_ in told["found"]] == [1, 1, 2, 2, 2]
    assert {width for *_, width in told["found"]} == {480}
