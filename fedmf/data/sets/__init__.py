"""Readers of the data sets' files; use them through `fedmf.data`."""
