"""Walks over the windows as a screen reader and a keyboard do, for the tests: names, doubles, Tab, focus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QApplication, QScrollArea, QWidget

# Roles of parts that belong to a named control, and of containers.
PARTS = {
    QAccessible.Role.ScrollBar,
    QAccessible.Role.Client,
    QAccessible.Role.Window,
    QAccessible.Role.Dialog,
    QAccessible.Role.ListItem,
    QAccessible.Role.PageTab,
}
# A focus that is drawn around a control may lie a little outside of it.
FRAME_PX = 3
MOST_STOPS = 300


def _name(item: QAccessibleInterface) -> str:
    return item.text(QAccessible.Text.Name)


def _walk(item: QAccessibleInterface | None, context: str = "") -> Iterator[tuple[QAccessibleInterface, str]]:
    """Everything that is seen, with the names of what it lies in."""
    if item is None or item.state().invisible:
        return
    yield item, context
    inner = context if item.role() is QAccessible.Role.StaticText else f"{context}/{_name(item)}"
    for index in range(item.childCount()):
        yield from _walk(item.child(index), inner)


def nameless(window: QWidget) -> list[str]:
    """Focusable things without a name."""
    return [
        f"{item.role()} {item.object()}"
        for item, _ in _walk(QAccessible.queryAccessibleInterface(window))
        if item.state().focusable and item.role() not in PARTS and not _name(item)
    ]


def doubles(window: QWidget) -> list[str]:
    """Controls that a screen reader cannot tell apart: one role, name, description and place."""
    found = Counter(
        (str(item.role()), _name(item), item.text(QAccessible.Text.Description), context)
        for item, context in _walk(QAccessible.queryAccessibleInterface(window))
        if item.state().focusable and item.role() not in PARTS
    )
    return [f"{role} {name!r} in {context}" for (role, name, _, context), count in found.items() if count > 1]


def stops(window: QWidget) -> list[QWidget]:
    """What Tab reaches, in order, once around."""
    window.activateWindow()
    QTest.qWaitForWindowActive(window)
    if QApplication.focusWidget() is None:
        QTest.keyClick(window, Qt.Key.Key_Tab)
    reached: list[QWidget] = []
    while (focus := QApplication.focusWidget()) is not None and focus not in reached and len(reached) < MOST_STOPS:
        reached.append(focus)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    return reached


def unreachable(window: QWidget, reached: list[QWidget]) -> list[str]:
    """Controls that a mouse can use and Tab does not find. Arrows lead through groups of which one is reached."""
    found = []
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or not widget.isEnabled() or widget.window() is not window:
            continue
        is_control = isinstance(widget, QAbstractButton) or bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
        if is_control and not _is_reached(widget, reached):
            found.append(f"{type(widget).__name__} {widget.accessibleName() or getattr(widget, 'text', str)()!r}")
    return found


def _is_reached(widget: QWidget, reached: list[QWidget]) -> bool:
    if widget in reached or widget.focusProxy() in reached:
        return True
    if isinstance(widget, QAbstractButton) and widget.group() is not None:
        return any(button in reached for button in widget.group().buttons())
    parent = widget.parentWidget()
    # The inner field of a spin box and the view of a list belong to it.
    if isinstance(parent, QAbstractScrollArea) and parent in reached:
        return True
    return parent is not None and parent.focusProxy() is widget and parent in reached


def unseen(window: QWidget, reached: list[QWidget]) -> list[str]:
    """Stops that look the same with and without the focus."""
    found = []
    for widget in reached:
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        _scroll_to(widget)
        with_focus = _picture(window, widget)
        widget.clearFocus()
        if with_focus == _picture(window, widget):
            found.append(f"{type(widget).__name__} {widget.accessibleName() or getattr(widget, 'text', str)()!r}")
    return found


def _scroll_to(widget: QWidget) -> None:
    """As Tab does."""
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()


def _picture(window: QWidget, widget: QWidget) -> QImage:
    frame = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    return window.grab(frame.adjusted(-FRAME_PX, -FRAME_PX, FRAME_PX, FRAME_PX)).toImage()
