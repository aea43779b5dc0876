"""Which tokens a grammar allows, over a vocabulary of bytes and a few longer tokens."""

from __future__ import annotations

import itertools
import json
import threading
import time

import numpy as np
import pytest

from inference.errors import InvalidRequestError
from inference.request import Grammar
from inference.text import grammar as grammar_module
from inference.text.grammar import GrammarCompiler, GrammarState

CONTROL, END, OTHER_END, NOTHING = 256, 257, 258, 259
LONG = {260: b'{"', 261: b'": ', 262: b'", ', 263: "好".encode(), 264: b"<|im_end|>"}


class Bytes:
    """A token is a byte, but for control tokens and a few longer ones."""

    end_token_ids = frozenset({END, OTHER_END, 5000})

    def encode_text(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else LONG.get(token_id, b"")


@pytest.fixture
def compiler() -> GrammarCompiler:
    return GrammarCompiler(Bytes(), 270)


def written(state: GrammarState, text: str | bytes) -> GrammarState:
    rest = text.encode() if isinstance(text, str) else text
    while rest:
        assert state.allowed[rest[0]], rest
        certain = bytes(state.accept(rest[0]))
        assert rest[1:].startswith(certain[: len(rest) - 1])
        rest = rest[1 + len(certain) :]
    return state


def allowed(state: GrammarState) -> list[bytes]:
    return [bytes([i]) if i < 256 else LONG.get(i, b"") for i in np.flatnonzero(state.allowed)]


def test_the_end_is_allowed_exactly_where_the_grammar_may_end(compiler: GrammarCompiler) -> None:
    state = compiler.start(Grammar("regex", "ab*c?"))
    assert allowed(state) == [b"a"]
    written(state, "a")
    assert allowed(state) == [b"b", b"c", b"", b""]
    assert state.allowed[[END, OTHER_END]].all()
    assert not state.is_complete
    written(state, "bc")
    assert allowed(state) == [b"", b""]
    assert state.is_complete


def test_a_schema_gives_json_on_one_line(compiler: GrammarCompiler) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 3, "maximum": 12}},
        "required": ["name", "size"],
        "additionalProperties": False,
    }
    state = compiler.start(Grammar("json_schema", json.dumps(schema)))
    assert allowed(state) == [b"{"]  # what is certain is written as the tokenizer would
    written(state, '{"name": "好 \\"x\\"", "size": 1')
    assert set(allowed(state)) == {b"0", b"1", b"2"}
    assert written(state, "2}").is_complete  # "}" had to follow


def test_control_tokens_are_never_allowed(compiler: GrammarCompiler) -> None:
    """Not even where the grammar takes any text, or names them by their number."""
    anything = compiler.start(Grammar("lark", r"start: /(.|\n)*/"))
    inside = np.flatnonzero(anything.allowed)
    assert {END, OTHER_END, 264} <= set(inside)
    assert not {CONTROL, NOTHING, 269} & set(inside)
    named = compiler.start(Grammar("lark", f'start: <[{CONTROL}]> | "a"'))
    assert allowed(named) == [b"a"]
    ending = compiler.start(Grammar("lark", f'start: <[{END}]> "b" | "a"'))
    assert allowed(ending) == [b"a"]


def test_a_token_may_be_a_part_of_a_character(compiler: GrammarCompiler) -> None:
    state = compiler.start(Grammar("lark", 'start: "好" | "她"'))
    assert set(allowed(state)) == {"好".encode()[:1], "好".encode()}
    assert state.accept("好".encode()[0]) == [0xA5]
    assert set(allowed(state)) == {b"\xbd", b"\xb9"}


def test_what_must_follow_comes_along_but_never_the_end(compiler: GrammarCompiler) -> None:
    state = compiler.start(Grammar("regex", "x(abc|abd)yz"))
    assert state.accept(ord("x")) == [*b"ab"]
    assert set(allowed(state)) == {b"c", b"d"}
    assert state.accept(ord("d")) == [*b"yz"]
    assert state.is_complete


def test_answers_do_not_share_their_state(compiler: GrammarCompiler) -> None:
    grammar = Grammar("regex", "[ab][cd]")
    first, second = compiler.start(grammar), compiler.start(Grammar("regex", "[ab][cd]"))
    written(first, "a")
    assert allowed(first) == [b"c", b"d"]
    assert allowed(second) == allowed(compiler.start(grammar)) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("regex", "[ab]+(", "unclosed group"),
        ("regex", "(?=a)b", "look-around"),
        ("lark", "start: foo", 'unknown name: "foo"'),
        ("lark", 'start: <|im_end|> "a"', "unknown special token"),
        ("lark", "start: start", "cannot follow"),
        ("json_schema", '{"a"', "Expecting ':'"),
        ("json_schema", "[1]", "Expecting object"),
        ("json_schema", '{"type": "frob"}', "Invalid type: frob"),
        ("json_schema", '{"type": "string", "minLength": 5, "maxLength": 2}', "minLength"),
        ("json_schema", "[" * 100_000, "has a fault"),
    ],
)
def test_a_bad_grammar_is_refused_with_the_reason(compiler: GrammarCompiler, kind: str, text: str, says: str) -> None:
    with pytest.raises(InvalidRequestError, match=says) as caught:
        compiler.start(Grammar(kind, text))  # type: ignore[arg-type]
    assert len(str(caught.value)) < 500
    assert "backtrace" not in str(caught.value)
    assert allowed(compiler.start(Grammar("regex", "a"))) == [b"a"]


def test_a_grammar_is_compiled_once(compiler: GrammarCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Grammar] = []
    compile_one = compiler._compile
    monkeypatch.setattr(compiler, "_compile", lambda grammar: compiled.append(grammar) or compile_one(grammar))
    often, once = Grammar("regex", "a+"), [Grammar("regex", f"x{i}") for i in range(20)]
    for grammar in once:
        compiler.start(often)
        compiler.start(grammar)
    assert compiled == [often, *once]
    assert len(compiler._compiled) == 16


def test_a_kind_or_an_empty_text_is_refused_before_anything_else() -> None:
    with pytest.raises(InvalidRequestError, match="json_schema, regex, lark"):
        Grammar("gbnf", "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="white space"):
        Grammar("regex", " ")


def test_a_model_that_comes_again_finds_its_vocabulary_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    import llguidance

    made = []
    real = llguidance.LLTokenizer
    monkeypatch.setattr(llguidance, "LLTokenizer", lambda *args, **named: made.append(1) or real(*args, **named))
    monkeypatch.setattr(grammar_module, "_vocabularies", type(grammar_module._vocabularies)())
    words = Grammar("regex", "(yes|no)")
    for _ in range(3):
        assert allowed(GrammarCompiler(Bytes(), 270).start(words)) == [b"n", b"y"]
    assert len(made) == 1
    GrammarCompiler(Bytes(), 265).start(words)
    GrammarCompiler(Bytes(), 266).start(words)
    assert len(made) == 3
    assert len(grammar_module._vocabularies) == 2


def test_a_vocabulary_is_prepared_once_ahead_or_with_the_first_grammar() -> None:
    asked: list[int] = []

    class Heard(Bytes):
        def token_bytes(self, token_id: int) -> bytes:
            asked.append(token_id)
            return super().token_bytes(token_id)

    for ahead in (2, 0):
        asked.clear()
        compiler = GrammarCompiler(Heard(), 270)
        for _ in range(ahead):
            compiler.prepare()
        assert len(asked) == 270 * bool(ahead)
        assert allowed(compiler.start(Grammar("regex", "(yes|no)"))) == [b"n", b"y"]
        compiler.prepare()
        assert len(asked) == 270


def test_a_model_whose_answers_never_end_follows_no_grammar() -> None:
    endless = GrammarCompiler(Bytes(), 0)
    endless.prepare()
    with pytest.raises(InvalidRequestError, match="no token that ends"):
        endless.start(Grammar("regex", "a"))


def test_others_have_a_turn_while_a_vocabulary_is_prepared() -> None:
    """It is as large as a real one; no single call may hold the interpreter for nearly all of the time."""

    class Many(Bytes):
        def token_bytes(self, token_id: int) -> bytes:
            return super().token_bytes(token_id) if token_id < 270 else b"%x %x" % (token_id * 7919 % 65521, token_id)

    turns: list[float] = []
    ended = threading.Event()

    def take_turns() -> None:
        while not ended.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.0005)

    compiler = GrammarCompiler(Many(), 60_000)
    vocabulary = grammar_module._Vocabulary(Many(), 60_000, compiler._end_token_ids)
    other = threading.Thread(target=take_turns)
    other.start()
    start = time.perf_counter()
    grammar_module._made(vocabulary, compiler._end_token_ids)
    took = time.perf_counter() - start
    ended.set()
    other.join()
    within = [start, *(turn for turn in turns if turn > start), start + took]
    assert max(later - earlier for earlier, later in itertools.pairwise(within)) < 0.9 * took
