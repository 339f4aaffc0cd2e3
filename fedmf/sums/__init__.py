"""Sums of users' tables, a file for each way; `fedmf.aggregate` is the door."""
