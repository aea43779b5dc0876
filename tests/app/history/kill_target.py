"""The program that test_kill.py kills: writes without end, and tells each step once it is done.

Usage: kill_target.py history PATH SEED FIRST | settings PATH | pull ROOT ENDPOINT NUM_BYTES SHA256
"""

from __future__ import annotations

import os
import random
import sys
from itertools import count
from pathlib import Path

from app.history.history import History


def operate(history: History, seed: int, number: int) -> None:
    """The operation of this number: the same for the same history, whichever process does it."""
    chance = random.Random(f"{seed} {number}")
    conversations = history.conversations()
    kind = chance.choices(OPERATIONS, WEIGHTS)[0]
    if kind == "begin" or not conversations:
        history.new_conversation(f"conversation {number}", system="Be brief." * chance.randint(0, 50))
        return
    conversation = chance.choice(conversations)
    match kind:
        case "append":
            # Up to several pages of the database.
            text = f"message {number} 第{number}条 " * chance.choice((1, 10, 1000))
            history.append(conversation.id, "user" if number % 2 else "assistant", text, tokens=number)
        case "result":
            history.add_result("summarize", f"source {number} " * chance.randint(1, 200), f"answer {number}")
        case "truncate":
            messages = history.messages(conversation.id)
            if messages:
                history.truncate_from(chance.choice(messages[-5:]).id)
        case "rewrite":
            messages = history.messages(conversation.id)
            if messages:
                history.rewrite(messages[-1].id, f"rewritten {number} 第{number}次 " * chance.choice((1, 500)))
        case "rename":
            history.rename(conversation.id, f"renamed {number}")
        case "delete":
            if len(conversations) > 3:
                history.delete(conversation.id)
        case "clear":
            history.clear()


OPERATIONS = ("append", "begin", "result", "truncate", "rewrite", "rename", "delete", "clear")
WEIGHTS = (60, 8, 10, 8, 10, 5, 5, 0.5)


def write_history(path: Path, seed: int, first: int) -> None:
    """Operates from a number on."""
    history = History(path, now=lambda: 0.0)
    if history.problem is not None:
        raise SystemExit(str(history.problem))
    say("open")
    for number in count(first):
        operate(history, seed, number)
        say(str(number))


def write_settings(path: Path) -> None:
    """Saves a number that grows."""
    from app.settings.registry import setting_registry
    from app.settings.settings import Settings

    settings = Settings.load(path, setting_registry([]))
    first = settings.integer("engine.threads")
    say("open")
    for number in count(first + 1):
        settings.set("engine.threads", number % 256)
        settings.save()
        say(str(number % 256))


def pull(root: Path, endpoint: str, num_bytes: int, sha256: str) -> None:
    """Fetches the model "tiny"."""
    from inference.store.catalog import Catalog, CatalogEntry, HubSource
    from inference.store.download import DownloadOptions
    from inference.store.model_store import ModelStore

    source = (HubSource("o/tiny"),)
    entry = CatalogEntry("tiny", "Tiny", "MIT", "", "gguf", "tiny.gguf", num_bytes, sha256, 1, 1, source)
    store = ModelStore(root, catalog=Catalog({"tiny": entry}, ("tiny",)), options=DownloadOptions(endpoint))
    store.pull("tiny", lambda done, _total, _note: say(str(done)))


def say(line: str) -> None:
    """One line for the test, past every buffer."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    name, place, *values = sys.argv[1:]
    if name == "history":
        write_history(Path(place), int(values[0]), int(values[1]))
    elif name == "settings":
        write_settings(Path(place))
    else:
        pull(Path(place), values[0], int(values[1]), values[2])
