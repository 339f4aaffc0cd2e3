"""Numbers of examples and rounds, in proportion to Hypothesis's profile."""

from __future__ import annotations

from hypothesis import settings

FULL = 100  # the examples of the profile "full", in which the tests state their numbers


def scaled(full: int, least: int = 5) -> int:
    """Return `full` under the profile "full", a part of it but `least` under a smaller one."""
    part = min(settings.default.max_examples, FULL)
    return max(min(full, least), full * part // FULL)


def examples(full: int) -> settings:
    """Hypothesis settings of a test that needs `full` examples under the profile "full"."""
    return settings(max_examples=scaled(full))
