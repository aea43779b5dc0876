"""What is done with a text: actions, the commands that call them, and one task from request to reviewed answer."""
