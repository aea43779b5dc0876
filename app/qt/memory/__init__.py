"""The memory meter, its readings, and what gives memory back."""
