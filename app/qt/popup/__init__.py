"""The popup: from a command to an answer beside the cursor, and back into the program it came from."""
