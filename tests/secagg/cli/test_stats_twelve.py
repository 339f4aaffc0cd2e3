"""Twelve processes over HTTP: a server and eleven sites, one late and another killed."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

from cli_processes import address, process, until
from secagg.statistics import Category, Counts, Moments, Number, Plan, Quantiles
from study_sites import join, register, status, when

SITES = [f"site-{i}" for i in range(11)]
DEADLINE, LATE = 30, 3
PLAN = Plan(
    "twelve",
    {"age": Number(18, 100), "sex": Category(("f", "m")), "event": Category((0, 1))},
    (Moments("age", by="sex"), Counts(("sex", "event")), Quantiles("age", bins=4)),
)


def tables(folder: Path) -> tuple[np.ndarray[Any, Any], ...]:
    """Write a table of each site, and return the columns of all records."""
    random, n = np.random.default_rng(12), 1000
    age, event = random.integers(18, 101, (2, len(SITES), n))
    sex, event = random.choice([*"fm"], (len(SITES), n)), event % 2
    for name, *columns in zip(SITES, age, sex, event, strict=True):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([("age", "sex", "event"), *zip(*columns, strict=True)])
    return age.ravel(), sex.ravel(), event.ravel()


def waits_for_one(state: dict[str, Any]) -> bool:
    """Return whether a running step has the answers of all sites but a single site."""
    phases = state["attempts"][0]["phases"]
    return state["phase"] is not None and phases[-1]["answered"] == phases[-1]["awaited"] - 1


def stop_in_the_middle(site: subprocess.Popen[str], operator: str) -> None:
    """Stop a site so that a step waits for this site, after the first exchange of the step."""
    while True:
        site.send_signal(signal.SIGSTOP)
        when(operator, waits_for_one)
        if len(status(operator)["attempts"][0]["phases"]) > 1:
            return
        site.send_signal(signal.SIGCONT)
        when(operator, lambda state: not waits_for_one(state))


@pytest.mark.slow
def test_late_and_killed_sites_are_in_the_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN.to_toml(), "utf-8")
    age, sex, event = tables(tmp_path)
    register(tmp_path, *SITES)
    files = ("plan.toml", "sites.json", "--out", "out", "--json")
    ports = ("--port", 0, "--operator-port", 0, "--deadline", DEADLINE)
    first, *others, late = SITES
    with ExitStack() as stack:
        server = stack.enter_context(process("stats", "serve", *files, *ports))
        began = time.monotonic()
        url, operator = address(server, "members"), address(server, "operator")

        def start(name: str) -> subprocess.Popen[str]:
            return stack.enter_context(process(*join(tmp_path, name, url)))

        killed, *sites = map(start, [first, *others])
        wanted = {"present": len(SITES) - 1}
        when(operator, lambda state: wanted.items() <= (state["gathering"] or {}).items())
        here = time.monotonic()
        when(operator, lambda _: time.monotonic() > here + LATE)
        sites.append(start(late))
        until(server, r"step 2: \d+ numbers, 11 sites")
        stop_in_the_middle(killed, operator)
        killed.kill()
        killed.wait()
        sites.append(start(first))
        with suppress(URLError, ConnectionError):
            while True:
                last = status(operator)
        out, error = server.communicate()
        seconds = time.monotonic() - began
        assert server.returncode == 0, error
        ended = [(*site.communicate(), site.returncode) for site in sites]
    assert [code for _, _, code in ended] == [0] * len(SITES), ended
    found = json.loads(out)["tables"]
    for row, group in zip(found["moments of age by sex"]["rows"], "fm", strict=True):
        ages = age[sex == group]
        assert row[:3] == [group, ages.size, len(SITES)]
        assert row[3:5] == pytest.approx([ages.mean(), ages.std(ddof=1)], rel=1e-12)
    assert found["counts of sex and event"]["rows"] == [
        [group, str(e), int(((sex == group) & (event == e)).sum()), len(SITES)]
        for group in "fm"
        for e in (0, 1)
    ]
    for share, _, _, *ends in found["quantiles of age"]["rows"]:
        assert ends == [np.quantile(age, float(share), method="inverted_cdf")] * 2
    print(f"\n{seconds:.1f} s with the start of all processes and {LATE} s of waiting")
    figures(last)


def figures(state: dict[str, Any]) -> None:
    """Print seconds and bytes of the attempts, as the operator's page has them."""
    for one in reversed(state["attempts"]):
        up, down = (
            sum(phase[f"bytes_{way}"] for phase in one["phases"]) for way in ("up", "down")
        )
        seconds = sum(phase["seconds"] or 0 for phase in one["phases"])
        print(
            f"step {one['number'] + 1}, attempt {one['attempt'] + 1}, {one['outcome']}: "
            f"{seconds:.2f} s, {up:,} bytes up, {down:,} bytes down"
        )
