"""CUDA sources to cubins, and the contracts in their headers. Needs no GPU."""
