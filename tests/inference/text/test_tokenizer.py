"""Token ids against transformers, on vocabularies trained here and on those of the real models."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from inference.errors import InvalidRequestError, ModelFormatError, UnsupportedModelError
from inference.request import Message
from inference.text.tokenizer import Tokenizer
from inference.text.tokenizer_data import TokenizerData

CHATML = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
HEADERS = (
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' }}"
    "{{ message.content | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)


def tokenizers_of(peer: Any) -> list[Tokenizer]:
    return [Tokenizer.from_data(data) for data in peer.data()]


def mixed_texts(samples: dict[str, str], seed: int, count: int) -> list[str]:
    """Random pieces of all samples, glued together at random places."""
    rng = random.Random(seed)
    whole = "".join(samples.values())
    texts = []
    for _ in range(count):
        cuts = [rng.randrange(len(whole)) for _ in range(rng.randint(1, 6))]
        texts.append("".join(whole[cut : cut + rng.randint(1, 12)] for cut in cuts))
    return texts


class TestText:
    def test_ids_equal_transformers(self, trained: Any, samples: dict[str, str]) -> None:
        assert sum(len(text.encode()) for text in samples.values()) > 10_000
        for tokenizer in tokenizers_of(trained):
            for name, text in samples.items():
                assert tokenizer.encode_text(text) == trained.ids(text), name

    def test_ids_of_random_mixtures_equal_transformers(self, trained: Any, samples: dict[str, str]) -> None:
        for tokenizer in tokenizers_of(trained):
            for text in mixed_texts(samples, seed=3, count=400):
                assert tokenizer.encode_text(text) == trained.ids(text), ascii(text)

    def test_ids_of_real_models_equal_transformers(self, real: Any, samples: dict[str, str]) -> None:
        (tokenizer,) = tokenizers_of(real)
        for text in [*samples.values(), "".join(samples.values()), *mixed_texts(samples, seed=5, count=1500)]:
            assert tokenizer.encode_text(text) == real.ids(text), ascii(text[:200])

    def test_the_coders_share_one_vocabulary(self, real_data_of: Callable[[str], TokenizerData]) -> None:
        small, large = (real_data_of(f"qwen2.5-coder-{size}-instruct") for size in ("0.5b", "1.5b"))
        assert (small.tokens, small.merges, small.token_types) == (large.tokens, large.merges, large.token_types)

    def test_control_tokens_typed_by_a_user_stay_text(self, trained: Any, look_alikes: tuple[str, ...]) -> None:
        for tokenizer in tokenizers_of(trained):
            for text in look_alikes:
                ids = tokenizer.encode_text(text)
                assert ids == trained.ids(text), text
                assert all(tokenizer.token_bytes(token_id) for token_id in ids)
                assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()

    def test_tags_that_are_no_control_tokens_keep_their_id(self, trained: Any) -> None:
        expected = trained.reference.convert_tokens_to_ids("<tool_call>")
        for tokenizer in tokenizers_of(trained):
            assert tokenizer.encode_text("<tool_call>") == [expected]
            assert tokenizer.token_bytes(expected) == b"<tool_call>"

    def test_bytes_of_the_ids_are_the_text(self, trained: Any, samples: dict[str, str]) -> None:
        for tokenizer in tokenizers_of(trained):
            for name, text in samples.items():
                joined = b"".join(map(tokenizer.token_bytes, tokenizer.encode_text(text)))
                expected = trained.reference.decode(trained.ids(text), clean_up_tokenization_spaces=False)
                assert joined.decode() == expected, name
                if trained.rule != "qwen2":  # which normalizes
                    assert joined == text.encode(), name

    def test_whole_words_are_looked_up_where_the_rule_says_so(self, trained: Any, unreachable: str) -> None:
        token_id = trained.reference.convert_tokens_to_ids(unreachable)
        for tokenizer in tokenizers_of(trained):
            assert (tokenizer.encode_text(" UnreachableWord") == [token_id]) == (trained.rule == "llama-bpe")

    def test_empty_text_has_no_tokens(self, trained: Any) -> None:
        assert [tokenizer.encode_text("") for tokenizer in tokenizers_of(trained)] == [[], []]

    def test_lone_surrogates_become_replacement_characters(self, trained: Any) -> None:
        for tokenizer in tokenizers_of(trained):
            assert tokenizer.encode_text("a\ud83d b\udc00") == trained.ids("a\ufffd b\ufffd")
            assert tokenizer.encode_text("\ud83d\ude00") == trained.ids("😀")


class TestChat:
    def chats(self, samples: dict[str, str]) -> list[list[Message]]:
        texts = mixed_texts(samples, seed=11, count=60)
        return [
            [Message("user", texts[index]), Message("assistant", texts[index + 1]), Message("user", texts[index + 2])]
            for index in range(0, 57, 3)
        ]

    @pytest.mark.parametrize("template", [CHATML, HEADERS], ids=["chatml", "headers"])
    def test_ids_equal_apply_chat_template(self, trained: Any, samples: dict[str, str], template: str) -> None:
        for data in trained.data():
            tokenizer = Tokenizer.from_data(dataclasses.replace(data, chat_template=template))
            for chat in self.chats(samples):
                assert tokenizer.encode_chat(chat) == hugging_face_chat(trained, chat, template)

    def test_ids_of_real_models_equal_apply_chat_template(self, real: Any, samples: dict[str, str]) -> None:
        (tokenizer,) = tokenizers_of(real)
        for chat in self.chats(samples):
            assert tokenizer.encode_chat(chat) == hugging_face_chat(real, chat, real.from_pieces.chat_template)

    def test_look_alikes_in_messages_stay_text(self, trained: Any, look_alikes: tuple[str, ...]) -> None:
        for data in trained.data():
            tokenizer = Tokenizer.from_data(dataclasses.replace(data, chat_template=CHATML))
            start, end = (trained.reference.convert_tokens_to_ids(text) for text in ("<|im_start|>", "<|im_end|>"))
            for text in look_alikes:
                around = [Message("user", f"before {text} after"), Message("system", text), Message("assistant", text)]
                ids = tokenizer.encode_chat(around)
                assert (ids.count(start), ids.count(end)) == (4, 3), text
                expected: list[int] = []
                for message in around:
                    expected += [start, *trained.ids(f"{message.role}\n{message.content}"), end, *trained.ids("\n")]
                assert ids == [*expected, start, *trained.ids("assistant\n")], text

    def test_real_models_keep_look_alikes_text(self, real: Any, look_alikes: tuple[str, ...]) -> None:
        (tokenizer,) = tokenizers_of(real)
        plain = tokenizer.encode_chat([Message("user", "x")])
        control = {token_id for token_id in plain if not tokenizer.token_bytes(token_id)}
        assert len(control) == 2
        for text in look_alikes:
            ids = tokenizer.encode_chat([Message("user", text)])
            found = [token_id for token_id in ids if not tokenizer.token_bytes(token_id)]
            assert found == [token_id for token_id in plain if token_id in control], text
            assert text.encode() in b"".join(map(tokenizer.token_bytes, ids))

    def test_transformers_own_sanitizer_agrees(self, trained: Any) -> None:
        # It encodes a look-alike apart from its neighbours, so ids are the same only where these are control tokens.
        bare = "{% for message in messages %}{{ '<|im_start|>' + message.content + '<|im_end|>' }}{% endfor %}"
        tokenizer = Tokenizer.from_data(dataclasses.replace(trained.from_file, chat_template=bare))
        chat = [Message("user", "<|im_end|>"), Message("assistant", "<|start_header_id|>")]
        assert tokenizer.encode_chat(chat) == hugging_face_chat(trained, chat, bare, sanitize_control_tokens=True)

    def test_marker_characters_in_messages_survive(self, trained: Any) -> None:
        text = "".join(map(chr, range(0xFDD0, 0xFDF0))) + "<|im_end|>\ue000"
        tokenizer = Tokenizer.from_data(dataclasses.replace(trained.from_pieces, chat_template=CHATML))
        start = trained.reference.convert_tokens_to_ids("<|im_start|>")
        end = trained.reference.convert_tokens_to_ids("<|im_end|>")
        expected = [start, *trained.ids(f"user\n{text}"), end, *trained.ids("\n")]
        assert tokenizer.encode_chat([Message("user", text)], add_generation_prompt=False) == expected

    def test_template_text_cannot_complete_a_users_half_of_a_control_token(self, trained: Any) -> None:
        glued = "{% for message in messages %}{{ message.content + 'end|>' + '<|im_' + message.content }}{% endfor %}"
        end = trained.reference.convert_tokens_to_ids("<|im_end|>")
        for data in trained.data():
            tokenizer = Tokenizer.from_data(dataclasses.replace(data, chat_template=glued))
            assert end not in tokenizer.encode_chat([Message("user", "<|im_")])
            assert end not in tokenizer.encode_chat([Message("user", "end|>")])

    def test_count_is_the_length_of_the_prompt(self, trained: Any) -> None:
        for tokenizer in tokenizers_of(trained):
            chat = [Message("user", "How many?")]
            assert tokenizer.count(chat) == len(tokenizer.encode_chat(chat)) > 4

    def test_refusal_of_a_template_reaches_the_caller(self, trained: Any) -> None:
        data = dataclasses.replace(trained.from_pieces, chat_template="{{ raise_exception('roles must alternate') }}")
        with pytest.raises(InvalidRequestError, match="roles must alternate"):
            Tokenizer.from_data(data).encode_chat([Message("user", "x")])


class TestBeginToken:
    @pytest.mark.parametrize("template", [HEADERS, HEADERS.removeprefix("{{ bos_token }}"), None])
    def test_pieces_get_it_exactly_once(self, trained: Any, template: str | None) -> None:
        data = dataclasses.replace(trained.from_pieces, add_bos_token=True, chat_template=template)
        ids = Tokenizer.from_data(data).encode_chat([Message("user", "x")])
        assert ids[0] == data.bos_token_id
        assert ids[1] != data.bos_token_id

    def test_directories_leave_it_to_the_template(self, trained: Any) -> None:
        template = HEADERS.removeprefix("{{ bos_token }}")
        data = dataclasses.replace(trained.from_file, add_bos_token=True, chat_template=template)
        chat = [Message("user", "x")]
        assert Tokenizer.from_data(data).encode_chat(chat) == hugging_face_chat(trained, chat, template)

    def test_is_not_added_where_the_file_does_not_ask(self, trained: Any) -> None:
        data = dataclasses.replace(trained.from_pieces, chat_template="{{ messages[0].content }}")
        assert Tokenizer.from_data(data).encode_chat([Message("user", "x")]) == trained.ids("x")


class TestEndTokens:
    def test_all_ends_of_chatml(self, trained: Any) -> None:
        for data in trained.data():
            tokenizer = Tokenizer.from_data(dataclasses.replace(data, chat_template=CHATML, eos_token_ids=()))
            names = trained.reference.convert_ids_to_tokens(sorted(tokenizer.end_token_ids))
            assert {"<|im_end|>", "<|endoftext|>", "<|eot_id|>"} == set(names)

    def test_what_the_template_writes_after_an_answer(self) -> None:
        data = TokenizerData(
            tokens=("a", "<user>", "<bot>", "<done>", "<other>"),
            token_types=(1, 3, 3, 3, 3),
            pre_tokenizer="gpt-2",
            chat_template="{% for m in messages %}<{{ 'bot' if m.role == 'assistant' else 'user' }}>"
            "{{ m.content }}{% if m.role == 'assistant' %}\n<done>{% endif %}{% endfor %}",
        )
        assert Tokenizer.from_data(data).end_token_ids == {3}

    def test_a_template_that_refuses_the_probe_leaves_the_files_own(self, trained: Any) -> None:
        data = dataclasses.replace(trained.from_pieces, chat_template="{{ raise_exception('no') }}", eos_token_ids=(5,))
        assert 5 in Tokenizer.from_data(data).end_token_ids

    def test_real_models(self, real: Any) -> None:
        (tokenizer,) = tokenizers_of(real)
        names = {real.from_pieces.tokens[token_id] for token_id in tokenizer.end_token_ids}
        assert names == {"<|im_end|>", "<|endoftext|>"}


class TestTokenBytes:
    def test_control_and_missing_tokens_have_none(self, trained: Any) -> None:
        for tokenizer in tokenizers_of(trained):
            for text in ("<|im_end|>", "<|endoftext|>"):
                assert tokenizer.token_bytes(trained.reference.convert_tokens_to_ids(text)) == b""
            assert tokenizer.token_bytes(tokenizer.vocab_size + 7) == tokenizer.token_bytes(-1) == b""

    def test_vocab_size_counts_every_id(self, trained: Any) -> None:
        assert {tokenizer.vocab_size for tokenizer in tokenizers_of(trained)} == {len(trained.reference)}

    def test_real_vocabulary(self, real: Any) -> None:
        (tokenizer,) = tokenizers_of(real)
        assert tokenizer.vocab_size == len(real.from_pieces.tokens)
        for token_id in range(0, tokenizer.vocab_size, 101):
            if real.from_pieces.token_types[token_id] == 1:
                expected = real.reference.backend_tokenizer.decode([token_id])
                assert tokenizer.token_bytes(token_id).decode("utf-8", "replace") == expected


class TestRefusals:
    def test_unknown_rule_is_named(self) -> None:
        with pytest.raises(UnsupportedModelError, match="'tekken'"):
            Tokenizer.from_data(TokenizerData(tokens=("a",), token_types=(1,), pre_tokenizer="tekken"))

    @pytest.mark.parametrize(
        "change",
        [
            {"tokens": (), "token_types": ()},
            {"token_types": (1,)},
            {"merges": ("a c",)},
            {"merges": ("ab",)},
            {"merges": ("a b c",)},
            {"merges": ("<|x|> a",)},
            {"chat_template": "{% for %}"},
        ],
        ids=str,
    )
    def test_contradicting_pieces(self, change: dict[str, Any]) -> None:
        data = TokenizerData(
            tokens=("a", "b", "ab", "<|x|>", "<|x|>a"),
            merges=("a b",),
            token_types=(1, 1, 1, 3, 1),
            pre_tokenizer="gpt-2",
        )
        assert Tokenizer.from_data(data).encode_text("abab") == [2, 2]
        with pytest.raises(ModelFormatError, match="again"):
            Tokenizer.from_data(dataclasses.replace(data, **change))

    @pytest.mark.parametrize(
        "source",
        [
            "",
            "[]",
            "{}",
            '{"model": 3}',
            '{"model": {"vocab": [], "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}',
            '{"model": {"vocab": {"a": -1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}',
            '{"model": {"vocab": {"a": 99999999999}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}',
            '{"model": {"vocab": {"a": 1}, "merges": [["a", "b", "c"]]}, "pre_tokenizer": {"type": "ByteLevel"}}',
            '{"model": {"vocab": {"a": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}, "added_tokens": [1]}',
            '{"model": {"vocab": {"a": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel", "use_regex": "?"}}',
        ],
        ids=range(10),
    )
    def test_broken_tokenizer_json(self, source: str) -> None:
        with pytest.raises(ModelFormatError, match="Fetch the model again"):
            Tokenizer.from_data(TokenizerData(tokenizer_json=source))

    def test_other_kinds_of_vocabulary(self, trained: Any) -> None:
        tree = json.loads(trained.from_file.tokenizer_json)
        for change in ({"type": "Unigram"}, {"byte_fallback": True}, {"end_of_word_suffix": "</w>"}):
            source = json.dumps({**tree, "model": {**tree["model"], **change}})
            with pytest.raises(UnsupportedModelError, match="byte-level BPE"):
                Tokenizer.from_data(TokenizerData(tokenizer_json=source))

    def test_truncation_and_padding_of_a_file_are_ignored(self, trained: Any) -> None:
        tree = json.loads(trained.from_file.tokenizer_json)
        tree["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
        data = dataclasses.replace(trained.from_file, tokenizer_json=json.dumps(tree))
        assert Tokenizer.from_data(data).encode_text("one two three four") == trained.ids("one two three four")


class TestFallbackTemplates:
    def test_chatml_where_its_tokens_exist(self, trained: Any) -> None:
        tokenizer = Tokenizer.from_data(trained.from_pieces)
        chat = [Message("system", "Be kind."), Message("user", "Hi")]
        assert tokenizer.encode_chat(chat) == hugging_face_chat(trained, chat, CHATML)

    def test_transcript_elsewhere(self) -> None:
        tokenizer = Tokenizer.from_data(TokenizerData(tokens=("a",), token_types=(1,), pre_tokenizer="gpt-2"))
        rendered = tokenizer.template.render([Message("system", "Be kind."), Message("user", "Hi")])
        assert rendered == "System: Be kind.\n\nUser: Hi\n\nAssistant:"


def test_tokens_of_control_shape_are_control_tokens_also_where_the_flag_is_off(trained: Any) -> None:
    tree = json.loads(trained.from_file.tokenizer_json)
    for entry in tree["added_tokens"]:
        entry["special"] = False
    tokenizer = Tokenizer.from_data(dataclasses.replace(trained.from_file, tokenizer_json=json.dumps(tree)))
    assert tokenizer.encode_text("<|im_end|>") == trained.ids("<|im_end|>")
    pieces = dataclasses.replace(trained.from_pieces, token_types=())
    assert Tokenizer.from_data(pieces).encode_text("<|im_end|>") == trained.ids("<|im_end|>")


def hugging_face_chat(peer: Any, chat: list[Message], template: str, **options: Any) -> list[int]:
    messages = [{"role": message.role, "content": message.content} for message in chat]
    ids: list[int] = peer.reference.apply_chat_template(
        messages, chat_template=template, add_generation_prompt=True, return_dict=False, **options
    )
    return ids
