"""The settings of a remote engine, and the address that they make. Its key is no setting: see app/remote/key.py."""

from __future__ import annotations

from app.remote.address import RemoteAddress, remote_address, server_url
from app.settings.settings import Setting, Settings


def remote_settings() -> list[Setting]:
    """Everything that can be set of a server, in the order of the dialog."""
    return [
        Setting(
            key="remote.enabled",
            kind="flag",
            default=False,
            title={"en": "Use a server instead of this machine", "zh": "使用服务器代替本机"},
            help={
                "en": "Sends every text to the server below, which answers in place of the local model. The window of "
                "models switches it on and off.",
                "zh": "把每段文字发送到下面的服务器，由它代替本机模型回答。可在模型窗口中开关。",
            },
        ),
        Setting(
            key="remote.url",
            kind="text",
            default="",
            title={"en": "Address of the server", "zh": "服务器地址"},
            help={
                "en": "An OpenAI-compatible server (vLLM, SGLang, Ollama, llama.cpp), like http://localhost:11434. "
                "Its key lies in the system's keyring; enter it in the window of models.",
                "zh": "兼容 OpenAI 的服务器（vLLM、SGLang、Ollama、llama.cpp），例如 http://localhost:11434。"
                "密钥保存在系统密钥环中，请在模型窗口中输入。",
            },
            check=_server,
        ),
        Setting(
            key="remote.model",
            kind="text",
            default="",
            title={"en": "Model of the server", "zh": "服务器上的模型"},
            help={
                "en": "The name that the server gives it. Empty: its first.",
                "zh": "服务器为模型起的名称。留空则使用第一个。",
            },
        ),
        Setting(
            key="remote.context_tokens",
            kind="integer",
            default=0,
            title={"en": "Context of the server's model", "zh": "服务器模型的上下文长度"},
            help={
                "en": "How much text and answer fit together there. A server that does not say is taken to hold 8,192.",
                "zh": "那里的文字和回答合计能容纳的长度。服务器未说明时按 8,192 计。",
            },
            zero={"en": "As the server says", "zh": "由服务器决定"},
            unit="tokens",
            minimum=0,
            maximum=10_000_000,
        ),
        Setting(
            key="remote.allow_http",
            kind="flag",
            default=False,
            title={"en": "Allow unencrypted connections", "zh": "允许未加密的连接"},
            help={
                "en": "Also talk to servers on other machines by plain http; everyone on the way could read your text.",
                "zh": "也允许用未加密的 http 连接其他机器上的服务器；途中的任何人都能读到您的文字。",
            },
        ),
    ]


def address_of(settings: Settings) -> RemoteAddress | None:
    """The server of the settings; None where none is set up.

    Raises:
        RemoteAddressError: unencrypted, and over a network, and the user has not agreed to that.
    """
    url = settings.text("remote.url")
    if not url:
        return None
    return remote_address(
        url,
        settings.text("remote.model"),
        allows_plain=settings.flag("remote.allow_http"),
        context_tokens=settings.integer("remote.context_tokens"),
    )


def _server(text: str) -> str:
    return server_url(text) if text.strip() else ""
