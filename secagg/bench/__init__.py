"""Secret sharing against homomorphic encryption, and both against others: ``secagg bench``.

One file per system that is measured (`ss`, `he`, `peers`, `ckks`); `keyed` runs all those in
which somebody holds a key, `roles` gives every party a process of its own.
"""
