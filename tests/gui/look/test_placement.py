"""Where the popup goes, on one monitor and on several of different size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect, QSize

from app.qt.look.placement import GAP_PX, Placement, first_size, place_popup, with_height, work_area_at

pytestmark = pytest.mark.gui

SINGLE = [QRect(0, 0, 1920, 1040)]
# A laptop below right, a large monitor at negative coordinates, one standing upright, with gaps between them.
THREE = [QRect(0, 0, 1920, 1040), QRect(-2560, -300, 2560, 1400), QRect(1920, 200, 1080, 1880)]
SIZE = QSize(480, 220)


def _place(cursor: QPoint, areas: list[QRect], size: QSize = SIZE, comfort: int = 360) -> Placement:
    return place_popup(cursor, size, comfort, areas)


def test_it_opens_below_and_right_of_the_cursor():
    place = _place(QPoint(100, 100), SINGLE)
    assert place.rect.topLeft() == QPoint(100 + GAP_PX, 100 + GAP_PX)
    assert not place.is_above
    assert place.limit == QRect(0, 114, 1920, 926)


def test_it_turns_left_and_up_in_the_far_corner_and_leaves_the_cursor_free():
    cursor = QPoint(1900, 1030)
    place = _place(cursor, SINGLE)
    assert SINGLE[0].contains(place.rect)
    assert not place.rect.contains(cursor)
    assert place.is_above


def test_it_opens_above_where_a_grown_answer_would_have_no_room_below():
    cursor = QPoint(900, 750)
    place = _place(cursor, SINGLE)
    assert place.is_above
    assert place.rect.bottom() == 750 - GAP_PX - 1
    assert place.limit == QRect(0, 0, 1920, 736)
    assert not _place(QPoint(900, 700), SINGLE, comfort=320).is_above


def test_it_stays_on_the_monitor_of_the_cursor():
    assert THREE[1].contains(_place(QPoint(-20, 500), THREE).rect)
    assert THREE[2].contains(_place(QPoint(1925, 2070), THREE).rect)


def test_a_cursor_on_a_panel_or_in_a_gap_counts_to_the_nearest_area():
    assert work_area_at(QPoint(900, 1060), THREE) == THREE[0]
    assert work_area_at(QPoint(2500, 100), THREE) == THREE[2]


def test_a_window_that_is_larger_than_the_screen_is_made_to_fit():
    small = [QRect(0, 0, 400, 300)]
    assert _place(QPoint(200, 150), small, QSize(480, 320)).rect == QRect(0, 0, 400, 300)


def test_growing_keeps_the_edge_at_the_cursor():
    below, above = QRect(10, 100, 480, 200), QRect(10, 500, 480, 200)
    area = QRect(0, 0, 800, 700)
    assert with_height(below, 300, area, is_above=False) == QRect(10, 100, 480, 300)
    assert with_height(above, 300, area, is_above=True) == QRect(10, 400, 480, 300)


def test_growing_beyond_the_edge_moves_the_window():
    area = QRect(0, 0, 800, 700)
    assert with_height(QRect(10, 500, 480, 200), 300, area, is_above=False) == QRect(10, 400, 480, 300)
    assert with_height(QRect(10, 50, 480, 200), 300, area, is_above=True) == QRect(10, 0, 480, 300)
    assert with_height(QRect(10, 50, 480, 200), 900, area, is_above=True) == QRect(10, 0, 480, 700)


_areas = st.lists(
    st.builds(
        QRect,
        st.integers(-4000, 4000),
        st.integers(-4000, 4000),
        st.integers(320, 4000),
        st.integers(240, 3000),
    ),
    min_size=1,
    max_size=4,
)


@given(
    areas=_areas,
    cursor=st.builds(QPoint, st.integers(-9000, 9000), st.integers(-9000, 9000)),
    size=st.builds(QSize, st.integers(200, 1500), st.integers(100, 1200)),
    comfort=st.integers(0, 1000),
    heights=st.lists(st.integers(50, 4000), max_size=4),
)
def test_it_is_always_inside_the_nearest_area_however_it_grows(areas, cursor, size, comfort, heights):
    area = work_area_at(cursor, areas)
    place = place_popup(cursor, size, comfort, areas)
    assert area.contains(place.limit)
    assert place.limit.contains(place.rect)
    assert place.rect.size() == size.boundedTo(area.size())
    rect = place.rect
    for height in heights:
        rect = with_height(rect, height, place.limit, place.is_above)
        assert place.limit.contains(rect)
        assert rect.height() == min(height, place.limit.height())
        assert (rect.left(), rect.width()) == (place.rect.left(), place.rect.width())
    if place.limit != area:
        assert not rect.contains(cursor)


@pytest.mark.parametrize(
    ("wanted", "screen", "expected"),
    [
        (QSize(860, 720), QSize(1366, 768), QSize(860, 704)),
        (QSize(860, 720), QSize(1920, 1080), QSize(860, 720)),
        (QSize(980, 700), QSize(911, 512), QSize(879, 448)),
    ],
)
def test_a_window_opens_whole_on_the_screen_with_its_title_bar(wanted: QSize, screen: QSize, expected: QSize):
    assert first_size(wanted, screen) == expected
