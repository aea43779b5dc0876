"""The launchers of the CUDA kernels: what each computes, how its work is cut, and when which is chosen."""
