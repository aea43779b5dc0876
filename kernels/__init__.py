"""Compute kernels and their launchers. Knows nothing of models, requests or windows."""
