"""Models on the disk and in the catalog: listed, downloaded, checked, deleted."""
