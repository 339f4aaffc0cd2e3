"""Readers of the data sets' files, and simulated data; usually called by `fedmf.data.load`."""
