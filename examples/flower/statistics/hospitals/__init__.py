"""Secure statistics on Flower: each step of a plan is a round of a strategy."""
