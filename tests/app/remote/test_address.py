"""Addresses of servers as people type them, and which of them may be asked."""

from __future__ import annotations

import pytest

from app.remote.address import RemoteAddress, RemoteAddressError, is_remote, remote_address, remote_parts, server_url


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        (" localhost:8080/ ", "http://localhost:8080/v1"),
        ("127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("https://llm.example.org/api/v1/chat/completions", "https://llm.example.org/api/v1"),
        ("https://llm.example.org/v1/models", "https://llm.example.org/v1"),
        ("llm.example.org", "https://llm.example.org/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("HTTPS://LLM.Example.org", "https://llm.example.org/v1"),
    ],
)
def test_what_is_typed_becomes_one_form(typed: str, url: str) -> None:
    assert server_url(typed) == url
    assert server_url(url) == url


@pytest.mark.parametrize(
    "typed", ["", "ftp://x", "http://", "https://a b.org", "http://x:port", "https://key@x.org", "https://x.org?key=1"]
)
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(RemoteAddressError):
        server_url(typed)


def test_plain_http_over_a_network_needs_consent() -> None:
    with pytest.raises(RemoteAddressError, match="not be encrypted"):
        remote_address("http://192.168.1.5:8000", "m", allows_plain=False)
    assert remote_address("http://192.168.1.5:8000", "m", allows_plain=True).host == "192.168.1.5:8000"
    for here in ("http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1", "http://a.localhost:1"):
        assert remote_address(here, "m", allows_plain=False).is_this_machine
    assert not remote_address("https://x.org", "m", allows_plain=False).is_this_machine


def test_a_remote_model_has_a_name_of_its_own() -> None:
    address = RemoteAddress("https://box:8000/v1", "org/model")
    assert address.id == "remote:box:8000/org/model"
    assert is_remote(address.id)
    assert remote_parts(address.id) == ("box:8000", "org/model")
    assert remote_parts("qwen") == ("", "qwen")
    assert not is_remote("qwen")
