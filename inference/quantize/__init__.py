"""From weights of any source to a checkpoint: which bits each matrix gets, and how its weights are rounded."""
