"""How quantized weights lie in files and memory, how they are rounded, what they mean: the oracle. Pure NumPy."""
