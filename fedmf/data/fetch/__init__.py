"""Fetching data sets: the download, the archive, and what makes sure that all is there."""
