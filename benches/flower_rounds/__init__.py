"""Rounds on Flower: ``python -m benches.flower_rounds`` compares four ways to sum updates.

One application runs under plain FedAvg, Flower's SecAgg+, `SecAgg` and `OneShot`, with the
same model, local work and weights. A SuperLink and its SuperNodes are processes on loopback.
Runs take turns, and each model is compared with the mean that was due.
"""
