"""Our own checkpoints: quantized weights by layer, with a manifest."""
