"""Model files: readers, the catalog, the store and its downloads."""
