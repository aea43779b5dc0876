"""Templates that try to get out, to run for ever or to fill the memory."""

from __future__ import annotations

import threading
import time

import pytest

from inference.errors import ModelFormatError
from inference.request import Message
from inference.text.chat_template import ChatTemplate

CHAT = [Message("user", "x")]


def doubled(step: str) -> str:
    """A template that repeats a step which doubles `n.s`, sixty times."""
    return "{% set n = namespace(s='x') %}{% for i in range(60) %}" + step + "{% endfor %}"


ENDLESS = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "huge range": "{% for a in range(10 ** 9) %}x{% endfor %}",
    "recursive loop": "{% for a in [[]] recursive %}{{ loop([[1], [2]]) }}{% endfor %}",
}
HUGE = {
    "times": "{{ 'x' * 10 ** 10 }}",
    "times list": "{{ [1] * 10 ** 10 }}",
    "times from the right": "{{ 10 ** 10 * 'x' }}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "plus": doubled("{% set n.s = n.s + n.s %}"),
    "tilde": doubled("{% set n.s = n.s ~ n.s %}"),
    "nested lists": doubled("{% set n.s = [n.s, n.s] %}") + "{{ n.s }}",
    "nested lists as json": doubled("{% set n.s = [n.s, n.s] %}") + "{{ n.s | tojson }}",
    "nested lists as text": doubled("{% set n.s = [n.s, n.s] %}") + "{{ n.s | string }}",
    "blocks": doubled("{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}"),
    "output": "{% set s = 'x' * 1000000 %}{% for i in range(1000) %}{{ s }}{% endfor %}",
    "center": "{{ 'x' | center(10 ** 10) }}",
    "center constant": "{{ 'x' | center(9999999999) }}",
    "ljust": "{{ 'x'.ljust(10 ** 10) }}",
    "zfill": "{{ 'x'.zfill(10 ** 10) }}",
    "format": "{{ '{:9999999999}'.format(1) }}",
    "computed format": "{{ '{:{}}'.format(1, 10 ** 10) }}",
    "percent": "{{ '%9999999999d' % 1 }}",
    "percent computed": "{{ '%*d' % (10 ** 10, 1) }}",
    "format filter": "{{ '%9999999999d' | format(1) }}",
    "replace": "{% set s = 'x' * 1000000 %}{{ s.replace('x', s) }}",
    "replace filter": "{% set s = 'x' * 1000000 %}{{ s | replace('x', s) }}",
    "join": "{% set s = 'x' * 1000000 %}{{ s | join(s) }}",
    "join method": "{% set s = 'x' * 1000000 %}{{ s.join(['a'] * 100000) }}",
    "indent": "{{ ('a\n' * 100000) | indent(10 ** 9) }}",
    "json indent": "{{ [1, 2] | tojson(indent=10 ** 10) }}",
    "expandtabs": "{{ '\t'.expandtabs(10 ** 10) }}",
}
ESCAPES = (
    "{{ ''.__class__.__mro__ }}",
    "{{ messages.__class__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__globals__['json'] }}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ self._TemplateReference__context }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(role='system') }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ ('%s'|attr('__mod__'))(1) }}",
)


@pytest.mark.parametrize("name", [*ENDLESS, *HUGE])
def test_is_stopped_within_seconds(name: str) -> None:
    template = ChatTemplate({**ENDLESS, **HUGE}[name])
    start = time.monotonic()
    # A failure of another kind would mean that only the memory's end stopped it.
    with pytest.raises(ModelFormatError, match="was stopped" if name in HUGE else "was stopped|fails"):
        template.render(CHAT)
    # Far above what it takes, far below for ever.
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("source", ESCAPES)
def test_gives_no_way_out(source: str) -> None:
    try:
        rendered = ChatTemplate(source).render(CHAT)
    except ModelFormatError:
        return
    assert rendered == ""
    assert CHAT == [Message("user", "x")]


def test_budget_is_for_each_rendering() -> None:
    template = ChatTemplate("{% for i in range(90000) %}{% endfor %}done")
    assert [template.render(CHAT) for _ in range(5)] == ["done"] * 5


def test_long_contents_have_room() -> None:
    text = "long " * 1_000_000
    template = ChatTemplate("{% for m in messages %}{{ m.role + m.content | trim ~ '!' }}{% endfor %}")
    assert template.render([Message("user", text)]) == f"user{text.strip()}!"


def test_renders_in_several_threads_at_once() -> None:
    template = ChatTemplate("{% for m in messages %}{% for i in range(2000) %}{{ m.content }}{% endfor %}{% endfor %}")
    results: dict[str, str] = {}

    def render(text: str) -> None:
        results[text] = template.render([Message("user", text)])

    threads = [threading.Thread(target=render, args=(text,)) for text in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {text: text * 2000 for text in "abcdefgh"}
