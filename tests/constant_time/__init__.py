"""Checks that the time of the kernels does not depend on secrets: `python -m constant_time`.

- `tools`: valgrind and clang's MemorySanitizer run `drivers.c`, where secrets are marked as
  undefined. They report a branch or an address that depends on undefined memory.
- `timing`: Welch's t-test on the times of two classes of inputs.

The tools miss instructions whose own time depends on operands, such as a division. The t-test
sees only what it measures. Kernels have their names in `secagg._fast`.
"""
