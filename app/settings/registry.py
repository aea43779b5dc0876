"""Every setting of the app, once."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from app.actions.action import Action
from app.actions.commands import hotkey_setting
from app.byte_size import byte_size
from app.desktop.hotkeys import parse
from app.language import LANGUAGES
from app.settings.gateway_settings import gateway_settings
from app.settings.remote_settings import remote_settings
from app.settings.settings import Setting, program_names
from app.translation import UserText

MIN_CONTEXT_TOKENS = 512
MAX_CONTEXT_TOKENS = 131_072


class EndpointError(ValueError):
    """A text is not the address of a model hub.

    Attributes:
        text: value and cure, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


def setting_registry(actions: Iterable[Action]) -> list[Setting]:
    """All settings in the order of the dialog; every action adds its two hotkeys."""
    return [
        *_language_settings(),
        *_model_settings(),
        *_desktop_settings(),
        *_answer_settings(),
        *remote_settings(),
        *gateway_settings(),
        *_privacy_settings(),
        *_hotkey_settings(actions),
    ]


def _language_settings() -> list[Setting]:
    names = {code: {"en": language.english, "zh": language.chinese} for code, language in LANGUAGES.items()}
    automatic = {"en": "As the system", "zh": "跟随系统"}
    return [
        Setting(
            key="language.ui",
            kind="choice",
            default="auto",
            title={"en": "Language of the windows", "zh": "界面语言"},
            help={
                "en": "Language of menus, windows and messages. Takes effect when the app is started again.",
                "zh": "菜单、窗口和消息的语言。重新启动程序后生效。",
            },
            choices={"auto": automatic, "en": {"en": "English", "zh": "English"}, "zh": {"en": "中文", "zh": "中文"}},
        ),
        Setting(
            key="language.first",
            kind="choice",
            default="auto",
            title={"en": "Your first language", "zh": "您的第一语言"},
            help={
                "en": "The language that you read best; texts in any other language are translated into it.",
                "zh": "您最熟悉的语言；其他语言的文字会翻译成它。",
            },
            choices={"auto": automatic, **names},
        ),
        Setting(
            key="language.second",
            kind="choice",
            default="en",
            title={"en": "Your second language", "zh": "您的第二语言"},
            help={
                "en": "Texts in your first language are translated into this one. If both are the same, "
                "English takes its place; if both are English, Chinese.",
                "zh": "第一语言的文字会翻译成它。两者相同时为英文；第一语言是英文时为中文。",
            },
            choices=names,
        ),
    ]


def _model_settings() -> list[Setting]:
    return [
        Setting(
            key="model.default",
            kind="model",
            default="",
            title={"en": "Model", "zh": "模型"},
            help={
                "en": "What answers: a model of the catalog, by its name, or a .gguf file or a model's directory, "
                "by its path. Empty: chosen by this machine's memory.",
                "zh": "由哪个模型回答：目录中的模型（填名称），或 .gguf 文件、模型文件夹（填路径）。"
                "留空则按本机内存选择。",
            },
        ),
        Setting(
            key="model.paths",
            kind="text",
            default="",
            title={"en": "Your own models", "zh": "您自己的模型"},
            help={
                "en": "Paths of .gguf files, model directories or folders of models that are listed too, divided as in "
                "PATH. The window of models adds and removes them.",
                "zh": "另外列出的 .gguf 文件、模型文件夹，或存放多个模型的文件夹的路径，分隔方式与 PATH 相同。"
                "可在模型窗口中增删。",
            },
        ),
        Setting(
            key="model.context_tokens",
            kind="integer",
            default=4096,
            title={"en": "Context", "zh": "上下文长度"},
            help={
                "en": "How much text and answer fit together; more takes more memory.",
                "zh": "文字和回答合计能容纳的长度；越长占用内存越多。",
            },
            unit="tokens",
            minimum=MIN_CONTEXT_TOKENS,
            maximum=MAX_CONTEXT_TOKENS,
        ),
        Setting(
            key="model.idle_minutes",
            kind="integer",
            default=15,
            title={"en": "Free the memory when idle", "zh": "闲置时释放内存"},
            help={
                "en": "So long after its last use the model leaves the memory; the next action loads it again.",
                "zh": "模型最后一次使用后，过这么久就移出内存；下次操作时重新加载。",
            },
            zero={"en": "Never", "zh": "从不"},
            unit="minutes",
            minimum=0,
            maximum=24 * 60,
        ),
        Setting(
            key="model.unload_full_screen",
            kind="flag",
            default=True,
            title={"en": "Make room for games", "zh": "为游戏让出显存"},
            help={
                "en": "A model on the GPU leaves when a program fills the screen, unless it is known to show films, "
                "pages or slides. X11 and Windows only: Wayland does not tell.",
                "zh": "当程序全屏运行时，GPU 上的模型会让出显存；已知用于播放视频、浏览网页或放映幻灯片的程序除外。"
                "仅限 X11 和 Windows：Wayland 无法得知。",
            },
        ),
        Setting(
            key="engine.backend",
            kind="choice",
            default="auto",
            title={"en": "Engine", "zh": "引擎"},
            help={
                "en": "What computes: an NVIDIA GPU, the app's CPU kernels, or PyTorch where those cannot be built.",
                "zh": "由什么计算：NVIDIA GPU、程序自带的 CPU 内核；无法编译时用 PyTorch。",
            },
            choices={
                "auto": {"en": "Fastest that works here", "zh": "本机可用的最快者"},
                "cuda": {"en": "NVIDIA GPU", "zh": "NVIDIA GPU"},
                "cpu": {"en": "CPU kernels", "zh": "CPU 内核"},
                "torch": {"en": "PyTorch", "zh": "PyTorch"},
            },
        ),
        Setting(
            key="engine.vram",
            kind="text",
            default="",
            title={"en": "GPU memory", "zh": "显存上限"},
            help={
                "en": "The most that the engine takes of the GPU's memory, like 3.5 GB. Empty: all that is free.",
                "zh": "引擎最多使用的显存，例如 3.5 GB。留空则使用全部空闲显存。",
            },
            check=_vram,
        ),
        Setting(
            key="engine.threads",
            kind="integer",
            default=0,
            title={"en": "Threads", "zh": "线程数"},
            help={
                "en": "How many CPU cores the engine may use.",
                "zh": "引擎可使用的 CPU 核心数。",
            },
            zero={"en": "All physical cores", "zh": "全部物理核心"},
            minimum=0,
            maximum=256,
        ),
        Setting(
            key="hub.endpoint",
            kind="text",
            default="",
            title={"en": "Model hub", "zh": "模型下载站点"},
            help={
                "en": "Address of the hub, or of its mirror, that models are downloaded from. Empty: the standard one.",
                "zh": "下载模型的站点或镜像地址。留空为默认站点。",
            },
            check=_endpoint,
        ),
    ]


def _desktop_settings() -> list[Setting]:
    return [
        Setting(
            key="appearance.theme",
            kind="choice",
            default="system",
            title={"en": "Colours", "zh": "配色"},
            help={"en": "Light or dark windows.", "zh": "窗口使用浅色或深色。"},
            choices={
                "system": {"en": "As the system", "zh": "跟随系统"},
                "light": {"en": "Light", "zh": "浅色"},
                "dark": {"en": "Dark", "zh": "深色"},
            },
        ),
        Setting(
            key="clipboard.restore",
            kind="flag",
            default=True,
            title={"en": "Give the clipboard back", "zh": "恢复剪贴板"},
            help={
                "en": "Put back what lay on the clipboard after a selection was read or a text was replaced.",
                "zh": "读取选中文字或替换文字之后，恢复剪贴板原有内容。",
            },
        ),
        Setting(
            key="popup.font_size",
            kind="integer",
            default=0,
            title={"en": "Text size of the popup", "zh": "弹窗字号"},
            help={"en": "How large answers are written.", "zh": "回答文字的大小。"},
            zero={"en": "As the system", "zh": "跟随系统"},
            unit="pt",
            minimum=0,
            maximum=72,
        ),
    ]


def _answer_settings() -> list[Setting]:
    return [
        Setting(
            key="answer.after",
            kind="choice",
            default="show",
            title={"en": "When an answer has ended", "zh": "回答结束后"},
            help={
                "en": "The selection is only replaced by itself where that is safe: its window still has the keyboard, "
                "and nothing in the answer was flagged. Else the answer waits in the popup.",
                "zh": "仅在安全时才自动替换：原窗口仍有键盘焦点，且回答没有需要核对之处。否则回答留在弹窗中。",
            },
            choices={
                "show": {"en": "It stays in the popup", "zh": "留在弹窗中"},
                "copy": {"en": "It is copied", "zh": "复制"},
                "replace": {"en": "It replaces the selection", "zh": "替换所选文字"},
            },
        ),
    ]


def _privacy_settings() -> list[Setting]:
    return [
        Setting(
            key="privacy.leave_alone",
            kind="programs",
            default="",
            title={"en": "Programs to leave alone", "zh": "不读取的程序"},
            help={
                "en": "Nothing is read out of their windows, and no keys are sent to them. "
                "Names as in the task manager, with commas, like keepassxc, 1password.",
                "zh": "不读取这些程序窗口中的内容，也不向其发送按键。"
                "填写任务管理器中的名称，以逗号分隔，例如 keepassxc, 1password。",
            },
            check=_programs,
        ),
        Setting(
            key="history.keep",
            kind="flag",
            default=True,
            title={"en": "Keep conversations and answers", "zh": "保存对话和回答"},
            help={
                "en": "On this computer, for you alone. Off: forgotten when the app ends; what was kept before stays "
                "until you clear the history.",
                "zh": "只保存在本机，仅您本人可读。关闭后，退出程序即不再保留；之前保存的内容留到清空历史记录为止。",
            },
        ),
    ]


def _hotkey_settings(actions: Iterable[Action]) -> list[Setting]:
    chosen = list(actions)
    on_selection = [
        Setting(
            key=hotkey_setting(action.id, "selection"),
            kind="hotkey",
            default=action.hotkey,
            title={"en": action.title("en"), "zh": action.title("zh")},
            help={"en": "Runs the action on the selected text. Empty: none.", "zh": "对选中的文字执行。留空则不设。"},
            check=_hotkey,
        )
        for action in chosen
    ]
    on_clipboard = [
        Setting(
            key=hotkey_setting(action.id, "clipboard"),
            kind="hotkey",
            default=action.clipboard_hotkey,
            title={"en": f"{action.title('en')} (clipboard)", "zh": f"{action.title('zh')}（剪贴板）"},
            help={
                "en": "Runs the action on the clipboard's text. Empty: none.",
                "zh": "对剪贴板中的文字执行。留空则不设。",
            },
            check=_hotkey,
        )
        for action in chosen
    ]
    to_popup = Setting(
        key="hotkey.popup",
        kind="hotkey",
        default="Ctrl+Shift+5",
        title={"en": "Go to the answer", "zh": "转到回答"},
        help={
            "en": "Gives the keyboard to the popup, so that it can be read, copied and closed without a mouse.",
            "zh": "把键盘焦点交给弹窗，不用鼠标也能阅读、复制和关闭。",
        },
        check=_hotkey,
    )
    to_chat = Setting(
        key="hotkey.chat",
        kind="hotkey",
        default="",
        title={"en": "Open the chat", "zh": "打开聊天窗口"},
        help={
            "en": "Opens the chat, or brings it to the front. Empty: none.",
            "zh": "打开聊天窗口，或将其置于最前。留空则不设。",
        },
        check=_hotkey,
    )
    return [*on_selection, *on_clipboard, to_popup, to_chat]


def _hotkey(text: str) -> str:
    return str(parse(text)) if text.strip() else ""


def _programs(text: str) -> str:
    return ", ".join(program_names(text))


def _vram(text: str) -> str:
    if text:
        byte_size(text)
    return text


def _endpoint(text: str) -> str:
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EndpointError(
            UserText('"{value}" is not an address. Write it like https://hub.example.org.', value=text.strip())
        )
    return text.strip().rstrip("/")
