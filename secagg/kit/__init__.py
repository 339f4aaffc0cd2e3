"""Kit of the commands and benchmarks: tables, JSON, pictures, clocks and interrupts."""
