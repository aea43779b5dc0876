"""One NVIDIA GPU through the driver's own interface: memory, streams, graphs, loaded kernels."""
