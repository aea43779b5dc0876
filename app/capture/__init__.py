"""Taking a text out of another program, and putting the answer back."""
