"""The models on this machine: the catalog, downloads, and the folder that they lie in."""
