"""Ratios of times to other code and to earlier releases, and fits to the theoretical order.

``python -m benches.speed`` measures docs/speed.md in one run. A row of `rows` names a case of
this library and its rivals; `runner` asks their worker processes in turn, one repetition each,
so that all are measured under the same conditions. `releases` builds earlier releases, in whose
folders the same cases run. `scaling` and `fits` compare growth with the theoretical order.
"""
