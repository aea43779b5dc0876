"""What is kept of conversations and answers, in one SQLite file."""
