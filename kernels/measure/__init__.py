"""Speed of single kernels, and of the memory that they are compared with."""
