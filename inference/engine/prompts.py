"""From a request to the tokens of its prompt, and why a prompt is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from inference.engine.count_queue import slices
from inference.errors import ContextOverflowError, ModelFormatError
from inference.request import GenerationRequest, Message, Tool
from inference.text.chat_template import chat_texts
from inference.text.grammar import GrammarTokenizer

_CHARS_A_TOKEN = 8  # more than texts have; so long a prompt is looked at before it is tokenized as a whole
_SLICE_SLACK = 4  # tokens that the cuts of a slice may have added to it


class ChatTokenizer(GrammarTokenizer, Protocol):
    """What the engine needs of a tokenizer."""

    def encode_chat(
        self, messages: Sequence[Message], add_generation_prompt: bool = True, tools: Sequence[Tool] = ()
    ) -> list[int]:
        """The rendered prompt."""
        ...

    def encode_prompt(self, text: str) -> list[int]:
        """A bare text that is to be gone on with."""
        ...


class Prompts:
    """Makes and checks the prompts of one model.

    Args:
        context_tokens: what prompt and answer may have together.
        vocab_size: rows of the embedding; 0 lets every token id pass.
    """

    def __init__(self, tokenizer: ChatTokenizer, context_tokens: int, vocab_size: int) -> None:
        self._tokenizer, self._context_tokens, self._vocab_size = tokenizer, context_tokens, vocab_size

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        return len(self._tokenizer.encode_text(text))

    def tokens_of(self, request: GenerationRequest) -> list[int]:
        """The request's messages as the chat template renders them, or its bare text.

        Raises:
            ContextOverflowError: they are sure not to fit.
            InvalidRequestError: the chat template refuses the messages.
        """
        self._refuse_hopeless(chat_texts(request.messages, request.tools) or [request.prompt])
        if request.messages:
            return self._tokenizer.encode_chat(request.messages, tools=request.tools)
        return self._tokenizer.encode_prompt(request.prompt)

    def checked(self, prompt: list[int]) -> list[int]:
        """The prompt itself.

        Raises:
            ContextOverflowError: it and one token of an answer do not fit the context.
            ModelFormatError: a token of it has no row in the embedding.
        """
        if len(prompt) >= self._context_tokens:
            raise ContextOverflowError(len(prompt), self._context_tokens)
        # A vocabulary may be larger than the weights, by a mistake or on purpose; backends do not look.
        rows = self._vocab_size
        if rows and prompt and not 0 <= min(prompt) <= max(prompt) < rows:
            raise ModelFormatError(
                f"The text has tokens from {min(prompt)} to {max(prompt)}, but the model's weights know 0 to"
                f" {rows - 1}: its vocabulary does not belong to them. Fetch the model again, or use another one."
            )
        return prompt

    def _refuse_hopeless(self, texts: Sequence[str]) -> None:
        """Reads of a text that is far too long only as much as proves it: all of it might take half a minute."""
        context, chars = self._context_tokens, sum(map(len, texts))
        if chars <= _CHARS_A_TOKEN * context:
            return
        read = tokens = slack = 0
        for text in texts:
            for piece in slices(text):
                read, tokens, slack = read + len(piece), tokens + self.count_tokens(piece), slack + _SLICE_SLACK
                if tokens - slack >= context:
                    raise ContextOverflowError(round(tokens * chars / read), context, is_estimate=read < chars)
