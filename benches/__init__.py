"""Measurements of this repository.

``pytest benches`` times kernels and rounds. `compare` measures secret sharing against
homomorphic encryption, `scale` large rounds, and `papers` the tables of the papers.
"""
