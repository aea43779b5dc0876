"""The CPU kernels in C, their compiler, and how Python sees them."""
