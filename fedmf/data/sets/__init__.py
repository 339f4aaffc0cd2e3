"""The data sets, from the files that they come in; `fedmf.data` is the door."""
