"""Text to token ids and back to bytes, with ids that are exactly Hugging Face's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from inference.errors import InvalidRequestError, ModelFormatError
from inference.request import Message, Tool
from inference.text.byte_alphabet import to_bytes
from inference.text.chat_template import CHATML, PLAIN, ChatTemplate, chat_texts
from inference.text.control_tokens import ControlToken, choose_marker
from inference.text.tokenizer_data import TokenizerData
from inference.text.vocabulary import Vocabulary, read_vocabulary

# Texts of control tokens that end an answer. Only control tokens are compared, so no ordinary text is meant.
_END_TEXTS = frozenset(
    (
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|end|>",
        "<|eot|>",
        "<end_of_turn>",
        "</s>",
    )
)


class Tokenizer:
    """Encodes texts and chats. Thread-safe after it is built; long texts are encoded with the interpreter's lock
    released.

    Control tokens come from the chat template alone. Whatever a message holds, even `<|im_end|>`, is encoded as the
    text that it is; see Vocabulary for which tokens count as control tokens.

    Attributes:
        vocab_size: one more than the highest id; the model's head may be wider.
        end_token_ids: every id that ends an answer: the file's own, control tokens known to end one, and the control
            token that the chat template writes after an assistant's message.
        template: the chat template in use.
        bos_token_id: id of the token that begins a text, None where the model has none.
    """

    def __init__(self, vocabulary: Vocabulary, data: TokenizerData) -> None:
        self._vocabulary = vocabulary
        self.vocab_size = len(vocabulary.texts)
        self.bos_token_id = data.bos_token_id
        self.template = _template(vocabulary, data)
        # Hugging Face leaves the first token to its templates. The templates in GGUF files may leave it to the
        # tokenizer.
        own_template = data.chat_template is not None and data.tokenizer_json is not None
        self._adds_bos = data.add_bos_token and data.bos_token_id is not None and not own_template
        self._begins = data.add_bos_token
        self._eos_token_ids = data.eos_token_ids

    @classmethod
    def from_data(cls, data: TokenizerData) -> Tokenizer:
        """Builds a tokenizer from a tokenizer.json or from the pieces in a GGUF file.

        Raises:
            ModelFormatError: the vocabulary or the chat template contradicts itself.
            UnsupportedModelError: not a byte-level BPE vocabulary, or an unknown rule of splitting text.
        """
        return cls(read_vocabulary(data), data)

    @cached_property
    def end_token_ids(self) -> frozenset[int]:
        by_text = self._vocabulary.control.by_text
        known = {by_text[text].token_id for text in _END_TEXTS if text in by_text}
        return frozenset({*self._eos_token_ids, *known, *self._turn_end()})

    def _turn_end(self) -> Iterator[int]:
        """The control token that the template writes after an assistant's message, found by rendering one."""
        probe = "\ue000answer\ue000"
        try:
            rendered = self.template.render((Message("user", "question"), Message("assistant", probe)), False)
        except (InvalidRequestError, ModelFormatError):
            return
        _, found, rest = rendered.partition(probe)
        for piece in self._vocabulary.control.split(rest if found else ""):
            if isinstance(piece, ControlToken):
                yield piece.token_id
                return
            if piece.strip():
                return

    def encode_text(self, text: str) -> list[int]:
        """Token ids of a bare text: no control tokens, no begin token."""
        if not text:
            return []
        return self._vocabulary.encoder.encode([_well_formed(text)])[0]

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a bare text that the model is to go on with, behind the begin token where the file wants one."""
        token_ids = self.encode_text(text)
        return [self.bos_token_id, *token_ids] if self._begins and self.bos_token_id is not None else token_ids

    @cached_property
    def knows_tools(self) -> bool:
        """Whether the chat template tells the model what it may call, found by rendering a tool."""
        probe = Tool("\ue000probe\ue000", "", "{}")
        try:
            return probe.name in self.template.render((Message("user", "question"),), True, (probe,))
        except (InvalidRequestError, ModelFormatError):
            return False

    def encode_chat(
        self, messages: Sequence[Message], add_generation_prompt: bool = True, tools: Sequence[Tool] = ()
    ) -> list[int]:
        """Token ids of a chat: what Hugging Face's apply_chat_template gives, but for control tokens inside of
        messages.

        Raises:
            InvalidRequestError: the chat template refuses the messages, or knows no tools.
            ModelFormatError: the chat template fails.
        """
        if tools and not self.knows_tools:
            raise InvalidRequestError(
                f"There are {len(tools)} tools, but the chat template of this model has no place for any. Use a model"
                " that was trained to call tools."
            )
        marker = choose_marker(chat_texts(messages, tools))
        guard = self._vocabulary.control.guard
        rendered = self.template.render(
            messages, add_generation_prompt, tools, clean=lambda text: guard(_well_formed(text), marker)
        )
        return self.encode_rendered(rendered, marker)

    def encode_rendered(self, rendered: str, marker: str = "") -> list[int]:
        """Token ids of a rendered chat, in which texts of control tokens become control tokens.

        Args:
            marker: a character that was put into messages to break such texts, and is removed; "" for none.
        """
        pieces = list(self._vocabulary.control.split(rendered, marker))
        texts = [_well_formed(piece) for piece in pieces if isinstance(piece, str)]
        encoded = iter(self._vocabulary.encoder.encode(texts))
        token_ids: list[int] = []
        for piece in pieces:
            token_ids += next(encoded) if isinstance(piece, str) else (piece.token_id,)
        if self._adds_bos and self.bos_token_id is not None and token_ids[:1] != [self.bos_token_id]:
            token_ids.insert(0, self.bos_token_id)
        return token_ids

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of the chat with the generation prompt: what the answer's context must hold besides the answer."""
        return len(self.encode_chat(messages))

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes of a token's text, possibly a part of a character; b"" for control tokens and ids without a token."""
        vocabulary = self._vocabulary
        if not 0 <= token_id < self.vocab_size or token_id in vocabulary.control_ids:
            return b""
        text = vocabulary.texts[token_id]
        return text.encode("utf-8", "replace") if token_id in vocabulary.literal_ids else to_bytes(text)


def _template(vocabulary: Vocabulary, data: TokenizerData) -> ChatTemplate:
    source = data.chat_template
    if source is None:
        by_text = vocabulary.control.by_text
        source = CHATML if "<|im_start|>" in by_text and "<|im_end|>" in by_text else PLAIN
    return ChatTemplate(source, data.bos_token, data.eos_token)


def _well_formed(text: str) -> str:
    """Replaces lone surrogates, which a clipboard may hold but UTF-8 cannot, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
