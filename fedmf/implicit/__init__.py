"""Recommenders from implicit feedback, centralised and federated; `fedmf.fcf` is the door."""
