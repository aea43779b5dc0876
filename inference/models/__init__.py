"""What a model is: its shape and its rotary frequencies. Pure."""
