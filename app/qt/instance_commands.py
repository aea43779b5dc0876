"""What a second start, the command line and scripts can ask of the running app. Holds no widget.

Commands are JSON objects over the private line of app/instance/instance.py:
  {"command": "show"}                                   opens the window
  {"command": "action", "action": ID, "source": S}      as if its hotkey had been pressed; S: "selection", "clipboard"
  {"command": "quit"}                                   ends the app
  {"command": "hotkeys"}                                what became of the hotkeys: {"hotkeys": [{...}, ...]}, each with
                                                        "hotkey", "title", "state" and, where it fails, "reason"
  {"command": "where"}                                  {"host": H}: where texts are sent, "" where they stay here
  {"command": "ask", "request": {...}}                  streams an answer (app/instance/ask_channel.py)
  {"command": "count", "texts": [...]}                  tells their tokens (app/instance/ask_channel.py)
The first three answer {"ok": true} or {"error": text}; "ask" answers with its events alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.actions.commands import Source
from app.engine_client import EngineClient
from app.instance import ask_channel
from app.instance.instance import Message, Reply
from app.remote.address import remote_parts

SOURCES: tuple[Source, ...] = ("selection", "clipboard")


class Host(Protocol):
    """What the running app does for a client. UI thread only."""

    def run_action(self, action_id: str, source: Source) -> None:
        """Raises UnknownActionError."""
        ...

    def show_window(self) -> None:
        """Opens the window."""
        ...

    def hotkey_report(self) -> list[dict[str, str]]:
        """What became of the hotkeys, in English."""
        ...

    def quit(self) -> None:
        """Ends the app."""
        ...


class InstanceCommands:
    """Handler of the InstanceServer: checks on the connection's thread, acts on the UI thread."""

    def __init__(self, client: EngineClient, post_call: Callable[[Callable[[], object]], None]) -> None:
        """Keeps what needs the windows until `attach`.

        Args:
            post_call: runs a function on the UI thread.
        """
        self._host: Host | None = None
        self._waiting: list[Callable[[Host], None]] = []
        self._client = client
        self._post_call = post_call

    def attach(self, host: Host) -> None:
        """The windows are there: does what has come in meanwhile. UI thread."""
        self._host = host
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            act(host)

    def __call__(self, command: Message, reply: Reply) -> None:
        """Takes one command. Raises ValueError for one that makes no sense; the server tells the client."""
        name = command.get("command")
        if name == "ask":
            ask_channel.answer(command, reply, self._client)
        elif name == "count":
            ask_channel.count(command, reply, self._client)
        elif name == "where":
            reply.send({"host": remote_parts(self._client.reading().model)[0]})
            reply.close()
        elif name == "show":
            self._act(reply, lambda host: host.show_window())
        elif name == "hotkeys":
            self._act(reply, lambda host: {"hotkeys": host.hotkey_report()})
        elif name == "quit":
            self._act(reply, lambda host: host.quit())
        elif name == "action":
            action_id, source = command.get("action"), command.get("source", "selection")
            if not isinstance(action_id, str) or source not in SOURCES:
                raise ValueError(
                    f"The action is {action_id!r} on {source!r}, but it must be an id on one of {', '.join(SOURCES)}."
                )
            self._act(reply, lambda host: host.run_action(action_id, source))
        else:
            raise ValueError(
                f"The command is {name!r}, but it must be one of show, action, hotkeys, ask, count, where, quit."
            )

    def _act(self, reply: Reply, act: Callable[[Host], object]) -> None:
        def run(host: Host) -> None:
            try:
                told = act(host)
                reply.send(told if isinstance(told, dict) else {"ok": True})
            except LookupError as error:
                reply.send({"error": str(error)})
            finally:
                reply.close()

        def run_or_keep() -> None:
            if self._host is None:
                self._waiting.append(run)
            else:
                run(self._host)

        self._post_call(run_or_keep)
