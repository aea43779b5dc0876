"""The file of the history: opening it, its schema and migrations, setting a damaged one aside.

WAL keeps a reader from waiting for a writer. Every commit reaches the disk before it returns (synchronous FULL): an
answer took seconds to make, and one flush for each message is cheap beside that.
"""

from __future__ import annotations

import datetime
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from app.translation import UserText

# Another process that writes (a backup, a database browser) may hold the lock: the windows must not stand still for it.
BUSY_TIMEOUT_MS = 200
# A damaged page is found at once in a file of this size; larger ones are read when they are used, and found then.
CHECKED_BYTES = 64 << 20
# Conversations that live in memory alone have ids that no file has, so that an id never means two of them; Qt's
# signals carry 32 bits.
FIRST_MEMORY_ID = 1 << 30

# The search indices; what they still hold of deleted rows goes when their parts are merged, so many pages at a time.
INDICES = ("message_index", "result_index")
PAGES_PER_MERGE = 16

# One script a version; a file of version n has had the first n. A script that was released is never changed again.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, system TEXT NOT NULL, sampling TEXT NOT NULL,
        model TEXT NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL);
    CREATE INDEX conversations_updated ON conversations (updated_ms);
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        role TEXT NOT NULL, text TEXT NOT NULL, details TEXT NOT NULL, created_ms INTEGER NOT NULL);
    CREATE INDEX messages_conversation ON messages (conversation_id, id);
    CREATE TABLE results (
        id INTEGER PRIMARY KEY AUTOINCREMENT, action_id TEXT NOT NULL, source_text TEXT NOT NULL, answer TEXT NOT NULL,
        model TEXT NOT NULL, details TEXT NOT NULL, created_ms INTEGER NOT NULL);
    CREATE VIRTUAL TABLE message_index USING fts5 (text, content='messages', content_rowid='id', tokenize='trigram');
    CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
        INSERT INTO message_index (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
        INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE VIRTUAL TABLE result_index USING fts5 (
        source_text, answer, content='results', content_rowid='id', tokenize='trigram');
    CREATE TRIGGER result_added AFTER INSERT ON results BEGIN
        INSERT INTO result_index (rowid, source_text, answer) VALUES (new.id, new.source_text, new.answer);
    END;
    CREATE TRIGGER result_removed AFTER DELETE ON results BEGIN
        INSERT INTO result_index (result_index, rowid, source_text, answer)
        VALUES ('delete', old.id, old.source_text, old.answer);
    END;
    """,
)


class HistoryError(Exception):
    """The history cannot be read or written; the message names the reason and the cure.

    Attributes:
        text: the message, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


class DamagedFileError(Exception):
    """The file is no database, or some page of it is damaged."""


class NewerFileError(Exception):
    """The file was written by a later version of the app."""


def open_memory() -> sqlite3.Connection:
    """A history that leaves no trace on the disk."""
    connection = _connect(":memory:")
    _prepare(connection)
    _migrate(connection)
    for table in ("conversations", "messages", "results"):
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, FIRST_MEMORY_ID))
    return connection


def open_file(path: Path) -> sqlite3.Connection:
    """Opens a history, which may be missing; nobody else may read the file or look into its folder.

    Raises:
        DamagedFileError: it cannot be read as a history.
        NewerFileError: it is of a later version of the app.
        OSError: folder or file cannot be made.
        sqlite3.Error: another process has it to itself, or the disk is full or broken.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if os.name == "posix":
        os.chmod(path.parent, 0o700)
        os.chmod(path, 0o600)
    connection = _connect(str(path))
    try:
        _prepare(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        if path.stat().st_size <= CHECKED_BYTES:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if result != "ok":
                raise DamagedFileError(str(result))
        _migrate(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        if is_damage(error):
            raise DamagedFileError(str(error)) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def merge_some(connection: sqlite3.Connection, index: str) -> bool:
    """Merges some pages of an index into one part without deleted rows; whether that is done."""
    before = connection.total_changes
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (-PAGES_PER_MERGE,))
    return connection.total_changes - before < 2


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself is broken, rather than busy, full or out of reach."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of it or nothing; on the disk when it ends. Within another one, a part of that."""
    is_part = connection.in_transaction
    if is_part:
        yield connection
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.ProgrammingError):  # it was closed, since the file turned out to be damaged
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def set_aside(path: Path) -> str:
    """Moves a damaged file out of the way, with what SQLite has beside it. Returns its new name. Raises OSError."""
    day = datetime.datetime.now(tz=datetime.UTC).astimezone().date().isoformat()
    aside = path.with_name(f"{path.stem}.broken-{day}{path.suffix}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{path.stem}.broken-{day}-{count}{path.suffix}")
    # The log beside it may hold the last messages.
    for old, new in zip(history_files(path), history_files(aside), strict=True):
        with suppress(FileNotFoundError):
            os.replace(old, new)
    return aside.name


def history_files(path: Path) -> list[Path]:
    """The file, and what SQLite keeps beside it."""
    return [path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm"))]


def files_aside(path: Path) -> list[Path]:
    """Everything that `set_aside` has put beside the history."""
    return sorted(path.parent.glob(f"{path.stem}.broken-*{path.suffix}*"))


def _connect(name: str) -> sqlite3.Connection:
    timeout_s = BUSY_TIMEOUT_MS / 1000
    return sqlite3.connect(name, isolation_level=None, timeout=timeout_s, factory=_Connection)


class _Connection(sqlite3.Connection):
    """Takes halves of characters too, as a server may send them: a pair becomes its character, the rest a mark."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(sql, tuple(_whole(each) if isinstance(each, str) else each for each in parameters))


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    # What is deleted is overwritten, and no text gets into a temporary file.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")


def _migrate(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise NewerFileError(f"version {version}, but this app knows {len(MIGRATIONS)}")
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        # One script, so that a file is never between two versions, whenever the power fails.
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def reason_of(error: sqlite3.Error) -> UserText:
    """Why something did not work, and what to do, as the end of a sentence."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return _REASONS.get(code) or UserText("{reason}", reason=str(error))


_REASONS = {
    sqlite3.SQLITE_BUSY: UserText("another program is writing to it; close it and try again"),
    sqlite3.SQLITE_FULL: UserText("the disk is full; free some space and try again"),
    sqlite3.SQLITE_READONLY: UserText("it is write-protected; correct the rights of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: UserText("it cannot be opened; correct the rights of the file and its folder"),
}
