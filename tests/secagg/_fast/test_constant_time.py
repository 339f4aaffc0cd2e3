"""Secrets choose neither branches nor addresses; the t-test tells two samples apart.

The times themselves are measured by ``make constant-time`` alone.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from constant_time import timing, tools
from secagg import _fast


@pytest.mark.skipif(not _fast.COMPILED, reason="compiled kernels only")
@pytest.mark.parametrize(
    ("tool", "reported"),
    [
        pytest.param(
            tools.WITH_GCC, (*tools.EXCEPTIONS, *tools.PLANTED), marks=pytest.mark.large
        ),
        pytest.param(tools.WITH_CLANG, tools.PLANTED, marks=pytest.mark.large),
        pytest.param(tools.SANITIZER, tools.PLANTED, marks=pytest.mark.large),
    ],
)
def test_check44_no_branch_or_address_depends_on_a_secret(tool, reported, tmp_path):
    """Planted ones are reported; so is the exception that SECURITY.md names."""
    if tool.missing:
        pytest.skip(f"needs {tool.missing}")
    reports = tool.run(tmp_path, (*tools.SECRET, *reported))
    assert {name for name, report in reports.items() if report} == set(reported), reports


def test_check44_every_kernel_is_checked_or_listed():
    listed = [*tools.SECRET, *tools.EXCEPTIONS, *tools.PUBLIC]
    kernels = {name for name in _fast.__all__ if name.islower() and name != "choose_tier"}
    assert sorted(listed) == sorted(kernels)


def test_flags_are_those_of_the_extension():
    setup = (Path(__file__).parents[3] / "setup.py").read_text(encoding="utf-8")
    found = [
        ast.literal_eval(value)
        for node in ast.walk(ast.parse(setup))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "extra_compile_args"
    ]
    assert [[flag for flag in flags if flag != "-g0"] for flags in found] == [tools.FLAGS]


def test_rare_long_times_are_cropped():
    """Interruptions of milliseconds hide the difference from the plain t."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(1000, 10, 5000), rng.normal(1010, 10, 5000)
    first[::100] += 1e6
    assert abs(timing.welch(first, second)) < timing.SURE
    assert timing.largest_t(first, second) < -timing.SURE
