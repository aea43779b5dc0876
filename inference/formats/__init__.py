"""Model files: the readers of every format, and the seam that they share."""
