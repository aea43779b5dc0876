"""A model's own chat template: messages in, one string out, as Hugging Face renders it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from jinja2.exceptions import TemplateError

from inference.errors import InvalidRequestError, ModelFormatError
from inference.request import Message, Tool
from inference.text.template_sandbox import Budget, BudgetError, RefusedError, TemplateSandbox, budget

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""For models without a template whose vocabulary has ChatML's tokens."""

PLAIN = (
    "{% for message in messages %}{{ message.role | capitalize + ': ' + message.content + '\n\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
"""For models without a template and without ChatML's tokens: a transcript of "User: ..." that ends in "Assistant:"."""

_MAX_SOURCE_CHARS = 1 << 20
_MAX_EXTRA_CHARS = 1 << 20
_MAX_REPEATS = 4

# Whatever a template can make Python raise.
_FAULTS = (
    TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    StopIteration,
    SyntaxError,
    TypeError,
    ValueError,
)


class ChatTemplate:
    """A compiled template. Rendering is thread-safe.

    Args:
        source: jinja2 source.
        bos_token, eos_token: texts that the template may write; "" where the model has none.

    Raises:
        ModelFormatError: the source is no jinja2, or over a million characters long.
    """

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        if len(source) > _MAX_SOURCE_CHARS:
            raise ModelFormatError(
                f"The model's chat template is {len(source)} characters long, but {_MAX_SOURCE_CHARS} is the limit."
                " Fetch the model again, or use another one."
            )
        self.source = source
        self._bos_token = bos_token
        self._eos_token = eos_token
        try:
            self._template = TemplateSandbox().template(source)
        except _FAULTS as error:
            raise ModelFormatError(
                f"The model's chat template cannot be read: {_short(error)}. Fetch the model again, or use another one."
            ) from error

    def render(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool = True,
        tools: Sequence[Tool] = (),
        clean: Callable[[str], str] = str,
    ) -> str:
        """Renders a chat, without encoding it.

        Args:
            clean: applied to every text of the messages and tools before the template sees it.

        Raises:
            InvalidRequestError: the template refuses the messages, for example two of the same role in a row.
            ModelFormatError: the template fails, or computes more than any chat needs.
        """
        limit = _MAX_EXTRA_CHARS + _MAX_REPEATS * sum(map(len, chat_texts(messages, tools)))
        token = budget.set(Budget(max_size=limit))
        try:
            return self._template.environment.concat(
                self._template.generate(
                    messages=[_message_data(message, clean) for message in messages],
                    tools=[_tool_data(tool, clean) for tool in tools] or None,
                    documents=None,
                    add_generation_prompt=add_generation_prompt,
                    bos_token=self._bos_token,
                    eos_token=self._eos_token,
                )
            )
        except RefusedError as error:
            raise InvalidRequestError(
                f"The model's chat template refuses these {len(messages)} messages: {_short(error)}."
                " Send them in an order that it accepts."
            ) from error
        except BudgetError as error:
            raise ModelFormatError(
                f"The model's chat template was stopped: {_short(error)}. Use another model."
            ) from error
        except _FAULTS as error:
            raise ModelFormatError(
                f"The model's chat template fails on these {len(messages)} messages: {_short(error)}."
                " Use another model."
            ) from error
        finally:
            budget.reset(token)


def chat_texts(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[str]:
    """Every text that comes from outside; JSON as it is written."""
    texts = [message.content for message in messages]
    for call in (call for message in messages for call in message.tool_calls):
        texts += (call.call_id, call.name, call.arguments)
    texts += [message.tool_call_id for message in messages if message.tool_call_id]
    return texts + [text for tool in tools for text in (tool.name, tool.description, tool.parameters)]


def _message_data(message: Message, clean: Callable[[str], str]) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": clean(message.content)}
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": clean(call.call_id),
                "type": "function",
                "function": {"name": clean(call.name), "arguments": _json_data(call.arguments, clean)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        data["tool_call_id"] = clean(message.tool_call_id)
    return data


def _tool_data(tool: Tool, clean: Callable[[str], str]) -> dict[str, Any]:
    function = {
        "name": clean(tool.name),
        "description": clean(tool.description),
        "parameters": _json_data(tool.parameters, clean),
    }
    return {"type": "function", "function": function}


def _json_data(text: str, clean: Callable[[str], str]) -> Any:
    """What JSON says, every text in it cleaned; a text that is no JSON is that text."""
    try:
        return _cleaned(json.loads(text), clean)
    except (ValueError, RecursionError):
        return clean(text)


def _cleaned(data: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return clean(data)
    if isinstance(data, list):
        return [_cleaned(each, clean) for each in data]
    if isinstance(data, dict):
        return {clean(key): _cleaned(value, clean) for key, value in data.items()}
    return data


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}".rstrip(". ")
