"""Secret sharing against homomorphic encryption, ``secagg bench``, and the kit that measures.

`timing`, `table` and `picture` serve ``benches/`` too. The systems `ss`, `he`, `peers` and
`ckks` make parties, and `roles` gives each a process. `keyed` measures systems with a key,
`per_float` Paillier by the float, `run` everything; `report` shows it.
"""
