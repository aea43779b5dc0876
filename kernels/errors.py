"""The error tree of the kernels; backends turn these into the engine's own errors.

KernelError
├── CompileError     the compiler is missing or refused a source
└── ContractError    a launcher was given shapes or types that its kernel does not take
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
