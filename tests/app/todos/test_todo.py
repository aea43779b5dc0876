"""To-dos as data: read from answers in pieces, merged, and written in forms that other programs read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import icalendar
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.todos.prompt import sentences, todo_answer
from app.todos.todo import Todo, TodoStream, merge, parse_todos, to_ics, to_json, to_lines, to_markdown

TEXT = 'It rained. Bob calls "Ann" on Friday,\nand Eve\nbuys {two} eggs. 请小王周五前交报告。'
TODOS = {
    2: [{"task": 'Call "Ann"', "owner": "Bob", "due": "on Friday"}, {"task": "Buy {two} eggs", "owner": "Eve"}],
    3: [{"task": "交报告", "owner": "小王", "due": "周五前"}],
}
BOB = Todo('Call "Ann"', "Bob", "on Friday", 'Bob calls "Ann" on Friday,\nand Eve\nbuys {two} eggs.')
EVE = Todo("Buy {two} eggs", "Eve", "", BOB.source)
WANG = Todo("交报告", "小王", "周五前", "请小王周五前交报告。")
TODAY = date(2025, 3, 12)
_words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).map(lambda text: " ".join(text.split()))
_todos = st.builds(Todo, _words.filter(bool), _words, _words, st.text(st.characters(exclude_categories=["Cs"])))


def test_an_answer_names_the_sentences_of_its_text() -> None:
    found = parse_todos(todo_answer(TEXT, TODOS), TEXT)
    assert found == [BOB, EVE, WANG]
    assert all(todo.source in TEXT for todo in found)


def test_todos_come_as_soon_as_their_sentence_is_complete() -> None:
    answer = todo_answer(TEXT, TODOS)
    stream = TodoStream(TEXT)
    found = [(index, todo) for index, char in enumerate(answer) for todo in stream.push(char)]
    assert [todo for _, todo in found] == [BOB, EVE, WANG]
    assert found[0][0] < answer.index("请小王") < found[2][0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", []),
        ("[]", []),
        ("No to-dos found.", []),
        ('[{"sentence": "It rained.", "kind": "task", "todos": [{"task": "Go", "owner": "", "due', []),
        ('Sure, here is:\n```json\n[{"task": "Go"}]\n```', [Todo("Go")]),
        ('{"task": 3}{"task": ""}{"task": " "}{"owner": "x"}{}', []),
        ('{"task": "a\\tb\\u0007", "owner": null, "due": ["x"]}', [Todo("a b")]),
        ('{"kind": "task", "sentence": "Nowhere.", "todos": [{"task": "Go"}, 3, null]}', [Todo("Go")]),
        ('{"kind": "task", "sentence": "It rained.", "todos": {"task": "Go"}}', [Todo("Go", source="It rained.")]),
        ('{braces} {"} {"task": 1e} {"task": "a\\q"} {"a": {"task": "Go"', []),
        ("[" * 50_000 + "{" * 50_000 + "}", []),
        ('{"a": [1, ' * 20_000, []),
    ],
)
def test_what_is_no_todo_is_passed_over(answer: str, expected: list[Todo]) -> None:
    assert parse_todos(answer, TEXT) == expected


def test_a_task_of_a_sentence_close_by_gets_that_sentence() -> None:
    text = "It rained on Monday. Ann is fine. Please water the flowers. 天气很好。请小王交报告。"
    wrong = {1: [{"task": "Water the flowers"}, {"task": "Dance"}], 3: [{"task": "Go on"}], 4: [{"task": "交报告"}]}
    found = parse_todos(todo_answer(text, wrong), text)
    assert [(todo.task, todo.source) for todo in found] == [
        ("Water the flowers", "Please water the flowers."),
        ("Dance", "It rained on Monday."),
        ("Go on", "Please water the flowers."),
        ("交报告", "请小王交报告。"),
    ]


def test_what_a_sentence_is_said_to_ask_twice_comes_once() -> None:
    twice = {1: [{"task": "Go"}, {"task": "go!"}, {"task": "Go", "owner": "Ann"}, {"task": "Go"}]}
    assert parse_todos(todo_answer("Go, Ann.", twice), "Go, Ann.") == [
        Todo("Go", source="Go, Ann."), Todo("Go", "Ann", source="Go, Ann.")
    ]  # fmt: skip


def test_an_engine_without_grammars_may_leave_sentences_out() -> None:
    rows = [{"sentence": "请小王周五前交报告。", "kind": "task", "todos": [{"task": "交报告"}]}]
    assert parse_todos(json.dumps(rows), TEXT) == [Todo("交报告", source="请小王周五前交报告。")]


@pytest.mark.parametrize(
    "answer",
    [
        '{"todos": [{"task": "Buy eggs"}, {"task": "Call Ann"}]}',
        '{"answer": "Sure", "todos": [{"task": "Buy eggs"}, {"task": "Call Ann"}]}',
        'In {braces}: {"task": "Buy eggs"}, {"task": "Call Ann"}',
        'Use {"this": form}:\n{"task": "Buy eggs"}\n{"task": "Call Ann"}',
        '{"task": "Buy eggs", "source": "Eve buys eggs"}, {"task": "Call Ann", "source": "Nowhere"}',
        '{"sentence": "Bob calls \\"Ann\\" on", "task": "Call Ann"} {"task": "Buy eggs"}',
        '{"sentence": "Nowhere", "kind": "task", "todos": [{"task": "Call Ann"}, {"task": "Buy eggs"}]}',
    ],
)
def test_other_forms_are_read_and_get_their_sentences(answer: str) -> None:
    found = parse_todos(answer, TEXT)
    assert {todo.task: todo.source for todo in found} == {"Buy eggs": BOB.source, "Call Ann": BOB.source}


def test_a_list_in_an_object_streams() -> None:
    stream = TodoStream(TEXT)
    assert stream.push('{"todos": [{"task": "Buy eggs"}, {"task": "Ca') == [Todo("Buy eggs", source=BOB.source)]


def test_owners_and_dates_that_are_not_said_where_the_task_is_are_left_out() -> None:
    text = "Dear Ann, the lamp is here. Please pay by Friday. 请小王交报告，周五前。The new key is at Bob's.\nTom"
    told = {
        2: [{"task": "Pay", "owner": "Tom", "due": "by Friday"}],
        3: [{"task": "交报告", "owner": "小王", "due": "by Friday"}],
        4: [
            {"task": "Get the key", "owner": "the", "due": "Fri"},
            {"task": "Ask for the key", "owner": "bob", "due": ""},
        ],
    }
    found = [(todo.task, todo.owner, todo.due) for todo in parse_todos(todo_answer(text, told), text)]
    assert found == [
        ("Pay", "", "by Friday"), ("交报告", "小王", ""), ("Get the key", "", ""), ("Ask for the key", "bob", ""),
    ]  # fmt: skip


def test_the_sentence_that_was_named_counts_as_well_where_another_is_more_like_the_task() -> None:
    text = "Ben: did the invoice go out?\nMaya: not yet, will do after lunch"
    told = {2: [{"task": "Send the invoice", "owner": "Maya", "due": "after lunch"}]}
    (found,) = parse_todos(todo_answer(text, told), text)
    assert found == Todo("Send the invoice", "Maya", "after lunch", "Ben: did the invoice go out?")
    assert parse_todos(to_lines([found]), text) == [found], "what is handed on is read as it is"


def test_what_is_written_without_sentences_is_held_to_the_text() -> None:
    found = parse_todos('{"task": "Call Ann", "owner": "Tom", "due": "on Friday"}', TEXT)
    assert found == [Todo("Call Ann", "", "on Friday", BOB.source)]


_SIGNS = [*'{}[]":,\\ \n', '{"', '": ', '"task"', "todos", "\\u00e9", "\\ud83d\\ude00", "1", "-0.5e+3", "true", "NaN"]
_junk = st.one_of(st.text(max_size=20), st.lists(st.sampled_from(_SIGNS), max_size=12).map("".join))
_answers = st.lists(st.sampled_from([*_SIGNS, '"sentence": "', "It rained", '"todos": [', '{"task": "'])).map("".join)


@settings(max_examples=400)
@given(st.lists(st.tuples(_junk, _todos), max_size=4), _junk, st.data())
def test_nothing_between_todos_hides_them_however_the_answer_is_cut(
    pairs: list[tuple[str, Todo]], last: str, data: st.DataObject
) -> None:
    """The full stop makes an object that the junk left open one that will never be complete."""
    answer = "".join(junk + to_lines([todo]) for junk, todo in pairs) + "\n.\n" + last
    found = parse_todos(answer)
    assert [todo for _, todo in pairs] == [todo for todo in found if any(todo == each for _, each in pairs)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=9)))
    stream = TodoStream()
    pieces = [answer[start:end] for start, end in pairwise([0, *cuts, len(answer)])]
    assert [todo for piece in pieces for todo in stream.push(piece)] == found


@settings(max_examples=400)
@given(_answers)
def test_an_answer_that_comes_character_by_character_is_read_as_a_whole_one(answer: str) -> None:
    stream = TodoStream(TEXT)
    assert [todo for char in answer for todo in stream.push(char)] == parse_todos(answer, TEXT)


@given(st.lists(_todos))
def test_lines_and_json_come_back_equal(todos: list[Todo]) -> None:
    assert parse_todos(to_lines(todos)) == todos
    assert parse_todos(to_json(todos)) == todos
    assert to_lines(todos).count("\n") == len(todos)


def test_merging_leaves_out_what_says_nothing_new() -> None:
    first = Todo("Call Ann", "Bob", "Friday", "a")
    doubles = [Todo("call  ann!", "Bob", "Friday", "b"), Todo("Call Ann", "", "Friday"), Todo("CALL ANN")]
    others = [Todo("Call Ann", "Eve", "Friday"), Todo("Call Ann", "Bob", "Monday"), Todo("!!"), Todo("??")]
    assert merge([[first, *doubles], others, [first]]) == [first, *others]


@given(st.lists(st.lists(_todos, max_size=5), max_size=4), _todos)
def test_a_merged_list_only_grows_at_its_end(lists: list[list[Todo]], more: Todo) -> None:
    before = merge(lists)
    assert merge([*lists, [more]])[: len(before)] == before
    assert merge([before, *lists]) == before


def test_a_checklist() -> None:
    assert to_markdown([BOB, EVE]) == '- [ ] Call "Ann" (Bob, on Friday)\n- [ ] Buy {two} eggs (Eve)\n'
    assert to_markdown([WANG], chinese=True) == "- [ ] 交报告（小王，周五前）\n"
    assert to_markdown([Todo("Fix `a_b`*", "[x]")]) == "- [ ] Fix \\`a\\_b\\`\\* (\\[x\\])\n"
    assert to_markdown([]) == ""


def test_json_has_the_day() -> None:
    found = json.loads(to_json([BOB, EVE], TODAY))
    assert [each["due_date"] for each in found] == ["2025-03-14", None]
    assert found[0] | {"due_date": 0} == {
        "task": BOB.task, "owner": "Bob", "due": "on Friday", "source": BOB.source, "due_date": 0,
    }  # fmt: skip


def calendar_of(todos: list[Todo]) -> list[Any]:
    text = to_ics(todos, TODAY, datetime(2025, 3, 12, 9, tzinfo=UTC))
    assert text.isascii() or all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert "\n" not in text.replace("\r\n", "")
    calendar = icalendar.Calendar.from_ical(text)
    assert str(calendar["VERSION"]) == "2.0"
    assert not calendar.errors
    return list(calendar.walk("VTODO"))


def test_a_calendar_file_is_read_by_another_program() -> None:
    bob, wang = calendar_of([BOB, WANG])
    assert str(bob["SUMMARY"]) == 'Call "Ann" (Bob, on Friday)'
    assert str(bob["DESCRIPTION"]) == BOB.source
    assert bob["DUE"].dt == date(2025, 3, 14)
    assert bob["DTSTAMP"].dt == datetime(2025, 3, 12, 9, tzinfo=UTC)
    assert str(wang["SUMMARY"]) == "交报告 (小王, 周五前)"
    assert wang["DUE"].dt == date(2025, 3, 14)


@given(st.lists(_todos, max_size=3))
def test_any_text_survives_a_calendar_file(todos: list[Todo]) -> None:
    found = calendar_of(todos)
    for todo, entry in zip(todos, found, strict=True):
        assert str(entry["SUMMARY"]).startswith(todo.task)
        if todo.source.strip() and todo.source.isprintable():
            assert str(entry["DESCRIPTION"]) == todo.source


def test_long_lines_are_folded_between_characters() -> None:
    text = to_ics([Todo("好" * 100, "", "", "é" * 70 + ", ; \\ x")], TODAY)
    lines = text.split("\r\n")
    assert max(len(line.encode()) for line in lines) <= 75
    assert sum(line.startswith(" ") for line in lines) > 4
    (entry,) = calendar_of([Todo("好" * 100, "", "", "é" * 70 + ", ; \\ x")])
    assert str(entry["SUMMARY"]) == "好" * 100
    assert str(entry["DESCRIPTION"]) == "é" * 70 + ", ; \\ x"


def test_the_same_todo_keeps_its_name_in_calendars() -> None:
    first, again, other = (str(entry["UID"]) for entry in calendar_of([BOB, BOB, EVE]))
    assert first == again != other


def test_sentences_are_pieces_of_the_text() -> None:
    assert sentences(TEXT) == ["It rained.", BOB.source, WANG.source]


def test_a_task_that_is_named_under_the_next_sentence_too_comes_once() -> None:
    text = "Please call Mr Li about the invoice. The meeting is moved."
    twice = {1: [{"task": "Call Mr Li"}], 2: [{"task": "Call Mr Li", "due": "about the invoice"}]}
    assert [todo.task for todo in parse_todos(todo_answer(text, twice), text)] == ["Call Mr Li"]
