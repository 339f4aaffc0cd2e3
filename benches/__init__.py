"""Measurements of this repository.

`speed` measures ratios to other code and to earlier releases, and growth with the size;
``pytest benches`` times single kernels. `compare` measures secret sharing against
homomorphic encryption, `scale` large rounds, `version4` rounds by suite and variant,
`http_load` a thousand clients over HTTP, `flower_rounds` rounds on Flower, and `papers` the
tables of the papers.
"""
