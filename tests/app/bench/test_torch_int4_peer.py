"""Without a GPU, or with columns that the op does not take, the peer says why it measures nothing."""

from __future__ import annotations

import json

import pytest

from app.bench import torch_int4_peer

torch = pytest.importorskip("torch")


def test_without_a_gpu_it_is_skipped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    torch_int4_peer.main(["256x128x2", "--prompt=58", "--depth=0", "--decode=4", "--repeat=1", "--chat"])
    assert json.loads(capsys.readouterr().out) == {"skip": "torch sees no GPU"}


def test_columns_that_the_op_does_not_take(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    torch_int4_peer.main(["256x576x2"])
    assert "576" in json.loads(capsys.readouterr().out)["skip"]
