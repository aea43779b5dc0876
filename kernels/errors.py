"""The error tree of the kernels; backends turn these into the engine's own errors.

KernelError
├── CompileError           the compiler is missing or refused a source
├── ContractError          a launcher was given shapes or types that its kernel does not take
└── DeviceError            no usable GPU, or a call of its driver failed
    └── OutOfDeviceMemory  an allocation does not fit
"""

from __future__ import annotations


class KernelError(Exception):
    """Base of all errors that the kernels raise on purpose."""


class CompileError(KernelError):
    """A kernel could not be built.

    Attributes:
        log: what the compiler wrote, "" where it could not be started.
    """

    def __init__(self, message: str, log: str = "") -> None:
        self.log = log
        super().__init__(f"{message}\n{log}".rstrip())


class ContractError(KernelError):
    """Arguments break the "Requires" line of a kernel's header; the message says the value and the limit."""


class DeviceError(KernelError):
    """The GPU cannot be used, or a call of its driver failed.

    Attributes:
        reason: why and the cure, in one or two sentences for the user.
        code: the driver's number of the error, 0 where no call failed.
    """

    def __init__(self, reason: str, code: int = 0) -> None:
        self.reason = reason
        self.code = code
        super().__init__(reason)


class OutOfDeviceMemory(DeviceError):
    """An allocation does not fit into the GPU's memory or into the limit that was set.

    Attributes:
        wanted_bytes: what was asked for.
        free_bytes: what could still be had.
        limit_bytes: the limit that was set, None where there is none.
    """

    def __init__(self, wanted_bytes: int, free_bytes: int, limit_bytes: int | None) -> None:
        self.wanted_bytes, self.free_bytes, self.limit_bytes = wanted_bytes, free_bytes, limit_bytes
        limit = "" if limit_bytes is None else f" of a limit of {limit_bytes / 2**20:,.0f} MiB"
        super().__init__(
            f"{wanted_bytes / 2**20:,.1f} MiB of GPU memory were asked for and {free_bytes / 2**20:,.1f} MiB{limit} are"
            " free: close other programs that use the GPU, or choose a smaller model or context.",
            code=2,
        )
