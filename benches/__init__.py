"""Measurements: ``pytest benches`` for kernels and rounds, `compare`, `scale`, and `papers`."""
