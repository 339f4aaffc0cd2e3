"""Benchmark of secret sharing against homomorphic encryption: ``secagg bench`` and its tools.

`timing`, `table` and `picture` serve ``benches/`` too. The systems `ss`, `he`, `peers` and
`ckks` make parties, and `roles` runs each in a process. `keyed` measures systems with a key,
`per_float` Paillier with one ciphertext per float, `run` everything. `report` prints it.
"""
