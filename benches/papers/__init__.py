"""The papers' tables, measured again: ``python -m benches.papers``.

Most modules define tables. `runner` runs their rows, and `show` prints and writes the results.
"""
