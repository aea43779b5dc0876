"""What docs/clients.md says of a model that loads is what the gateway and the openai package do."""

from __future__ import annotations

from pathlib import Path

import openai
from starlette.testclient import TestClient

from inference.gateway.gateway import Gateway
from inference.gateway.options import GatewayOptions
from inference.request import EngineReading, ModelState
from tests.inference.gateway.conftest import ScriptedEngine

_SECONDS = {4: "four"}


def test_a_request_during_a_load(project_root: Path) -> None:
    engine = ScriptedEngine()
    engine.reading = lambda: EngineReading(ModelState.LOADING, "one")  # type: ignore[method-assign]
    gateway = Gateway(engine, GatewayOptions(), lambda: {"one": "one"}, lambda: "one")
    with TestClient(gateway.app, base_url="http://127.0.0.1") as client:
        body = {"model": "one", "messages": [{"role": "user", "content": "hi"}]}
        refusal = client.post("/v1/chat/completions", json=body)
        health = client.get("/health").json()
    page = " ".join((project_root / "docs" / "clients.md").read_text(encoding="utf-8").split())
    wait_s, code = int(refusal.headers["Retry-After"]), refusal.json()["error"]["code"]
    assert f"gets a {refusal.status_code} with the code `{code}` and `Retry-After: {wait_s}`" in page
    assert openai.DEFAULT_MAX_RETRIES == 2
    assert f"twice, which is enough for a load of {_SECONDS[2 * wait_s]} seconds" in page
    assert f"For half a minute: `OpenAI(max_retries={30 // wait_s}, ...)`" in page
    assert f"`{health['state']}`" in page
    states = ", ".join(f"`{state.value}`" for state in ModelState)
    assert f"its `state`: {' or '.join(states.rsplit(', ', 1))}." in page
