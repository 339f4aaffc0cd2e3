"""Kit of commands, studies and benchmarks: tables, files, JSON, pictures and clocks."""
