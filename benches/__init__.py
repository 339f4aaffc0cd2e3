"""Measurements of this repository.

``pytest benches`` times kernels and rounds. `compare` measures secret sharing against
homomorphic encryption, `scale` large rounds, `http_load` a thousand clients over HTTP,
`flower_rounds` rounds on Flower, and `papers` the tables of the papers.
"""
