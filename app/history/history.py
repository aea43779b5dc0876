"""What is kept of conversations and of actions' answers: written at once, found again by any part of a word.

The UI thread owns it. With `keeps` off everything lives in memory alone and nothing of it ever reaches the disk.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from app.history.entry import ActionResult, Conversation, Detail, SearchHit, StoredMessage, sampling_json
from app.history.export import conversation_markdown, history_json
from app.history.file import (
    INDICES,
    DamagedFileError,
    HistoryError,
    NewerFileError,
    files_aside,
    history_files,
    is_damage,
    merge_some,
    open_file,
    open_memory,
    reason_of,
    set_aside,
    transaction,
)
from app.history.query import contains
from app.translation import UserText
from inference.request import Role, SamplingParams


class History:
    """Conversations and results of actions.

    Every method raises HistoryError where the file cannot be read or written; a message that could not be written is
    still the caller's. A file that turns out to be damaged is set aside, named in the error, and begun anew.

    Attributes:
        path: of the file.
        problem: why the file is not in use although `keeps` is on, or what was set aside at the start; None without.
    """

    def __init__(self, path: Path, keeps: bool = True, now: Callable[[], float] = time.time) -> None:
        """Opens the history; never fails (see `problem`).

        Args:
            path: the file, in a folder of its own, which is made private. Not touched while `keeps` is off.
            keeps: off: in memory alone.
            now: seconds since 1970.
        """
        self.path = path
        self.problem: UserText | None = None
        self._now = now
        self._keeps = keeps
        self._is_file = False
        self._listeners: list[Callable[[], None]] = []
        self._stale_indices: list[str] = []
        self._connection = self._open()

    @property
    def keeps(self) -> bool:
        """Whether what is added is meant to be kept; see `problem` for whether it is."""
        return self._keeps

    def set_keeps(self, keeps: bool) -> None:
        """Switches between file and memory. Ids of one do not exist in the other.

        Off: what the file has stays there, out of sight, until `clear`. On: what was in memory alone is gone.
        """
        if keeps == self._keeps:
            return
        self._keeps = keeps
        self.close()
        self.problem = None
        self._connection = self._open()
        self._tell()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls listener() after every change; the result removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def together(self) -> AbstractContextManager[object]:
        """What is written inside becomes one change: all of it or nothing."""
        return self._write()

    def tidy(self) -> bool:
        """Takes deleted text out of the search index, some milliseconds' worth; whether there is more to do."""
        if self._stale_indices:
            with self._read() as connection:
                if merge_some(connection, self._stale_indices[0]):
                    self._stale_indices.pop(0)
                if not self._stale_indices:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return bool(self._stale_indices)

    def close(self) -> None:
        """Tidies, and closes the file; the history must not be used any more."""
        with suppress(HistoryError):
            while self.tidy():
                pass
        self._connection.close()

    # --- conversations ------------------------------------------------------------------------------------------

    def new_conversation(
        self, title: str = "", system: str = "", model: str = "", sampling: SamplingParams | None = None
    ) -> int:
        """Begins a conversation and returns its id."""
        now_ms = self._now_ms()
        values = (title, system, sampling_json(sampling or SamplingParams()), model, now_ms, now_ms)
        with self._write() as connection:
            cursor = connection.execute(
                "INSERT INTO conversations (title, system, sampling, model, created_ms, updated_ms)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                values,
            )
        return _row_id(cursor)

    def conversation(self, conversation_id: int) -> Conversation | None:
        """One conversation, None where there is no such one (any more)."""
        query = f"SELECT {_CONVERSATION} FROM conversations WHERE id = ?"
        with self._read() as connection:
            row = connection.execute(query, (conversation_id,)).fetchone()
        return Conversation.of_row(row) if row else None

    def conversations(self, query: str = "", limit: int = 100, offset: int = 0) -> list[Conversation]:
        """Conversations, last changed first; with a query those that have all its words in title or a message."""
        title = contains(query, "title")
        text = contains(query, "text", index="message_index")
        with self._read() as connection:
            rows = connection.execute(
                f"SELECT {_CONVERSATION} FROM conversations WHERE ({title.sql})"
                f" OR id IN (SELECT conversation_id FROM messages WHERE {text.sql})"
                " ORDER BY updated_ms DESC, id DESC LIMIT ? OFFSET ?",
                (*title.values, *text.values, limit, offset),
            ).fetchall()
        return [Conversation.of_row(row) for row in rows]

    def rename(self, conversation_id: int, title: str) -> None:
        """Gives a conversation a title."""
        self._change(conversation_id, title=title)

    def configure(self, conversation_id: int, system: str, sampling: SamplingParams, model: str) -> None:
        """Changes what the next answers of a conversation are made with."""
        self._change(conversation_id, system=system, sampling=sampling_json(sampling), model=model)

    def delete(self, conversation_id: int) -> None:
        """Removes a conversation with all its messages, from the disk as well; `tidy` and `close` do the rest."""
        with self._write() as connection:
            connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
        self._stale_indices = list(INDICES)

    # --- messages -----------------------------------------------------------------------------------------------

    def append(self, conversation_id: int, role: Role, text: str, **details: Detail) -> int:
        """Adds a message and returns its id; it is on the disk when this returns."""
        now_ms = self._now_ms()
        with self._write() as connection:
            touch = "UPDATE conversations SET updated_ms = ? WHERE id = ?"
            _check_found(connection.execute(touch, (now_ms, conversation_id)))
            cursor = connection.execute(
                "INSERT INTO messages (conversation_id, role, text, details, created_ms) VALUES (?, ?, ?, ?, ?)",
                (conversation_id, role, text, json.dumps(details, ensure_ascii=False), now_ms),
            )
        return _row_id(cursor)

    def rewrite(self, message_id: int, text: str, **details: Detail) -> None:
        """Gives a message another text, on the disk when this returns. Listeners hear nothing of it."""
        with self._read() as connection, transaction(connection):
            # Removed and added, since the search index follows these two.
            old = "DELETE FROM messages WHERE id = ? RETURNING conversation_id, role, created_ms"
            for row in connection.execute(old, (message_id,)).fetchall():
                values = (message_id, text, json.dumps(details, ensure_ascii=False), *row)
                columns = "id, text, details, conversation_id, role, created_ms"
                connection.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def messages(self, conversation_id: int) -> list[StoredMessage]:
        """The messages of a conversation in their order."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT id, role, text, created_ms, details FROM messages WHERE conversation_id = ? ORDER BY id",
                (conversation_id,),
            ).fetchall()
        return [StoredMessage.of_row(row) for row in rows]

    def truncate_from(self, message_id: int) -> None:
        """Removes a message and all after it, for regenerate and edit-and-resend. An unknown id is ignored."""
        with self._write() as connection:
            connection.execute(
                "DELETE FROM messages WHERE id >= ?"
                " AND conversation_id = (SELECT conversation_id FROM messages WHERE id = ?)",
                (message_id, message_id),
            )

    # --- results of actions -------------------------------------------------------------------------------------

    def add_result(self, action_id: str, source_text: str, answer: str, model: str = "", **details: Detail) -> int:
        """Keeps what an action made of a text, and returns its id."""
        with self._write() as connection:
            cursor = connection.execute(
                "INSERT INTO results (action_id, source_text, answer, model, details, created_ms)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (action_id, source_text, answer, model, json.dumps(details, ensure_ascii=False), self._now_ms()),
            )
        return _row_id(cursor)

    def result(self, result_id: int) -> ActionResult | None:
        """One result, None where there is no such one (any more)."""
        with self._read() as connection:
            row = connection.execute(f"SELECT {_RESULT} FROM results WHERE id = ?", (result_id,)).fetchone()
        return ActionResult.of_row(row) if row else None

    def results(self, query: str = "", limit: int = 100, offset: int = 0) -> list[ActionResult]:
        """Results of actions, newest first; with a query those that have all its words in source or answer."""
        words = contains(query, "source_text || char(10) || answer", index="result_index")
        with self._read() as connection:
            rows = connection.execute(
                f"SELECT {_RESULT} FROM results WHERE {words.sql} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*words.values, limit, offset),
            ).fetchall()
        return [ActionResult.of_row(row) for row in rows]

    def delete_result(self, result_id: int) -> None:
        """Removes a result, from the disk as well; `tidy` and `close` do the rest."""
        with self._write() as connection:
            connection.execute("DELETE FROM results WHERE id = ?", (result_id,))
        self._stale_indices = list(INDICES)

    # --- everything ---------------------------------------------------------------------------------------------

    def search(self, text: str, limit: int = 100) -> list[SearchHit]:
        """Messages and results with all the words of a text, newest first; parts of words count, case does not."""
        if not text.strip():
            return []
        words = contains(text, "text", index="message_index", rowid="messages.id")
        with self._read() as connection:
            rows = connection.execute(
                "SELECT messages.id, conversation_id, title, text, messages.created_ms"
                " FROM messages JOIN conversations ON conversations.id = conversation_id"
                f" WHERE {words.sql} ORDER BY messages.id DESC LIMIT ?",
                (*words.values, limit),
            ).fetchall()
        hits = [
            SearchHit("message", id_, conversation_id, title, found, created_ms / 1000)
            for id_, conversation_id, title, found, created_ms in rows
        ]
        hits += [
            SearchHit("result", each.id, None, each.action_id, f"{each.source_text}\n\n{each.answer}", each.created_s)
            for each in self.results(text, limit)
        ]
        return sorted(hits, key=lambda hit: hit.created_s, reverse=True)[:limit]

    def export_markdown(self, conversation_id: int, names: Mapping[Role, str] | None = None) -> str:
        """A conversation as Markdown; see history_export."""
        conversation = self._existing(conversation_id)
        return conversation_markdown(conversation, self.messages(conversation_id), names)

    def export_json(self, conversation_id: int | None = None) -> str:
        """One conversation, or everything, as JSON; see history_export."""
        if conversation_id is not None:
            return history_json([(self._existing(conversation_id), self.messages(conversation_id))], [])
        chosen = self.conversations(limit=_ALL)
        return history_json([(each, self.messages(each.id)) for each in chosen], self.results(limit=_ALL))

    def clear(self) -> None:
        """Removes everything: the file, and damaged ones that were set aside; also where `keeps` is off."""
        self._stale_indices = []
        self._connection.close()
        try:
            for path in (*history_files(self.path), *files_aside(self.path)):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise HistoryError(
                UserText(
                    "The history in {file} cannot be removed: {reason}. Close the program that uses it and try again.",
                    file=str(self.path),
                    reason=error.strerror or str(error),
                )
            ) from error
        finally:
            self.problem = None
            self._connection = self._open()
            self._tell()

    # --- the connection -----------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        """The file, or memory where it is not wanted or cannot be had."""
        if self._keeps:
            try:
                return self._open_or_set_aside()
            except NewerFileError:
                reason = UserText("it was written by a later version of this app; update the app")
            except sqlite3.Error as error:
                reason = reason_of(error)
            except OSError as error:
                reason = UserText("{reason}", reason=error.strerror or str(error))
            self.problem = UserText(
                "The history in {file} cannot be opened: {reason}. What is said now is forgotten when the app ends.",
                file=str(self.path),
                reason=reason,
            )
        return open_memory()

    def _open_or_set_aside(self) -> sqlite3.Connection:
        try:
            return open_file(self.path)
        except DamagedFileError:
            self.problem = self._set_aside()
            return open_file(self.path)

    def _set_aside(self) -> UserText:
        return UserText(
            "The history in {file} is damaged. It was set aside as {aside}; a new one has begun.",
            file=str(self.path),
            aside=set_aside(self.path),
        )

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection
        except sqlite3.DatabaseError as error:
            raise self._error(error) from error

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._read() as connection, transaction(connection):
            yield connection
        self._tell()

    def _error(self, error: sqlite3.DatabaseError) -> HistoryError:
        if not is_damage(error):
            return HistoryError(
                UserText(
                    "The history in {file} cannot be read or written: {reason}.",
                    file=str(self.path),
                    reason=reason_of(error),
                )
            )
        self._connection.close()
        try:
            problem = self._set_aside()
        except OSError as problem_of_file:
            problem = UserText(
                "The history in {file} is damaged, and it cannot be set aside: {reason}.",
                file=str(self.path),
                reason=problem_of_file.strerror or str(problem_of_file),
            )
            self._connection = open_memory()
        else:
            self._connection = self._open()
        self._tell()
        return HistoryError(problem)

    def _change(self, conversation_id: int, **values: str) -> None:
        columns = ", ".join(f"{column} = ?" for column in values)
        with self._write() as connection:
            changed = connection.execute(
                f"UPDATE conversations SET {columns}, updated_ms = ? WHERE id = ?",
                (*values.values(), self._now_ms(), conversation_id),
            )
            _check_found(changed)

    def _existing(self, conversation_id: int) -> Conversation:
        conversation = self.conversation(conversation_id)
        if conversation is None:
            raise HistoryError(_NOT_THERE)
        return conversation

    def _now_ms(self) -> int:
        return round(self._now() * 1000)

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()


_ALL = -1
_CONVERSATION = "id, title, system, sampling, model, created_ms, updated_ms"
_RESULT = "id, action_id, source_text, answer, model, created_ms, details"
_NOT_THERE = UserText("This conversation is no longer in the history. Begin a new one.")


def _row_id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _check_found(cursor: sqlite3.Cursor) -> None:
    if cursor.rowcount == 0:
        raise HistoryError(_NOT_THERE)
