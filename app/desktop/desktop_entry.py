"""The app's entry among the programs of a Linux desktop. By its name desktops know whose windows these are.

A desktop that gives out shortcuts asks for the name of an installed entry (xdg-desktop-portal, since 1.21); it must
have a dot in it.
"""

from __future__ import annotations

import os
from pathlib import Path

from app.desktop.autostart import exec_line, start_command

APP_ID = "org.deskinfer.DeskInfer"


def entry_path() -> Path:
    """Where the entry of this user lies."""
    base = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share"
    return folder / "applications" / f"{APP_ID}.desktop"


def entry_text(command: tuple[str, ...]) -> str:
    """The entry that starts a command."""
    lines = [
        "[Desktop Entry]",
        "Type=Application",
        "Name=DeskInfer",
        "GenericName=Writing assistant",
        "GenericName[zh_CN]=写作助手",
        "Icon=deskinfer",
        f"TryExec={command[0]}",
        f"Exec={exec_line(command)}",
        "Terminal=false",
        "Categories=Utility;",
    ]
    return "\n".join(lines) + "\n"


def install_entry() -> None:
    """Writes the entry where it is missing or starts another installation. Raises OSError."""
    path, text = entry_path(), entry_text(start_command())
    try:
        if path.read_text(encoding="utf-8", errors="replace") == text:
            return
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)
