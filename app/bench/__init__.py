"""Measuring: the fixed protocol, our engine, its peers in the same run, and the page that shows them side by side."""
