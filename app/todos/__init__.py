"""To-dos as data: how a model is asked for them, how they are read, written and dated."""
