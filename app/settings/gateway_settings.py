"""The settings of the gateway. Its key is no setting: it lies in the system's keyring (app/remote/key.py)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from app.settings.settings import Setting
from app.translation import UserText

DEFAULT_PORT = 18000
KEY_ENTRY = "gateway"
"""The name of the gateway's key in the keyring, where servers have their address."""


class OriginError(ValueError):
    """A text is not the origin of a web page.

    Attributes:
        text: value and cure, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


def gateway_settings() -> list[Setting]:
    """Everything that can be set of the gateway, in the order of the dialog."""
    return [
        Setting(
            key="gateway.enabled",
            kind="flag",
            default=False,
            title={"en": "Serve other programs", "zh": "为其他程序提供服务"},
            help={
                "en": "Editors, note apps and scripts on this machine can use the model, as OpenAI's API. Hotkeys and "
                "the chat go first. Other machines cannot reach it.",
                "zh": "本机的编辑器、笔记软件和脚本可通过 OpenAI 兼容接口使用模型。快捷键和聊天优先；"
                "其他机器无法访问。",
            },
        ),
        Setting(
            key="gateway.port",
            kind="integer",
            default=DEFAULT_PORT,
            title={"en": "Port", "zh": "端口"},
            help={
                "en": "Programs call http://127.0.0.1:18000/v1, with this number in it.",
                "zh": "程序使用的地址为 http://127.0.0.1:18000/v1，其中的数字即此端口。",
            },
            minimum=1024,
            maximum=65535,
        ),
        Setting(
            key="gateway.needs_key",
            kind="flag",
            default=False,
            title={"en": "Only with a key", "zh": "必须提供密钥"},
            help={
                "en": "Programs must send the key that is set below. Off: every program of this machine may call.",
                "zh": "其他程序必须提供下面设置的密钥。关闭时，本机所有程序均可调用。",
            },
        ),
        Setting(
            key="gateway.origins",
            kind="text",
            default="",
            title={"en": "Pages and plug-ins that may call", "zh": "允许调用的网页和插件"},
            help={
                "en": "Origins with commas, like app://obsidian.md, https://notes.example.org. Pages of this machine "
                "always may, pages of others only when they stand here.",
                "zh": "以逗号分隔的来源，例如 app://obsidian.md, https://notes.example.org。本机网页始终允许，其他网页须列在此处。",
            },
            check=lambda text: ", ".join(origins_of(text)),
        ),
    ]


def origins_of(text: str) -> tuple[str, ...]:
    """The origins that a text names.

    Raises:
        OriginError: one of them is none.
    """
    return tuple(_origin(part) for part in re.split(r"[,\s]+", text) if part)


def _origin(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_one = bool(parts.scheme and parts.netloc) and parts.path in ("", "/") and not parts.query + parts.fragment
    except ValueError:
        is_one = False
    if not is_one:
        raise OriginError(
            UserText('"{value}" is not the origin of a page. Write it like https://notes.example.org.', value=text)
        )
    return text.rstrip("/")
