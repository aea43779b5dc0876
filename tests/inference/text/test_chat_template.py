"""Rendered chats against transformers' own rendering."""

from __future__ import annotations

from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from inference.errors import InvalidRequestError, ModelFormatError
from inference.request import Message
from inference.text.chat_template import CHATML, PLAIN, ChatTemplate

# Written for these tests with the constructs of the published templates: index and attribute access, loop variables, a
# default system prompt, white-space control, namespaces, slices, text methods, tests, filters, dates and macros.
QWEN_2 = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
    {%- endfor %}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nDefault words.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) or
           (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

SMOLLM_2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nDefault words<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

LLAMA_3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{#- The first message may be the system's. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' +
            message['content'] | trim + '<|eot_id|>' }}
    {%- elif message.tool_calls|length != 1 %}
        {{- raise_exception("One call at a time!") }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN_3 = """
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and
           not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' }}
            {{- content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

CONSTRUCTS = """{% macro turn(role, text='none') -%}
[{{ role | upper }}|{{ text | replace('a', 'b') | e }}]{{ caller() if caller }}
{%- endmacro %}
  {% set last = namespace(role=none, seen=[]) %}
{% for message in messages if message.content %}
  {% if loop.previtem is defined and loop.previtem.role == message.role %}{% continue %}{% endif %}
    {{ turn(message.role, message.content) }} {{ loop.index ~ '/' ~ messages | length ~ ':' ~ loop.cycle('x', 'y') }}
  {% set last.role = message.role %}
{% else %}
nobody
{% endfor %}
{% generation %}{{ last.role }}{% endgeneration %}
{{ messages | map(attribute='role') | unique | join(', ') }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }}
{{ {'k': [1, 2.5, none, true, '<é"&>']} | tojson }} {{ [1, 2] | tojson(indent=2) }} {{ '%s-%d' % ('a', 3) }}
{{ "{:>5}".format('x') }} {{ (7 // 2) ** 2 % 5 }} {{ 'ab' * 2 + 'c' }} {{ [1] + [2] }} {{ undefined_name }}
{% filter trim %}  {{ eos_token }} {% endfilter %} {% set block %}<{{ bos_token }}>{% endset %}{{ block }}
{% for key, value in dict(a=1, b='x').items() %}{{ key }}={{ value }};{% endfor %}
{% call turn('called') %}inside{% endcall %}
{% for n in range(3) recursive %}{{ n }}{% if n == 1 %}{% break %}{% endif %}{% endfor %}
"""

TEMPLATES = {
    "qwen2": QWEN_2,
    "smollm2": SMOLLM_2,
    "llama3": LLAMA_3,
    "qwen3": QWEN_3,
    "constructs": CONSTRUCTS,
    "chatml": CHATML,
    "plain": PLAIN,
}


def turns(*contents: str, system: str | None = None) -> list[Message]:
    """User and assistant in turns."""
    chat = [Message("user" if index % 2 == 0 else "assistant", text) for index, text in enumerate(contents)]
    return chat if system is None else [Message("system", system), *chat]


SHAPES = {
    "one user": turns("Hello"),
    "system and user": turns("Hello", system="Be brief."),
    "several turns": turns("1", "2", "3", "4", "5"),
    "system and several turns": turns("1", "2", "3", system="S"),
    "ends in assistant": turns("Hi", "Hello there"),
    "thoughts": turns("Hi", "<think>\nhm\n</think>\n\nYes.", "And?", "<think>\n\nso\n\n</think>\n\n\nNo."),
    "thoughts last": turns("Hi", "<think>a</think>b</think>\n\nc"),
    "empty contents": turns("", "", "", system=""),
    "line ends and spaces": turns("\n\n  padded \t\n", "  \n", " x\r\n", system="\n s \n"),
    "unicode": turns("你好 😀 👩‍👩‍👧 مرحبا e\u0301 \u2028 \u00a0", "𝔘𝔫𝔦\ufeff\U0010ffff"),
    "control look-alikes": turns("<|im_end|>\n<|im_start|>system\nx", "<|eot_id|>"),
    "template look-alikes": turns("{{ messages }} {% raw %} {# x #}", "{%- endif %}"),
    "tool response": turns("Ask", "ok", "<tool_response>\nx\n</tool_response>", "done"),
    "very long": turns("word " * 40_000, "long " * 1000, "?"),
    "only system": [Message("system", "Alone.")],
    "two systems": [Message("system", "A"), Message("user", "u"), Message("system", "B")],
    "two users": [Message("user", "a"), Message("user", "b")],
    "assistant first": [Message("assistant", "a"), Message("user", "b")],
    "markup": turns("<b>&amp;</b> \"quoted\" 'single' \\n \\ %s {0}"),
    "hundred turns": turns(*(str(number) for number in range(100))),
}


def hugging_face(template: str, chat: list[Message], add_generation_prompt: bool) -> str:
    messages = [{"role": message.role, "content": message.content} for message in chat]
    rendered, _ = render_jinja_template(
        [messages],
        chat_template=template,
        add_generation_prompt=add_generation_prompt,
        bos_token="<|begin|>",
        eos_token="<|end|>",
    )
    (text,) = rendered
    return str(text)


@pytest.mark.parametrize("add_generation_prompt", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_equals_transformers(name: str, shape: str, add_generation_prompt: bool) -> None:
    template = ChatTemplate(TEMPLATES[name], "<|begin|>", "<|end|>")
    expected = hugging_face(TEMPLATES[name], SHAPES[shape], add_generation_prompt)
    assert template.render(SHAPES[shape], add_generation_prompt) == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_real_templates_equal_transformers(real: Any, shape: str) -> None:
    source = real.from_pieces.chat_template
    template = ChatTemplate(source, "<|begin|>", "<|end|>")
    for add_generation_prompt in (True, False):
        expected = hugging_face(source, SHAPES[shape], add_generation_prompt)
        assert template.render(SHAPES[shape], add_generation_prompt) == expected


def test_refusal_carries_the_templates_words() -> None:
    template = ChatTemplate("{{ raise_exception('Roles must alternate!') }}")
    with pytest.raises(InvalidRequestError, match=r"these 2 messages.*Roles must alternate!"):
        template.render(SHAPES["two users"])


@pytest.mark.parametrize("source", ["{% if %}", "{{ 'open", "{% for x in y %}", "{{ x | nofilter }}", "{% nonsense %}"])
def test_source_that_is_no_template(source: str) -> None:
    with pytest.raises(ModelFormatError, match="cannot be read"):
        ChatTemplate(source)


def test_source_of_megabytes() -> None:
    with pytest.raises(ModelFormatError, match="1048577 characters long, but 1048576"):
        ChatTemplate("x" * (1 << 20) + "y")


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1 / 0 }}",
        "{{ messages[99].content }}",
        "{{ none + 'x' }}",
        "{{ 'x'.encode('nonsense') }}",
        "{{ [].pop() }}",
        "{% include 'other' %}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
    ],
)
def test_template_that_fails(source: str) -> None:
    with pytest.raises(ModelFormatError, match="chat template"):
        ChatTemplate(source).render(turns("x"))
