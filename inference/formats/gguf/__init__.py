"""GGUF files as a ModelSource."""
