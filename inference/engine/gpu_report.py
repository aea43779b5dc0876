"""What the GPU is, or why none can be used, for people."""

from __future__ import annotations

from dataclasses import dataclass

from inference.errors import BackendUnavailableError


@dataclass(frozen=True, slots=True)
class GpuReport:
    """The GPU that the CUDA engine would use.

    Attributes:
        compute_capability: (8, 6).
        total_bytes, free_bytes: its memory; `context_bytes` are taken already.
        context_bytes: what opening it took, 0 where that cannot be told.
        sm_count: streaming multiprocessors.
        driver: newest CUDA version that its driver runs, (12, 8).
        compiler: version of NVRTC, (12, 9).
        architecture: what the kernels are built for, "sm_86".
    """

    name: str
    compute_capability: tuple[int, int]
    total_bytes: int
    free_bytes: int
    context_bytes: int
    sm_count: int
    driver: tuple[int, int]
    compiler: tuple[int, int]
    architecture: str


def gpu_report() -> GpuReport:
    """Opens the first GPU, which wakes it, and closes it again.

    Raises:
        BackendUnavailableError: it cannot be used; the reason says why and what helps.
    """
    from kernels.compile import compiler
    from kernels.device.driver import Device
    from kernels.errors import KernelError

    try:
        device = Device()
        try:
            return GpuReport(
                name=device.name,
                compute_capability=device.capability,
                total_bytes=device.total_bytes,
                free_bytes=device.free_bytes(),
                context_bytes=device.context_bytes,
                sm_count=device.sm_count,
                driver=(device.driver_version // 1000, device.driver_version % 1000 // 10),
                compiler=compiler.nvrtc_version(),
                architecture=compiler.arch_for(device.capability),
            )
        finally:
            device.close()
    except KernelError as error:
        raise BackendUnavailableError("cuda", str(error)) from error
