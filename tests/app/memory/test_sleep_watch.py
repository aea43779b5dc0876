"""A sleep is noticed once, and the driver's word on the GPU's memory is taken."""

from pathlib import Path

import pytest

from app.memory.sleep_watch import SleepWatch, asleep_s


def test_a_sleep_is_noticed_once() -> None:
    slept = [10.0]
    watch = SleepWatch(lambda: slept[0])
    assert not watch.has_slept()
    slept[0] = 10.2  # the clocks are read one after the other
    assert not watch.has_slept()
    slept[0] = 3600.0
    assert watch.has_slept()
    assert not watch.has_slept()


def test_the_clock_of_this_machine_stands_still_while_it_is_awake() -> None:
    watch = SleepWatch()
    assert asleep_s() >= -0.1
    assert not watch.has_slept()


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("ModifyDeviceFiles: 1\nPreserveVideoMemoryAllocations: 1\n", True),
        ("PreserveVideoMemoryAllocations: 0\n", False),
        ("", False),
        (None, False),
    ],
)
def test_the_driver_says_whether_it_keeps_the_memory(tmp_path: Path, text: str | None, keeps: bool) -> None:
    parameters = tmp_path / "params"
    if text is not None:
        parameters.write_text(text)
    assert SleepWatch(parameters=parameters).gpu_keeps_memory() is keeps
