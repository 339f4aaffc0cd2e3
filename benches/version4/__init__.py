"""Costs of version 4, of a client and of the server: ``python -m benches.version4``.

Rounds of both suites and both variants are run by this code, and rounds of version 3 by the
code of its last commit. What suite hybrid and blame add to a round is compared with the time of
the primitives that they need, measured in the same run.
"""
