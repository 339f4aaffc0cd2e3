"""Secret sharing against homomorphic encryption, ``secagg bench``, and the kit that measures.

The kit serves ``benches/``, too: `timing` (timers, peak memory, the machine, Ctrl-C), `table`
(plain data on a terminal, in Markdown, as JSON) and `picture`. The comparison measures `cases`.
One file per system (`ss`, `he`, `peers`, `ckks`) makes its parties; `roles` gives each a
process of its own, and `keyed` measures all systems with a key. `per_float` measures Paillier
float by float, `run` everything, and `report` shows it.
"""
