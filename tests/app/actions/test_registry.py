"""Actions: the built-in ones, the user's files, and what they ask of the model."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions.action import Example
from app.actions.action_file import ActionFormatError, parse_action, read_action
from app.actions.registry import ActionRegistry, UnknownActionError
from app.desktop.hotkeys import conflicts, parse, warnings
from app.language import LANGUAGES, Languages
from app.paths import assets_dir
from app.text.checks import REWRITE_CHECKS, SUMMARY_CHECKS, TRANSLATION_CHECKS
from inference.errors import InvalidRequestError
from inference.request import Grammar, Priority, SamplingParams

BUILTIN = ["summarize", "translate", "rewrite", "proofread", "todos"]
ENGLISH_FIRST = Languages(LANGUAGES["en"], LANGUAGES["zh"])
CHINESE_FIRST = Languages(LANGUAGES["zh"], LANGUAGES["en"])
MINIMAL = '[prompt.en]\nuser = "Do it: {text}"\n'
ENGLISH, CHINESE = "Please send me the report.", "请把报告发给我。"


def registry(tmp_path: Path) -> ActionRegistry:
    return ActionRegistry(user_dir=tmp_path)


def save(path: Path, text: str) -> None:
    """Writes a file the way an editor does, with a time stamp that differs for certain."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text, encoding="utf-8")
    if path.stat().st_mtime_ns == before:
        os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


def test_the_built_in_actions_in_their_order(tmp_path: Path) -> None:
    assert [action.id for action in registry(tmp_path).all()] == BUILTIN


@pytest.mark.parametrize("action_id", BUILTIN)
def test_every_built_in_action_speaks_both_languages(tmp_path: Path, action_id: str) -> None:
    action = registry(tmp_path).get(action_id)
    assert set(action.titles) == set(action.descriptions) == set(action.prompts) == {"en", "zh"}
    assert action.title("zh") != action.title("en")
    assert action.description("zh") != action.description("en")
    assert action.output == {"todos": "todos", "rewrite": "changes", "proofread": "changes"}.get(action_id, "text")
    assert action.replaces == (action_id in ("translate", "rewrite", "proofread"))


def test_what_is_checked_goes_by_the_kind_of_action(tmp_path: Path) -> None:
    checks = {action.id: action.checks for action in registry(tmp_path).all()}
    assert checks["rewrite"] == checks["proofread"] == REWRITE_CHECKS
    assert checks["translate"] == TRANSLATION_CHECKS
    assert checks["summarize"] == SUMMARY_CHECKS
    assert checks["todos"] == ()
    assert parse_action("checks = ['urls']\n" + MINIMAL, "own").checks == ("urls",)
    assert parse_action("checks = []\n" + MINIMAL, "own").checks == ()
    assert parse_action("replaces = true\n" + MINIMAL, "own").checks == REWRITE_CHECKS


def test_default_hotkeys_collide_with_nothing_well_known_and_not_with_each_other(tmp_path: Path) -> None:
    bindings = {}
    for action in registry(tmp_path).all():
        bindings[action.id] = parse(action.hotkey)
        bindings[f"{action.id}.clipboard"] = parse(action.clipboard_hotkey)
    assert len(bindings) == 10
    assert conflicts(bindings) == []
    assert [text for hotkey in bindings.values() for text in warnings(hotkey)] == []


@pytest.mark.parametrize("action_id", BUILTIN)
@pytest.mark.parametrize(("text", "code"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_a_request_carries_the_prompt_of_the_texts_language(
    tmp_path: Path, action_id: str, text: str, code: str
) -> None:
    action = registry(tmp_path).get(action_id)
    request = action.request(text, CHINESE_FIRST)
    assert request.priority is Priority.ACTION
    assert request.sampling == action.sampling
    roles = [message.role for message in request.messages]
    assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]
    assert [text in message.content for message in request.messages] == [False] * (len(roles) - 1) + [True]
    assert request.messages[0].content.startswith(action.prompts[code].system.split("{")[0])


def test_text_without_letters_takes_the_language_of_the_windows(tmp_path: Path) -> None:
    action = registry(tmp_path).get("summarize")
    assert action.prompt_language("12:30", ENGLISH_FIRST, "zh") == "zh"
    assert action.prompt_language("12:30", ENGLISH_FIRST, "en") == "en"
    assert action.prompt_language("Bonjour à tous", ENGLISH_FIRST, "zh") == "en"


@pytest.mark.parametrize(
    ("text", "languages", "target"),
    [
        (ENGLISH, CHINESE_FIRST, "Simplified Chinese"),
        (ENGLISH, ENGLISH_FIRST, "Simplified Chinese"),
        (CHINESE, CHINESE_FIRST, "英文"),
        (CHINESE, ENGLISH_FIRST, "英文"),
        ("Пришлите мне отчёт.", CHINESE_FIRST, "Simplified Chinese"),
        ("Пришлите мне отчёт.", ENGLISH_FIRST, "English"),
    ],
)
def test_a_translation_goes_to_the_other_language(tmp_path: Path, text: str, languages: Languages, target: str) -> None:
    assert target in registry(tmp_path).get("translate").request(text, languages).messages[0].content


def test_examples_are_earlier_turns_and_go_by_the_target_language() -> None:
    source = """
    [prompt.en]
    user = "<{text}>"
    [[prompt.en.example]]
    text = "one {text}"
    answer = "{target_language} stays"
    [[prompt.en.example]]
    text = "two"
    answer = "zwei"
    target = "de"
    """
    messages = parse_action(source, "x").request(ENGLISH, ENGLISH_FIRST).messages
    assert [(m.role, m.content) for m in messages] == [
        ("user", "<one {text}>"),
        ("assistant", "{target_language} stays"),
        ("user", f"<{ENGLISH}>"),
    ]


@given(st.text().filter(lambda text: text.strip()))
def test_nothing_inside_the_users_text_is_ever_expanded(text: str) -> None:
    action = parse_action('[prompt.en]\nsystem = "To {target_language}"\nuser = "<{text}|{target_language}>"\n', "x")
    hostile = f"{{text}} {{target_language}} {{system}} {{}} {text} {{0}} %s \\1 \\g<0>"
    content = action.request(hostile, ENGLISH_FIRST).messages[1].content
    assert content.startswith("<" + hostile.strip("\r\n") + "|")
    assert content[len(hostile.strip("\r\n")) + 2 :].rstrip(">") in {"English", "Simplified Chinese"}


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_empty_text_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequestError, match="Select a text first"):
        registry(tmp_path).get("summarize").request(text, ENGLISH_FIRST)


def test_indentation_of_the_text_stays(tmp_path: Path) -> None:
    content = registry(tmp_path).get("rewrite").request("\n    four spaces\n", ENGLISH_FIRST).messages[-1].content
    assert "\n    four spaces" in content


def test_an_unknown_action_names_near_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownActionError, match="summarize"):
        registry(tmp_path).get("summarise")


def test_a_minimal_file_is_an_action() -> None:
    action = parse_action(MINIMAL, "shout")
    assert (action.id, action.titles, action.hotkey, action.output, action.replaces) == (
        "shout",
        {"en": "shout"},
        "",
        "text",
        False,
    )
    assert action.sampling == SamplingParams()
    assert action.request(CHINESE, ENGLISH_FIRST).messages[0].content == f"Do it: {CHINESE}"
    assert action.description("en") == ""


def test_a_full_file_is_read() -> None:
    source = """
    id = "loud"
    title = "Shout"
    description = {zh = "大声"}
    hotkey = "shift+ctrl+f9"
    output = "todos"
    replaces = true
    order = 5
    [sampling]
    temperature = 1
    top_p = 0.9
    seed = 7
    max_new_tokens = 20
    stop = ["###", "END"]
    [prompt.zh]
    user = "{text}"
    """
    action = parse_action(source, "file-name")
    assert action.id == "loud"
    assert action.title("zh") == action.title("en") == "Shout"
    assert action.description("zh") == "大声"
    assert action.hotkey == "Ctrl+Shift+F9"
    assert (action.output, action.replaces, action.order) == ("todos", True, 5)
    assert action.sampling == SamplingParams(temperature=1.0, top_p=0.9, seed=7, max_new_tokens=20, stop=("###", "END"))
    assert action.prompt_language(ENGLISH, ENGLISH_FIRST, "en") == "zh"


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("titel = 'x'\n" + MINIMAL, 1, 'Did you mean "title"'),
        (MINIMAL + "sytem = 'x'\n", 3, 'Did you mean "system"'),
        (MINIMAL + "[sampling]\ntemprature = 1\n", 4, 'Did you mean "temperature"'),
        (MINIMAL + "[sampling]\n\ntemperature = 99\n", 5, "0 or from 0.00001 to 10"),
        (MINIMAL + "[sampling]\nmax_new_tokens = 1.5\n", 4, "a whole number"),
        (MINIMAL + "[sampling]\nstop = [1]\n", 4, "in quotes"),
        (MINIMAL + "[sampling]\nstop = 'x'\n", 4, "a list"),
        ("replaces = 1\n" + MINIMAL, 1, "true or false"),
        ("order = true\n" + MINIMAL, 1, "a whole number"),
        ("id = 'Ä b'\n" + MINIMAL, 1, "a letter first"),
        ("output = 'html'\n" + MINIMAL, 1, '"text", "changes" or "todos"'),
        ("checks = ['number']\n" + MINIMAL, 1, "numbers, names"),
        ("checks = 'numbers'\n" + MINIMAL, 1, "a list"),
        ("hotkey = 'a'\n" + MINIMAL, 1, "Add Ctrl, Alt or Meta"),
        ("clipboard_hotkey = 'Ctrl+Foo'\n" + MINIMAL, 1, "There is no key"),
        ("title = 3\n" + MINIMAL, 1, "a table"),
        ("title = {de = 'x'}\n" + MINIMAL, 1, "unknown here"),
        ("[prompt.en]\nuser = 'no place for it'\n", 2, "has no {text}"),
        ("[prompt.en]\nsystem = 'only'\n", 1, "has no {text}"),
        ("[prompt.en]\nuser = '{txt} {text}'\n", 2, "Did you mean {text}"),
        ("[prompt.en]\nuser = '{text}'\nsystem = '{text}'\n", 3, "Did you mean {target_language}"),
        (MINIMAL + "[[prompt.en.example]]\ntext = 'x'\n", 3, 'has no "answer"'),
        (MINIMAL + "[[prompt.en.example]]\ntext = 'x'\nansver = 'y'\n", 5, 'Did you mean "answer"'),
        (MINIMAL + "example = [1]\n", 3, "a table of its own"),
        ("title = 'x'\n", 0, "There is no prompt"),
        ("[prompt]\nen = 'x'\n", 2, "a table"),
        ("[prompt.fr]\nuser = '{text}'\n", 1, "unknown here"),
        ("title = 'x\n", 1, "This is not TOML"),
        ("[prompt.en\n", 1, "This is not TOML"),
        ("a = " + "[" * 9999, 1, "This is not TOML"),
    ],
)
def test_a_broken_file_names_line_and_cure(source: str, line: int, message: str) -> None:
    with pytest.raises(ActionFormatError, match=message.replace("{", r"\{")) as caught:
        parse_action(source, "x")
    assert caught.value.line == line


def test_a_file_that_is_not_text_or_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(ActionFormatError, match="Save it as UTF-8"):
        read_action(tmp_path / "x.toml")
    with pytest.raises(ActionFormatError, match="cannot be read"):
        read_action(tmp_path / "missing.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ActionFormatError, match="cannot be read: not a regular file"):
        read_action(tmp_path / "folder.toml")
    (tmp_path / "huge.toml").write_text(MINIMAL + "#\n" * 1_000_000)
    with pytest.raises(ActionFormatError, match="cannot be read: 2000035 bytes, but at most 1048576 are allowed"):
        read_action(tmp_path / "huge.toml")


def test_a_users_file_replaces_a_built_in_action_and_comes_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('id = "summarize"\norder = 10\ntitle = "Mine"\n' + MINIMAL)
    actions = registry(tmp_path)
    assert [action.id for action in actions.all()] == BUILTIN
    assert actions.get("summarize").title("en") == "Mine"
    assert actions.problems == []


def test_a_missing_folder_of_the_user_is_no_problem(tmp_path: Path) -> None:
    actions = ActionRegistry(user_dir=tmp_path / "missing")
    assert actions.problems == []
    assert not actions.reload_if_changed()
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "shout.toml").write_text(MINIMAL)
    assert actions.reload_if_changed()
    assert actions.get("shout").id == "shout"


def test_saved_new_and_removed_files_are_picked_up(tmp_path: Path) -> None:
    actions = registry(tmp_path)
    assert not actions.reload_if_changed()
    save(tmp_path / "shout.toml", MINIMAL)
    assert actions.reload_if_changed()
    assert [action.id for action in actions.all()] == [*BUILTIN, "shout"]
    assert not actions.reload_if_changed()
    save(tmp_path / "shout.toml", 'title = "Louder"\n' + MINIMAL)
    assert actions.reload_if_changed()
    assert actions.get("shout").title("en") == "Louder"
    (tmp_path / "shout.toml").unlink()
    assert actions.reload_if_changed()
    assert [action.id for action in actions.all()] == BUILTIN


def test_a_file_that_breaks_keeps_its_last_good_version_and_is_named(tmp_path: Path) -> None:
    save(tmp_path / "shout.toml", 'title = "Good"\n' + MINIMAL)
    save(tmp_path / "other.toml", MINIMAL)
    actions = registry(tmp_path)
    save(tmp_path / "shout.toml", 'title = "Worse"\ntitel = 1\n' + MINIMAL)
    assert actions.reload_if_changed()
    assert actions.get("shout").title("en") == "Good"
    assert actions.get("other").id == "other"
    (problem,) = actions.problems
    assert (problem.file.name, problem.line) == ("shout.toml", 2)
    assert str(problem) == 'shout.toml, line 2: The key "titel" is unknown here. Did you mean "title"?'
    save(tmp_path / "shout.toml", 'title = "Better"\n' + MINIMAL)
    assert actions.reload_if_changed()
    assert actions.problems == []
    assert actions.get("shout").title("en") == "Better"


def test_a_file_that_is_broken_at_start_leaves_the_built_in_action_in_force(tmp_path: Path) -> None:
    (tmp_path / "summarize.toml").write_text("broken")
    actions = registry(tmp_path)
    assert actions.get("summarize") == ActionRegistry(user_dir=tmp_path / "none").get("summarize")
    assert [problem.file.name for problem in actions.problems] == ["summarize.toml"]


def test_of_two_files_with_one_id_the_first_wins_and_the_second_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('id = "same"\ntitle = "A"\n' + MINIMAL)
    (tmp_path / "b.toml").write_text('id = "same"\ntitle = "B"\n' + MINIMAL)
    actions = registry(tmp_path)
    assert actions.get("same").title("en") == "A"
    assert str(actions.problems[0]) == 'b.toml: The id "same" is already used by a.toml. Give this action another id.'


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not an action")
    (tmp_path / "shout.toml~").write_text("backup")
    actions = registry(tmp_path)
    assert [action.id for action in actions.all()] == BUILTIN
    assert actions.problems == []


def test_the_built_in_files_are_where_the_package_says() -> None:
    assert sorted(path.stem for path in assets_dir("actions").glob("*.toml")) == sorted(BUILTIN)


LONG = """
long = "merge"
part_tokens = 500
prompt_language = "target"
[prompt.en]
user = "Names in {text}:"
part = "Names in this part: {text}"
join = "All names: {text}"
[prompt.zh]
user = "人名：{text}"
"""


def test_an_action_says_what_is_done_with_long_texts() -> None:
    action = parse_action(LONG, "names")
    assert (action.plan, action.part_tokens) == ("merge", 500)
    framed = action.framed("Ann met Bob.", Languages(LANGUAGES["en"], LANGUAGES["zh"]))
    assert framed.request("x").messages[-1].content == "人名：x"
    framed = action.framed("安娜见了鲍勃。", Languages(LANGUAGES["en"], LANGUAGES["zh"]))
    contents = [framed.request("x {text}", kind).messages[-1].content for kind in ("text", "part", "join")]
    assert contents == ["Names in x {text}:", "Names in this part: x {text}", "All names: x {text}"]


def test_the_plan_for_long_texts_follows_from_the_kind_of_action() -> None:
    actions = ActionRegistry(user_dir=Path("no-such-folder"))
    plans = {action.id: action.plan for action in actions.all()}
    assert plans["summarize"] == "map_reduce"
    assert plans["translate"] == plans["rewrite"] == "part_by_part"
    assert plans["todos"] == "merge"
    assert parse_action('[prompt.en]\nuser = "{text}"', "own").plan == "map_reduce"
    assert parse_action('replaces = true\n[prompt.en]\nuser = "{text}"', "own").plan == "part_by_part"
    assert parse_action('[prompt.en]\nuser = "In {target_language}: {text}"', "own").plan == "part_by_part"


def test_examples_of_earlier_parts_stand_behind_the_actions_own() -> None:
    action = ActionRegistry(user_dir=Path("no-such-folder")).get("translate")
    framed = action.framed("Good morning.", Languages(LANGUAGES["en"], LANGUAGES["zh"]))
    messages = framed.request("Good evening.", "part", (Example("Good morning.", "早上好。"),)).messages
    assert messages[-2].content == "早上好。"
    assert "Good morning." in messages[-3].content
    assert messages[:-3] == framed.request("Good evening.").messages[:-1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('long = "in parts"', 'long is "in parts", but it must be one of "part_by_part", "map_reduce", "merge".'),
        ("part_tokens = 3", "part_tokens is 3, but it must be at least 32."),
        ("pattern = '('", "The pattern is no regular expression: missing ), unterminated subpattern at position 0."),
        ('prompt_language = "zh"', 'prompt_language is "zh", but it must be one of "text", "target".'),
    ],
)
def test_mistakes_about_long_texts_are_named(line: str, message: str) -> None:
    with pytest.raises(ActionFormatError) as caught:
        parse_action(f'{line}\n[prompt.en]\nuser = "{{text}}"', "own")
    assert str(caught.value.text) == message
    assert caught.value.line == 1


def test_a_summary_is_held_to_three_points() -> None:
    action = ActionRegistry(user_dir=Path("no-such-folder")).get("summarize")
    grammar = action.request("Good morning.", ENGLISH_FIRST).grammar
    assert grammar == Grammar("regex", action.pattern, is_wish=True)
    assert re.fullmatch(action.pattern, "- One.\n- Two.\n- Three.")
    assert not re.fullmatch(action.pattern, "- One.\n- Two.\n- Three.\n- Four.")


def test_a_part_prompt_without_the_text_is_named() -> None:
    with pytest.raises(ActionFormatError, match=r"prompt\.en\.part has no \{text\}"):
        parse_action('[prompt.en]\nuser = "{text}"\npart = "Go on."', "own")


def test_a_long_text_has_no_examples_before_it_where_a_pattern_holds_the_form(tmp_path: Path) -> None:
    summarize, translate = registry(tmp_path).get("summarize"), registry(tmp_path).get("translate")
    short, long = "The lift is broken. ", "The lift is broken. " * 100
    assert len(summarize.request(short, ENGLISH_FIRST).messages) > 2
    request = summarize.request(long, ENGLISH_FIRST)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.grammar is not None
    assert len(translate.request(long, ENGLISH_FIRST).messages) > 2
