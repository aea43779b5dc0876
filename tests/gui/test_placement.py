"""Where the popup goes, on one monitor and on several of different size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect, QSize

from app.qt.placement import GAP_PX, popup_rect, work_area_at

pytestmark = pytest.mark.gui

SINGLE = [QRect(0, 0, 1920, 1040)]
# A laptop below right, a large monitor at negative coordinates, one standing upright, with gaps between them.
THREE = [QRect(0, 0, 1920, 1040), QRect(-2560, -300, 2560, 1400), QRect(1920, 200, 1080, 1880)]
SIZE = QSize(480, 320)


def test_it_opens_below_and_right_of_the_cursor():
    assert popup_rect(QPoint(100, 100), SIZE, SINGLE).topLeft() == QPoint(100 + GAP_PX, 100 + GAP_PX)


def test_it_turns_left_and_up_in_the_far_corner_and_leaves_the_cursor_free():
    cursor = QPoint(1900, 1030)
    rect = popup_rect(cursor, SIZE, SINGLE)
    assert SINGLE[0].contains(rect)
    assert not rect.contains(cursor)


def test_it_stays_on_the_monitor_of_the_cursor():
    assert THREE[1].contains(popup_rect(QPoint(-20, 500), SIZE, THREE))
    assert THREE[2].contains(popup_rect(QPoint(1925, 2070), SIZE, THREE))


def test_a_cursor_on_a_panel_or_in_a_gap_counts_to_the_nearest_area():
    assert work_area_at(QPoint(900, 1060), THREE) == THREE[0]
    assert work_area_at(QPoint(2500, 100), THREE) == THREE[2]


def test_a_window_that_is_larger_than_the_screen_is_made_to_fit():
    small = [QRect(0, 0, 400, 300)]
    assert popup_rect(QPoint(200, 150), SIZE, small) == QRect(0, 0, 400, 300)


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
)
def test_it_is_always_inside_the_nearest_area(areas, cursor, size):
    area = work_area_at(cursor, areas)
    rect = popup_rect(cursor, size, areas)
    assert area.contains(rect)
    assert rect.size() == size.boundedTo(area.size())
