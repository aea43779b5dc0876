"""The line to the running app: one instance, hostile input, crashes, and the stream of answers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from app.instance import instance
from app.instance.address import address_in, private_directory
from app.instance.instance import (
    AlreadyRunningError,
    InstanceError,
    InstanceServer,
    Message,
    Reply,
    is_running,
    send_to_running,
    stream_from_running,
)

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="sockets and their rights are POSIX")


def echo(command: Message, reply: Reply) -> None:
    reply.send({"got": command})
    reply.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[instance.Handler], InstanceServer]]:
    with contextlib.ExitStack() as stack:

        def start(handler: instance.Handler) -> InstanceServer:
            server = InstanceServer(handler, tmp_path)
            stack.callback(server.close)
            return server

        yield start


def wait_until(condition: Callable[[], bool], limit_s: float = 5.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.005)


def test_nobody_runs(tmp_path: Path) -> None:
    assert send_to_running({"command": "show"}, directory=tmp_path) is None
    assert stream_from_running({"command": "show"}, directory=tmp_path) is None
    assert not is_running(tmp_path)


def test_a_command_reaches_the_running_app_and_its_answer_comes_back(tmp_path: Path, serve) -> None:
    serve(echo)
    command = {"command": "action", "id": "总结", "source": "selection"}
    assert send_to_running(command, directory=tmp_path) == {"got": command}
    assert is_running(tmp_path)


def test_a_reply_without_a_message_is_an_empty_answer(tmp_path: Path, serve) -> None:
    serve(lambda command, reply: reply.close())
    assert send_to_running({"command": "show"}, directory=tmp_path) == {}


def test_messages_stream_in_order(tmp_path: Path, serve) -> None:
    def count(command: Message, reply: Reply) -> None:
        for number in range(command["to"]):
            reply.send({"number": number})
        reply.close()

    serve(count)
    messages = stream_from_running({"to": 200}, directory=tmp_path)
    assert messages is not None
    assert [message["number"] for message in messages] == list(range(200))


def test_the_reply_may_come_later_from_another_thread(tmp_path: Path, serve) -> None:
    threads: list[threading.Thread] = []

    def later(command: Message, reply: Reply) -> None:
        threads.append(threading.Thread(target=echo, args=(command, reply)))
        threads[0].start()

    serve(later)
    assert send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}
    threads[0].join()


def test_the_second_start_is_refused_and_the_first_goes_on(tmp_path: Path, serve) -> None:
    serve(echo)
    with pytest.raises(AlreadyRunningError, match="already running"):
        InstanceServer(echo, tmp_path)
    assert send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}


def test_after_close_another_may_start(tmp_path: Path) -> None:
    first = InstanceServer(echo, tmp_path)
    first.close()
    first.close()
    assert send_to_running({"x": 1}, directory=tmp_path) is None
    second = InstanceServer(echo, tmp_path)
    assert send_to_running({"x": 2}, directory=tmp_path) == {"got": {"x": 2}}
    second.close()


STARTER = """
import sys, time
from pathlib import Path
from app.instance.instance import AlreadyRunningError, InstanceServer
folder = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    server = InstanceServer(lambda command, reply: reply.close(), folder)
except AlreadyRunningError:
    print("refused", flush=True)
else:
    print("running", flush=True)
sys.stdin.readline()
"""


def start_process(folder: Path) -> subprocess.Popen[str]:
    root = Path(instance.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_of_five_starts_at_the_same_moment_exactly_one_wins(tmp_path: Path) -> None:
    processes = [start_process(tmp_path) for _ in range(5)]
    try:
        for process in processes:
            tell(process)
        answers = [process.stdout.readline().strip() for process in processes]  # type: ignore[union-attr]
        assert sorted(answers) == ["refused"] * 4 + ["running"]
        assert send_to_running({"command": "show"}, directory=tmp_path) == {}
    finally:
        for process in processes:
            end(process)


def test_after_a_crash_the_next_start_takes_over_the_stale_socket(tmp_path: Path, serve) -> None:
    process = start_process(tmp_path)
    tell(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    end(process)
    assert send_to_running({"command": "show"}, directory=tmp_path) is None
    serve(echo)
    assert send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}


def test_an_app_that_is_just_starting_is_waited_for(tmp_path: Path) -> None:
    from filelock import FileLock

    lock = FileLock(tmp_path / "app.lock", thread_local=False)
    lock.acquire()
    servers: list[InstanceServer] = []

    def start_late() -> None:
        time.sleep(0.15)
        lock.release()
        servers.append(InstanceServer(echo, tmp_path))

    thread = threading.Thread(target=start_late)
    thread.start()
    answer = None
    while answer is None:  # in the moment between release and start nobody runs, which is also a right answer
        answer = send_to_running({"x": 1}, timeout_s=3, directory=tmp_path)
    assert answer == {"got": {"x": 1}}
    thread.join()
    servers[0].close()


def test_an_app_that_never_listens_is_an_error_with_a_cure(tmp_path: Path) -> None:
    from filelock import FileLock

    with FileLock(tmp_path / "app.lock"), pytest.raises(InstanceError, match="start it again"):
        send_to_running({"x": 1}, timeout_s=0.1, directory=tmp_path)


def test_an_app_that_never_answers_is_an_error_with_a_cure(tmp_path: Path, serve) -> None:
    serve(lambda command, reply: None)
    with pytest.raises(InstanceError, match=r"did not answer within 0\.1 s"):
        send_to_running({"x": 1}, timeout_s=0.1, directory=tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"\x80\x04\x95cos\nsystem\n.", b"[" * 100_000],
)
def test_malformed_input_gets_an_error_and_the_server_lives(tmp_path: Path, serve, data: bytes) -> None:
    serve(echo)
    with Client(address_in(tmp_path)) as connection:
        connection.send_bytes(data)
        frame = json.loads(connection.recv_bytes())
    assert "message of" in frame["message"]["error"] or "JSON object" in frame["message"]["error"]
    assert send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}


def test_a_command_that_the_handler_does_not_understand_gets_its_error(tmp_path: Path, serve) -> None:
    def strict(command: Message, reply: Reply) -> None:
        raise LookupError(f"There is no command {command['command']!r}.")

    serve(strict)
    assert send_to_running({"command": "dance"}, directory=tmp_path) == {"error": "There is no command 'dance'."}
    assert send_to_running({}, directory=tmp_path) == {"error": "'command'"}


@on_posix
def test_a_message_over_the_limit_is_refused_before_it_is_read(tmp_path: Path, serve) -> None:
    serve(echo)
    with Client(address_in(tmp_path)) as connection:
        os.write(connection.fileno(), struct.pack("!i", instance.MAX_MESSAGE_BYTES + 1))
        with pytest.raises((EOFError, ConnectionResetError)):
            connection.recv_bytes()
    assert send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}


@on_posix
def test_a_command_over_the_limit_is_told_by_its_size(tmp_path: Path, serve) -> None:
    serve(echo)
    command = {"command": "ask", "text": "x" * instance.MAX_MESSAGE_BYTES}
    for send in (send_to_running, stream_from_running):
        with pytest.raises(InstanceError, match=r"takes 83886\d\d bytes, but .* at most 8388608\. Use a shorter"):
            send(command, directory=tmp_path)
    assert send_to_running({"command": "show"}, directory=tmp_path) == {"got": {"command": "show"}}


def test_lone_surrogates_pass_there_and_back(tmp_path: Path, serve) -> None:
    serve(echo)
    command = {"command": "ask", "text": "half a \ud83d smile"}
    assert send_to_running(command, directory=tmp_path) == {"got": command}


def test_half_a_message_and_silence_hold_nobody_up(tmp_path: Path, serve) -> None:
    serve(echo)
    with Client(address_in(tmp_path)) as half, Client(address_in(tmp_path)):
        os.write(half.fileno(), struct.pack("!i", 1000) + b"{")
        assert send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}


def test_close_is_quick_while_clients_hang(tmp_path: Path) -> None:
    server = InstanceServer(lambda command, reply: None, tmp_path)
    with Client(address_in(tmp_path)) as asking, Client(address_in(tmp_path)):
        asking.send_bytes(b"{}")
        start = time.monotonic()
        server.close()
        assert time.monotonic() - start < 2.0


def test_too_many_clients_are_turned_away_and_the_server_lives(tmp_path: Path, serve) -> None:
    serve(echo)
    hanging = [Client(address_in(tmp_path)) for _ in range(instance.MAX_CONNECTIONS + 4)]
    with pytest.raises(InstanceError, match="closed the line"):
        send_to_running({"x": 1}, directory=tmp_path)
    for connection in hanging:
        connection.close()

    def answered() -> bool:
        try:
            return send_to_running({"x": 1}, directory=tmp_path) == {"got": {"x": 1}}
        except InstanceError:
            return False

    wait_until(answered)


def test_a_client_that_goes_away_is_noticed(tmp_path: Path, serve) -> None:
    gone = threading.Event()
    seen: list[bool] = []

    def forever(command: Message, reply: Reply) -> None:
        reply.on_gone(gone.set)
        reply.send({"number": 1})
        assert gone.wait(5)
        seen.append(reply.send({"number": 2}))
        reply.on_gone(lambda: seen.append(True))

    server = serve(lambda command, reply: threading.Thread(target=forever, args=(command, reply)).start())
    messages = stream_from_running({}, directory=tmp_path)
    assert messages is not None
    assert next(messages) == {"number": 1}
    messages.close()
    wait_until(lambda: len(seen) == 2)
    assert seen == [False, True]
    assert server is not None


def test_a_server_that_dies_in_an_answer_is_an_error_not_an_end(tmp_path: Path) -> None:
    server = InstanceServer(lambda command, reply: reply.send({"number": 1}) and None, tmp_path)
    messages = stream_from_running({}, directory=tmp_path)
    assert messages is not None
    assert next(messages) == {"number": 1}
    server.close()
    with pytest.raises(InstanceError, match="went away"):
        next(messages)


@on_posix
def test_only_the_user_may_enter(tmp_path: Path, serve) -> None:
    tmp_path.chmod(0o755)
    serve(echo)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(address_in(tmp_path)).st_mode) == 0o600


@on_posix
def test_a_link_is_no_private_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(InstanceError, match="is a link"):
        private_directory(tmp_path / "link")


@on_posix
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345678)
    with pytest.raises(InstanceError, match="belongs to another user"):
        private_directory(tmp_path)


@on_posix
def test_a_peer_of_another_user_is_turned_away(tmp_path: Path, serve, monkeypatch: pytest.MonkeyPatch) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells who the peer is")
    serve(echo)
    peer = struct.pack("3i", 1, os.getuid() + 1, 1)
    monkeypatch.setattr(socket.socket, "getsockopt", lambda *arguments: peer)
    with pytest.raises(InstanceError, match="closed the line"):
        send_to_running({"x": 1}, directory=tmp_path)


@on_posix
def test_a_path_that_is_too_long_for_a_socket_works_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    server = InstanceServer(echo, deep)
    try:
        assert len(address_in(deep)) < 108
        assert send_to_running({"x": 1}, directory=deep) == {"got": {"x": 1}}
    finally:
        server.close()
        Path(address_in(deep)).parent.rmdir()
