"""Differential privacy on Flower: pictures of digits, of which each node has two or three."""
