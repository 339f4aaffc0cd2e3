"""What secagg costs: ``python -m benches`` for ratios, ``pytest benches`` for each case."""
