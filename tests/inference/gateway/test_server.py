"""How a server ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_SERVES = """
import signal, threading, urllib.request
from starlette.applications import Starlette
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer

# A shell that starts the tests in the background has its children ignore Ctrl+C.
signal.signal(signal.SIGINT, signal.default_int_handler)
server = GatewayServer(Starlette(), GatewayOptions(port=0))

def tell():
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/")
    except urllib.error.HTTPError:
        print("serving", flush=True)

threading.Thread(target=tell, daemon=True).start()
try:
    server.run()
finally:
    print("tidied up", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there a process is ended without being asked")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, -signal.SIGINT)])
def test_what_stands_behind_it_is_done_when_a_signal_ends_it(number: signal.Signals, status: int) -> None:
    """The engine gives its memory and its lock back, and nobody is told of a server that is no more."""
    with subprocess.Popen([sys.executable, "-c", _SERVES], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "serving\n"
            process.send_signal(number)
            out, _ = process.communicate(timeout=20)
        finally:
            process.kill()
    assert out == "tidied up\n"
    assert process.returncode == status
