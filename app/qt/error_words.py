"""What the engine says in English, in the user's language: its messages as templates, found again in a finished text.

The engine knows no language but English and may run in another process, so an error arrives here as words. Those that
users meet are listed; a test holds each of them to the engine's own sentences, so that none can drift away from them.
"""

from __future__ import annotations

import functools
import re

from app.translation import Translator, UserText

# In whole messages, and in the parts that they are put together from.
TEMPLATES = (
    # Another process has the memory.
    UserText(
        "{who} holds {what} on the {device}, and only one model may be in memory at a time. Unload the model there or "
        "quit that program, then try again."
    ),
    UserText("Another DeskInfer (process {process})"),
    UserText("Another process"),
    UserText("the model {model}"),
    UserText("a model"),
    UserText("The lock for the {device} cannot be written to {folder} ({reason}). Make that directory writable."),
    # A model is not where it was looked for.
    UserText("The model {model} is not on this machine (looked in {folder}). Fetch it: deskinfer models pull {name}"),
    UserText(
        "There is no model {name}: it is no catalog id, .gguf file or model directory. {meant} Fetch one: deskinfer "
        "models pull {model}"
    ),
    UserText("Did you mean {names}?"),
    UserText("There are {names}."),
    UserText("There is no file {path}. Check the path, or list models: deskinfer models list"),
    UserText("There is no model at {path}. Check the path, or list models: deskinfer models list"),
    UserText("There is nothing at {path}. Check the path, or take it off the list."),
    UserText(
        "The model {model} cannot be looked for ({reason}). Check the path and its permissions, or list models: "
        "deskinfer models list"
    ),
    UserText("{path} cannot be opened: {reason}. Check its permissions."),
    UserText("{path} cannot be read: {reason}. Check its permissions."),
    UserText("The directory {path} cannot be read ({reason}). Check its permissions."),
    # It cannot be fetched, checked or deleted.
    UserText(
        "{model} could not be fetched. {reasons} Check the network and proxy, or get {what} another way and give its "
        "path instead of the name. What was fetched is kept for the next try."
    ),
    UserText("the file {file}"),
    UserText("the directory of the model"),
    UserText(
        "Fetching {model} {what}, and {free} are free at {folder}. What was fetched is kept. Free some space, or "
        "choose another directory for models, and pull again."
    ),
    UserText("needs {size} more"),
    UserText("found the disk full"),
    UserText(
        "{model} cannot be written to {folder}: {reason}. Check the permissions of the directory, or choose another "
        "one for models."
    ),
    UserText("{model} is being fetched by another process. Wait for it, or stop it, and try again."),
    UserText("Fetching {model} failed. What was fetched is kept. Try again; the log says more."),
    UserText(
        "{model} cannot be deleted from {folder}: {reason}. Close the programs that use the model, check the "
        "permissions, and try again."
    ),
    UserText(
        "{path} cannot be deleted: {reason}. Close the programs that use the model, check the permissions, and try "
        "again."
    ),
    UserText("{reason}. Check the disk and the permissions, and try again."),
    # It is of a kind that this engine does not run.
    UserText(
        "{model} is of the architecture {found}, but this engine runs {known}. Take a model of one of these families."
    ),
    UserText(
        "{model} states the architecture {found}, but this engine runs {known}. Take a model of one of these families."
    ),
    UserText(
        "{model} stores {tensor} as {found}, but this engine runs {known}. Take the same model in one of these, Q4_K_M "
        "for example."
    ),
    # It failed at its work.
    UserText("The backend {name} is not available: {reason}."),
    UserText(
        "no NVIDIA driver was found, and no NVIDIA GPU works without it. If this machine has one, install NVIDIA's "
        "driver, version 525 or newer"
    ),
    UserText(
        "the package cuda-bindings is missing ({reason}). If this machine has an NVIDIA GPU, install it with: pip "
        "install 'deskinfer[cuda]'"
    ),
    UserText("NVIDIA's driver supports CUDA {major}.{minor} and 12.0 is needed. Update the driver to 525 or newer"),
    UserText("{gpu} has compute capability {major}.{minor}; 7.5 (Turing) or newer is needed"),
    UserText("The GPU failed: {reason}"),
    UserText(
        "What {model} would take cannot be told ({kind}: {reason}). Check its files, or load it: the load says more."
    ),
    UserText(
        "The model's output for the next token is {value}, not a number to choose by. Its file may be damaged: verify "
        "the model or fetch it again."
    ),
    UserText(
        "The engine failed at {what} ({kind}: {reason}). Try again; if it happens again, restart the app and report it."
    ),
    UserText("The model was unloaded while the text was being counted. Try again."),
    UserText("The engine has been closed. Start the app again."),
    UserText("The engine has been closed."),
    # A request cannot be run.
    UserText("The text is empty, but an action needs some. Select a text first."),
    UserText("The context is {tokens} tokens, but it must be {least} or more."),
    UserText("The answer cannot follow its grammar any further ({reason}). Simplify it."),
    UserText(
        "The model's chat template refuses these {count} messages: {reason}. Send them in an order that it accepts."
    ),
)
_PLACE = re.compile(r"\{(\w+)\}")


def translated(words: str, translator: Translator) -> str | None:
    """The engine's words in the user's language; None where they are none of the templates."""
    for pattern, template in _patterns():
        if (match := pattern.fullmatch(words)) is not None:
            values = {name: translated(value, translator) or value for name, value in match.groupdict().items()}
            return translator.tr(template.source, **values)
    return None


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], UserText], ...]:
    """The templates with the most words of their own first: those say the most."""
    by_length = sorted(TEMPLATES, key=lambda template: len(_PLACE.sub("", template.source)), reverse=True)
    return tuple((_pattern(template.source), template) for template in by_length)


def _pattern(source: str) -> re.Pattern[str]:
    pieces = _PLACE.split(source)
    texts, names = map(re.escape, pieces[::2]), [f"(?P<{name}>.+?)" for name in pieces[1::2]]
    return re.compile("".join(text + name for text, name in zip(texts, [*names, ""], strict=True)), re.DOTALL)
