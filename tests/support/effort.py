"""Numbers of examples and rounds by Hypothesis's profile, and tests for one mode only."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from secagg import _fast

pure_repeats = pytest.mark.skipif(
    not _fast.COMPILED,
    reason="shows the same without kernels, and what it calls is tested without them",
)

needs_data = pytest.mark.skipif(
    "FEDMF_DATA" not in os.environ, reason="FEDMF_DATA names no folder of data sets"
)

FULL = 100  # the examples of the profile "full", in which the tests state their numbers


def scaled(full: int, least: int = 5) -> int:
    """Return `full` under the profile "full", a part of it but `least` under a smaller one."""
    part = min(settings.default.max_examples, FULL)
    return max(min(full, least), full * part // FULL)


def examples(full: int) -> settings:
    """Hypothesis settings of a test that needs `full` examples under the profile "full"."""
    return settings(max_examples=scaled(full))
