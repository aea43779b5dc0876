"""System libraries and programs that no Python package brings: what is missing, and how to get it on Debian."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from installer.shell import SetupError, Shell

# Shared library -> Debian package. What Qt's own plugins for X11 load, found by ldd.
QT_LIBRARIES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libX11.so.6": "libx11-6",
    "libxcb.so.1": "libxcb1",
}
X11_LIBRARIES = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
# Program -> Debian package. What the end-to-end tests drive real windows with.
TEST_PROGRAMS = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "xdotool": "xdotool",
    "xterm": "xterm",
    "trayer": "trayer",
    "setxkbmap": "x11-xkb-utils",
    "xclip": "xclip",
    "dbus-daemon": "dbus",
    "weston": "weston",
    "dbus-launch": "dbus-x11",
    "git": "git",
}
# Language -> Debian package of a small font for it: without one, windows show boxes in place of text.
TEST_FONTS = {"en": "fonts-dejavu-core", "zh-cn": "fonts-wqy-microhei"}
FONT_SEARCH = "fontconfig"


def is_debian(shell: Shell) -> bool:
    """Debian, Ubuntu and what derives from them."""
    release = shell.read_text("/etc/os-release")
    return "debian" in release.lower() and shell.which("apt-get") is not None


def missing_packages(shell: Shell, libraries: Mapping[str, str], programs: Mapping[str, str]) -> list[str]:
    """Debian packages of what cannot be found, in alphabetical order."""
    wanted = {package for soname, package in libraries.items() if not shell.has_library(soname)}
    wanted |= {package for program, package in programs.items() if shell.which(program) is None}
    return sorted(wanted)


def install_packages(shell: Shell, packages: list[str], purpose: str, *, required: bool) -> None:
    """Installs Debian packages as root, else prints the exact command.

    Args:
        purpose: what does not work without them, for the message.
        required: whether to stop where they cannot be installed.

    Raises:
        SetupError: required and not installed.
    """
    if not packages:
        return
    names = " ".join(packages)
    if not is_debian(shell):
        why = f"{purpose} needs what Debian calls {names}"
        _refuse(shell, why, "Install them from your system's packages.", required)
        return
    if not shell.is_root:
        command = f"sudo apt-get install -y --no-install-recommends {names}"
        why = f"{purpose} needs the system packages {names}"
        _refuse(shell, why, f"Run this, then start again: {command}", required)
        return
    shell.say(f"System packages: installing {names}.")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    # A failed update is no failure yet: the lists at hand may do.
    shell.capture(["apt-get", "update"], quiet)
    result = shell.capture(["apt-get", "install", "-y", "--no-install-recommends", *packages], quiet)
    if result.code != 0:
        why = f"apt-get could not install {names}: {result.last_line}"
        _refuse(shell, why, "Check the network and try again.", required)


def _refuse(shell: Shell, why: str, cure: str, required: bool) -> None:
    if required:
        raise SetupError("System packages are missing.", why, cure)
    shell.say(f"System packages: {why}.\n  {cure}")


def check_venv_support(shell: Shell, *, has_ensurepip: bool) -> None:
    """Debian splits what makes environments off Python. Raises SetupError where it cannot be had."""
    if has_ensurepip:
        return
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    install_packages(shell, [package], "Making a virtual environment", required=True)


def check_desktop_libraries(shell: Shell, *, has_display: bool) -> None:
    """What the windows need. Without a display it is only said, since the terminal works without."""
    if sys.platform != "linux":
        return
    packages = missing_packages(shell, {**QT_LIBRARIES, **X11_LIBRARIES}, {})
    if packages:
        install_packages(shell, packages, "The tray icon and its windows", required=has_display)
    else:
        shell.say("System libraries: complete.")


def check_test_programs(shell: Shell) -> None:
    """What the end-to-end tests need. Raises SetupError where it is missing and cannot be installed."""
    if sys.platform != "linux":
        return
    packages = set(missing_packages(shell, {**QT_LIBRARIES, **X11_LIBRARIES}, TEST_PROGRAMS))
    for language, font in TEST_FONTS.items():
        if not has_font(shell, language):
            packages |= {FONT_SEARCH, font}
    install_packages(shell, sorted(packages), "The end-to-end tests", required=True)


def has_font(shell: Shell, language: str) -> bool:
    """Whether a font for a language, such as "zh-cn", is installed; False too where nothing can be asked for fonts."""
    fonts = shell.capture(["fc-list", f":lang={language}"])
    return fonts.code == 0 and bool(fonts.output.strip())
