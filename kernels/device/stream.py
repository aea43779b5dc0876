"""Streams, events and graphs of the device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from kernels.device.memory import HostBuffer
from kernels.errors import DeviceError

if TYPE_CHECKING:
    from kernels.device.driver import Device

_NOT_READY = 600


class Stream:
    """A queue of work that runs in order, beside the default stream's.

    Attributes:
        handle: the driver's.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.handle = device.call("cuStreamCreate", device.driver.CUstream_flags.CU_STREAM_NON_BLOCKING)

    def copy_to_device(self, dst: int, src: HostBuffer | NDArray[Any], nbytes: int, offset: int = 0) -> None:
        """Copies `nbytes` from `offset` bytes behind the start of `src`.

        A HostBuffer is read when the copy runs; an array has been read when this returns, and must be contiguous.
        """
        if nbytes:
            self._device.call("cuMemcpyHtoDAsync", dst, _address(src, nbytes, offset), nbytes, self.handle)

    def copy_to_host(self, dst: HostBuffer, src: int, nbytes: int, offset: int = 0) -> None:
        """Copies `nbytes` to `offset` bytes behind the start of `dst`."""
        if nbytes:
            self._device.call("cuMemcpyDtoHAsync", _address(dst, nbytes, offset), src, nbytes, self.handle)

    def copy(self, dst: int, src: int, nbytes: int) -> None:
        """Copies within the device."""
        if nbytes:
            self._device.call("cuMemcpyDtoDAsync", dst, src, nbytes, self.handle)

    def fill(self, dst: int, byte: int, nbytes: int) -> None:
        """Sets every byte."""
        if nbytes:
            self._device.call("cuMemsetD8Async", dst, byte, nbytes, self.handle)

    def synchronize(self) -> None:
        """Waits for all that was queued. Raises DeviceError where a kernel failed."""
        self._device.call("cuStreamSynchronize", self.handle)

    def record(self, event: Event | None = None, *, timing: bool = False) -> Event:
        """An event that is reached when all that was queued is done; `event` is used again where one is given."""
        event = event or Event(self._device, timing=timing)
        self._device.call("cuEventRecord", event.handle, self.handle)
        return event

    def wait(self, event: Event) -> None:
        """What is queued from now on starts after the event."""
        self._device.call("cuStreamWaitEvent", self.handle, event.handle, 0)

    @contextlib.contextmanager
    def capture(self) -> Iterator[Graph]:
        """Records what the block queues on this stream, instead of running it, into the graph that it yields.

        The graph can be launched after the block. All that it was given (memory, arguments' values) is fixed.
        """
        mode = self._device.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._device.call("cuStreamBeginCapture", self.handle, mode)
        graph = Graph(self)
        try:
            yield graph
        except BaseException:
            with contextlib.suppress(DeviceError):  # the capture is broken already; what broke it is raised
                self._device.call("cuGraphDestroy", self._device.call("cuStreamEndCapture", self.handle))
            raise
        captured = self._device.call("cuStreamEndCapture", self.handle)
        try:
            graph.instantiate(captured)
        finally:
            self._device.call("cuGraphDestroy", captured)

    def close(self) -> None:
        """Gives the stream back."""
        self._device.call("cuStreamDestroy", self.handle)

    @property
    def device(self) -> Device:
        """Where it runs."""
        return self._device


def _address(host: HostBuffer | NDArray[Any], nbytes: int, offset: int) -> int:
    if offset < 0 or offset + nbytes > host.nbytes:
        raise ValueError(f"{nbytes} bytes at {offset} lie outside of a buffer of {host.nbytes} bytes.")
    if isinstance(host, HostBuffer):
        return host.pointer + offset
    if not host.flags.c_contiguous:
        raise ValueError("Only contiguous arrays can be copied to the device.")
    return int(host.ctypes.data) + offset


class Event:
    """A point in a stream."""

    def __init__(self, device: Device, *, timing: bool = False) -> None:
        flags = device.driver.CUevent_flags
        self._device = device
        self.handle = device.call("cuEventCreate", flags.CU_EVENT_DEFAULT if timing else flags.CU_EVENT_DISABLE_TIMING)

    def synchronize(self) -> None:
        """Waits until the stream has reached it."""
        self._device.call("cuEventSynchronize", self.handle)

    def query(self) -> bool:
        """Whether the stream has reached it."""
        try:
            self._device.call("cuEventQuery", self.handle)
        except DeviceError as error:
            if error.code == _NOT_READY:
                return False
            raise
        return True

    def elapsed_ms(self, since: Event) -> float:
        """Milliseconds of the device from `since` to this event, both recorded with timing and reached."""
        return float(self._device.call("cuEventElapsedTime", since.handle, self.handle))

    def close(self) -> None:
        """Gives the event back; a second call does nothing."""
        if self.handle is not None:
            handle, self.handle = self.handle, None
            if self._device.is_open:
                self._device.call("cuEventDestroy", handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            with contextlib.suppress(DeviceError):
                self.close()


class Graph:
    """Work that was captured once and is launched as a whole."""

    def __init__(self, stream: Stream) -> None:
        self._device = stream.device
        self._stream = stream
        self._launch = self._device.driver.cuGraphLaunch
        self._executable: Any = None

    def instantiate(self, captured: Any) -> None:
        """Makes a captured graph ready to launch."""
        self._executable = self._device.call("cuGraphInstantiate", captured, 0)

    def launch(self, stream: Stream | None = None) -> None:
        """Queues the whole graph on a stream, by default the one it was captured on."""
        if self._executable is None:
            raise DeviceError("a graph was launched that was never captured or is closed")
        handle = (stream or self._stream).handle
        if self._launch(self._executable, handle)[0]:
            self._device.call("cuGraphLaunch", self._executable, handle)  # in a new thread it works now; else it raises

    def close(self) -> None:
        """Gives the graph back once it does not run; a second call does nothing."""
        if self._executable is not None:
            executable, self._executable = self._executable, None
            self._device.call("cuGraphExecDestroy", executable)
