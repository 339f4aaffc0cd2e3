"""Benchmark of secret sharing against homomorphic encryption: ``secagg bench`` and its tools.

A *system* is a way to compute a sum: `ss`, `he`, `peers` and `ckks` define systems. `roles`
runs each party of a system in a process. `keyed` measures systems with a key, `per_float` the
cost of Paillier's operations per float, and `run` all systems. `report` prints the results, and
`picture` draws them.
"""
