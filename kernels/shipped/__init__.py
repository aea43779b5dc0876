"""Which variants of the CUDA kernels ship, what each needs of an SM, and building them ahead."""
