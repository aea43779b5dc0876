"""Files of a Hugging Face hub, through huggingface_hub: its endpoint, tokens, proxies and offline switch hold.

The library's own downloads start over when a process has ended in the middle. So it is asked for addresses, headers and
its HTTP session, and the bytes are appended here, from the position that the file has reached.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inference.formats.partial_file import Checksum, PartialFile
from inference.formats.transfer import SourceError, Transfer
from inference.store.catalog import HubSource

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
RETRIES = 5
"""Attempts in a row that bring no new byte before a source is given up."""

RETRY_PAUSE_S = 1.0
CHUNK_BYTES = 256 << 10

_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT_BLOB = re.compile(r"[0-9a-f]{40}")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_NAMES = re.compile(r"[\w.-]+\.safetensors|[\w.-]+\.jinja|LICENSE[\w.-]*")
_NEEDED = (
    "config.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


class _RefusedError(SourceError):
    """The hub's answer is final; asking again is no use."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository at a commit."""

    name: str
    checksum: Checksum


class Hub:
    """A repository on a hub. Every method raises SourceError where the hub cannot be reached or refuses.

    Attributes:
        address: the hub's endpoint, for messages.
        repo: the repository.
        commit: the commit that files are taken from; the source's revision until `list_files` has been called.
    """

    def __init__(self, source: HubSource, transfer: Transfer, endpoint: str | None = None) -> None:
        """`endpoint` None is the library's own: HF_ENDPOINT, or the public hub."""
        # Costs 0.15 s, which no start of the program should pay.
        import huggingface_hub
        from huggingface_hub import constants, errors

        self._library: Any = huggingface_hub
        # Of httpx or its successor, whichever this version of the library is built on.
        self._http_error: type[Exception] = vars(errors)["HTTPError"]
        self._source = source
        self.repo = source.repo
        self._transfer = transfer
        self.address = (endpoint or constants.ENDPOINT).rstrip("/")
        self.commit = source.revision

    def file(self, name: str, expected: Checksum) -> HubFile:
        """A file whose size and sha256 are known beforehand; refused where the hub states others."""
        with self._failures():
            metadata = self._library.get_hf_file_metadata(self._url(name), timeout=CONNECT_TIMEOUT_S)
        stated = metadata.etag or ""
        if _SHA256.fullmatch(stated) and stated != expected.sha256:
            raise SourceError(f"has another {name} (sha256 {stated[:12]}… instead of {expected.sha256[:12]}…)")
        if metadata.size not in (None, expected.num_bytes):
            raise SourceError(f"has another {name} ({metadata.size} bytes instead of {expected.num_bytes})")
        return HubFile(name, expected)

    def list_files(self) -> list[HubFile]:
        """The files of a model directory, with the sizes and checksums that the hub states, at the newest commit."""
        api = self._library.HfApi(endpoint=self.address)
        with self._failures():
            info = api.model_info(
                self._source.repo, revision=self._source.revision, files_metadata=True, timeout=CONNECT_TIMEOUT_S
            )
        self.commit = info.sha or self._source.revision
        listed = [_hub_file(sibling) for sibling in info.siblings or [] if _is_needed(sibling.rfilename)]
        if not any(file.name.endswith(".safetensors") for file in listed):
            raise SourceError(f"has no safetensors files in {self._source.repo}")
        return listed

    def fetch(self, file: HubFile, part: PartialFile, base_bytes: int) -> None:
        """Appends what `part` still lacks. `base_bytes`: of the model, already there in other files."""
        retries = RETRIES
        while part.num_bytes < file.checksum.num_bytes:
            before = part.num_bytes
            try:
                with self._failures():
                    self._append(file, part, base_bytes)
                failure = SourceError(f"sends no more than {part.num_bytes} bytes of {file.name}")
            except _RefusedError:
                raise
            except SourceError as error:
                failure = error
                self._transfer.note("The connection was lost; trying to go on.")
                self._pause(RETRY_PAUSE_S)
            retries = RETRIES if part.num_bytes > before else retries - 1
            if retries <= 0:
                raise failure

    def _append(self, file: HubFile, part: PartialFile, base_bytes: int) -> None:
        start = part.num_bytes
        # No compression: ranges and sizes mean the file's own bytes.
        headers = self._library.utils.build_hf_headers() | {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        session = self._library.get_session()
        timeout = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S, READ_TIMEOUT_S, CONNECT_TIMEOUT_S)
        with session.stream("GET", self._url(file.name), headers=headers, timeout=timeout) as response:
            if response.status_code == 416:
                part.truncate(0)
                return
            if response.status_code >= 400:
                raise _refusal(response.status_code, file.name)
            if response.status_code == 206:
                stated = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
                if stated is None or int(stated[1]) != start:
                    raise SourceError(f"sends another range of {file.name} than it was asked for")
            else:
                # It knows no ranges and sends the whole file.
                part.truncate(0)
            part.append(
                _no_more_than(response.iter_bytes(CHUNK_BYTES), file.checksum.num_bytes - part.num_bytes),
                lambda size: self._transfer.advance(base_bytes + size),
            )

    def _url(self, name: str) -> str:
        url: str = self._library.hf_hub_url(self._source.repo, name, revision=self.commit, endpoint=self.address)
        return url

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turns the library's errors into SourceError. (A full disk comes as DownloadError and passes.)"""
        try:
            yield
        except self._library.errors.OfflineModeIsEnabled as error:
            raise _RefusedError("is switched off by HF_HUB_OFFLINE") from error
        except (self._http_error, OSError) as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if status is None:
                raise SourceError(f"cannot be reached ({_first_line(error)})") from error
            raise _refusal(status, self._source.repo) from error

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._transfer.check_cancelled()
            time.sleep(0.05)


def _refusal(status: int, what: str) -> SourceError:
    if status in (401, 403):
        return _RefusedError(f"answers {status} for {what}: it is private or needs a login with the hub's own tool")
    if status == 429 or status >= 500:
        return SourceError(f"answers {status} for {what}")
    return _RefusedError(f"answers {status} for {what}")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:120] or type(error).__name__


def _no_more_than(chunks: Iterator[bytes], num_bytes: int) -> Iterator[bytes]:
    """The chunks, cut behind `num_bytes`: a server that never ends cannot fill the disk."""
    for chunk in chunks:
        if num_bytes <= 0:
            return
        yield chunk[:num_bytes]
        num_bytes -= len(chunk)


def _is_needed(name: str) -> bool:
    # Files in subdirectories are other formats of the same weights.
    return name in _NEEDED or _NAMES.fullmatch(name) is not None


def _hub_file(sibling: Any) -> HubFile:
    """A file with what the hub states of it: the sha256 of a large one, git's object id of a small one."""
    sha256 = str(getattr(sibling.lfs, "sha256", "") or "")
    git_blob = str(sibling.blob_id or "")
    size = sibling.size
    if type(size) is not int or size < 0 or not (_SHA256.fullmatch(sha256) or _GIT_BLOB.fullmatch(git_blob)):
        raise SourceError(f"states no size or no checksum of {sibling.rfilename}")
    return HubFile(sibling.rfilename, Checksum(size, sha256 if _SHA256.fullmatch(sha256) else "", git_blob))
