"""The desktop assistant and the command line, built on the engine."""
