"""What `deskinfer` does in a terminal; app/cli.py reads the command line."""
