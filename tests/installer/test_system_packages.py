"""What is missing on the system, and who may install it."""

from __future__ import annotations

import platform

import pytest

from installer import system_packages
from installer.shell import Result, SetupError


def test_root_installs_exactly_what_is_missing(shell) -> None:
    shell.libraries = {*system_packages.QT_LIBRARIES, *system_packages.X11_LIBRARIES} - {
        "libxcb-icccm.so.4",
        "libxcb-keysyms.so.1",
    }
    system_packages.check_desktop_libraries(shell, has_display=True)
    expected = ["apt-get", "install", "-y", "--no-install-recommends", "libxcb-icccm4", "libxcb-keysyms1"]
    assert shell.commands == [["apt-get", "update"], expected]


def test_nothing_missing_runs_nothing(shell) -> None:
    system_packages.check_desktop_libraries(shell, has_display=True)
    assert shell.commands == []


def test_user_is_given_the_exact_command(shell) -> None:
    shell.root = False
    shell.libraries = {*system_packages.QT_LIBRARIES, *system_packages.X11_LIBRARIES} - {"libxcb-icccm.so.4"}
    with pytest.raises(SetupError, match="sudo apt-get install -y --no-install-recommends libxcb-icccm4"):
        system_packages.check_desktop_libraries(shell, has_display=True)
    assert shell.commands == []


def test_user_without_a_display_goes_on(shell) -> None:
    shell.root = False
    shell.libraries = set()
    system_packages.check_desktop_libraries(shell, has_display=False)
    assert any("sudo apt-get install" in line for line in shell.said)


def test_other_distribution_is_told_the_names(shell) -> None:
    shell.release = "ID=fedora\n"
    shell.libraries = set()
    with pytest.raises(SetupError, match="libxcb-icccm4"):
        system_packages.check_desktop_libraries(shell, has_display=True)


def test_failed_apt_is_an_error_with_its_reason(shell) -> None:
    shell.answer = lambda argv: Result(100, "E: Unable to fetch\n") if "install" in argv else None
    shell.libraries = set()
    with pytest.raises(SetupError, match="Unable to fetch"):
        system_packages.check_desktop_libraries(shell, has_display=True)


def test_venv_package_matches_this_python(shell) -> None:
    system_packages.check_venv_support(shell, has_ensurepip=False)
    major, minor, _ = platform.python_version_tuple()
    assert shell.ran(f"python{major}.{minor}-venv") == 1
    system_packages.check_venv_support(shell, has_ensurepip=True)
    assert shell.ran(f"python{major}.{minor}-venv") == 1


def test_test_programs(shell) -> None:
    shell.programs = set(system_packages.TEST_PROGRAMS) - {"Xvfb", "trayer"}
    system_packages.check_test_programs(shell)
    assert shell.commands[-1][-2:] == ["trayer", "xvfb"]


@pytest.mark.parametrize("fonts", [Result(127, "no such command"), Result(0, "")])
def test_fonts_are_installed_where_there_are_none(shell, fonts: Result) -> None:
    shell.answer = lambda argv: fonts if argv[0] == "fc-list" else None
    system_packages.check_test_programs(shell)
    assert shell.commands[-1][-3:] == ["fontconfig", "fonts-dejavu-core", "fonts-wqy-microhei"]


def test_a_font_for_one_language_is_none_for_the_other(shell) -> None:
    shell.answer = lambda argv: Result(0, "") if argv == ["fc-list", ":lang=zh-cn"] else None
    system_packages.check_test_programs(shell)
    installed = shell.commands[-1]
    assert "fonts-wqy-microhei" in installed
    assert "fonts-dejavu-core" not in installed
