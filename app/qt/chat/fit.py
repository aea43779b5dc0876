"""Counts what is being written against the context, once the user pauses, and only while a model is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject

from app.conversation import ConversationState
from app.engine_client import EngineClient
from app.qt.bridge import Bridge
from app.qt.chat.composer import Composer
from app.translation import Translator
from inference.errors import InferenceError
from inference.request import ModelState, TokenCounts


class DraftCount(QObject):
    """Shows in the composer how much of the context is used.

    Attributes:
        first: index of the first message that the next request still holds.
    """

    def __init__(
        self,
        client: EngineClient,
        bridge: Bridge,
        composer: Composer,
        translator: Translator,
        show: Callable[[], None],
    ) -> None:
        """Begins to count.

        Args:
            show: calls `show_fit` with the state that is shown.
        """
        super().__init__(composer)
        self.first = 0
        self._client, self._bridge, self._composer, self._tr, self._show = client, bridge, composer, translator.tr, show
        self._draft_tokens: int | None = None
        self._context_tokens = 0
        composer.count_wanted.connect(self._count)

    def _count(self, text: str) -> None:
        self._draft_tokens = None
        if not text.strip() or self._client.reading().state is not ModelState.READY:
            self._show()
            return

        def on_counts(counts: TokenCounts | InferenceError) -> None:
            self._bridge.post_call(lambda: self._on_counts(text, counts))

        try:
            self._client.count_tokens((text,), on_counts)
        except InferenceError:
            self._show()

    def _on_counts(self, text: str, counts: TokenCounts | InferenceError) -> None:
        if isinstance(counts, TokenCounts) and text == self._composer.text():
            self._draft_tokens = counts.counts[0]
            self._context_tokens = counts.context_tokens
        self._show()

    def show_fit(self, state: ConversationState) -> None:
        """Shows what a conversation and the draft take together; nothing where that is not known."""
        tr = self._tr
        if not state.context_tokens and self._draft_tokens is not None:
            state = replace(state, context_tokens=self._context_tokens)
        fit = state.fit(self._draft_tokens)
        self.first = fit.first
        is_empty = not state.messages and self._draft_tokens is None
        if is_empty or fit.prompt_tokens is None or not fit.context_tokens:
            self._composer.set_tokens("", False)
            return
        words = tr("{used} / {context} tokens", used=f"{fit.prompt_tokens:,}", context=f"{fit.context_tokens:,}")
        tip = tr("The conversation and this message, out of what the model can hold together with its answer")
        self._composer.set_tokens(words, fit.prompt_tokens >= fit.context_tokens, tip)
