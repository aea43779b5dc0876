"""Hugging Face directories as a ModelSource, and LoRA adapters for them."""
