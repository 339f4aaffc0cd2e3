"""Files of deploy/: systemd accepts the units, Prometheus the rules, and the options exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from secagg import Registry
from secagg.cli import app
from secagg.collect.metrics import Metrics
from secagg.collect.overview import Overview
from secagg.collect.schema import MIGRATIONS
from secagg.http.application import Members
from secagg.http.bodies import Limits
from secagg.http.operator import Operator
from secagg.session import Session
from secagg.testing import make_identity

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
COMMAND = "/opt/secagg/bin/secagg"
DAY = 86400


def said(*command: object) -> str:
    """Return all that a command prints; fail if the command fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tool(name: str) -> str:
    """Return the path of a program, or skip the test."""
    return shutil.which(name) or pytest.skip(f"no {name} on this machine")


def test_systemd_has_no_complaint_about_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        # the command must exist, and its user
        text = unit.read_text().replace(COMMAND, "/bin/true")
        (tmp_path / unit.name).write_text(text)
    program = tool("systemd-analyze")
    assert len(UNITS) == 4
    # a misspelt key is a line on stderr, with exit status 0
    assert said(program, "verify", *tmp_path.glob("*.service")) == ""


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_options_of_the_units_exist(unit: Path) -> None:
    text = unit.read_text().replace("\\\n", "")
    (line,) = re.findall(f"^ExecStart={COMMAND} (.*)$", text, re.MULTILINE)
    found: Any = get_command(app)
    words = shlex.split(line)
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    found.make_context(unit.stem, words)


def metrics() -> set[str]:
    """Return the names of all metrics of a server with a certificate, and of a collector."""
    registry = Registry({u: make_identity(u).public for u in range(3)})
    session = Session(registry)
    page = Operator(session, Members(session, registry, Limits()))
    page.show_certificate(0.0)
    batches = Overview(0.0, {}, 0)
    text = page._metrics.text() + Metrics(lambda: 0).text(batches)
    return set(re.findall(r"^# TYPE (\w+) ", text.decode(), re.MULTILINE))


PAGES = ["deploy/alerts.yml", "docs/operation.md", "docs/how-to/collection-operation.md"]


@pytest.mark.parametrize("path", PAGES)
def test_named_metrics_exist(path: str) -> None:
    text = (DEPLOY.parent / path).read_text()
    tables = set(re.findall(r"CREATE TABLE (\w+)", str(MIGRATIONS))) | {"secagg_schema"}
    named = set(re.findall(r"\bsecagg_\w+", text)) - tables
    assert len(named) > 4
    assert named <= metrics()


def test_prometheus_reads_the_configuration() -> None:
    if program := shutil.which("promtool"):
        said(program, "check", "config", DEPLOY / "prometheus.yml")
        return
    yaml = pytest.importorskip("yaml")
    texts = ((DEPLOY / f"{name}.yml").read_text() for name in ("prometheus", "alerts"))
    config, alerts = map(yaml.safe_load, texts)
    assert config["rule_files"] == ["alerts.yml"]
    (group,) = alerts["groups"]
    assert all({"alert", "expr", "annotations"} <= rule.keys() for rule in group["rules"])


READY = 'secagg_collect_ready{job="secagg-collect"}'
CLOSING = 'secagg_collect_oldest_seconds{state="closing"}'
REPORTS = 'secagg_collect_answers_total{request="report", answer="ok"}'
FAILED = 'secagg_attempts_total{outcome="TooFewSurvivors"}'
FINISHED = 'secagg_attempts_total{outcome="finished"}'
PRESENT = 'secagg_member_present{member="bern"}'
CERTIFICATE = "secagg_certificate_seconds_left"
CASES = {
    # a counter is born with its first event; the samples are a minute apart
    "first failure": (FAILED, "_x90 1x60", "SecaggAttemptFailed", "100m", True),
    "second failure": (FAILED, "1x90 2x60", "SecaggAttemptFailed", "100m", True),
    "old failure": (FAILED, "1x200", "SecaggAttemptFailed", "190m", False),
    "finished": (FINISHED, "_x90 1x60", "SecaggAttemptFailed", "100m", False),
    "away": (PRESENT, "1x10 0x3000", "SecaggMemberAway", "50h", True),
    "back": (PRESENT, "0x2000 1x100", "SecaggMemberAway", "34h", False),
    "no database": (READY, "0x10", "SecaggCollectNotReady", "9m", True),
    "database": (READY, "1x10", "SecaggCollectNotReady", "9m", False),
    "long closing": (CLOSING, "0+60x90", "SecaggCollectBatchStays", "80m", True),
    "short closing": (CLOSING, "0+60x90", "SecaggCollectBatchStays", "50m", False),
    "no reports": (REPORTS, "5x200", "SecaggCollectNoReports", "190m", True),
    "reports": (REPORTS, "5x60 6x30 7x30 8x90", "SecaggCollectNoReports", "190m", False),
    "last days": (CERTIFICATE, f"{20 * DAY}x10", "SecaggCertificateEnds", "5m", True),
    "earlier days": (CERTIFICATE, f"{22 * DAY}x10", "SecaggCertificateEnds", "5m", False),
}


def test_alerts_fire(tmp_path: Path) -> None:
    program = tool("promtool")
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)
    firing = 'alertstate="firing"'
    cases = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [{"series": series, "values": values}],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{{firing},alertname="{alert}"}}) or vector(0)',
                    "eval_time": at,
                    "exp_samples": [{"value": int(fires)}],
                }
            ],
        }
        for name, (series, values, alert, at, fires) in CASES.items()
    ]
    # JSON is YAML
    document = {"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "test.yml").write_text(json.dumps(document))
    said(program, "test", "rules", tmp_path / "test.yml")


@pytest.mark.large
def test_trial_of_the_page_ends_with_its_lines(tmp_path: Path) -> None:
    page = (DEPLOY.parent / "docs" / "operation.md").read_text()
    ((script, lines),) = re.findall(r"```bash\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL)
    tool("openssl")
    with ExitStack() as stack:
        free = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3))
        server, *helpers = (str(one.getsockname()[1]) for one in free)
    script = script.replace("--deadline 30", f"--deadline 5 --operator-port 0 --port {server}")
    assert script.count("sleep 5\n") == 1
    # the helpers are awaited, not five seconds
    listens = ": 2>/dev/null </dev/tcp/127.0.0.1"
    both = f"{listens}/9001 && {listens}/9002"
    there = f"for _ in {{1..300}}; do {both} && break; sleep 0.1; done\n"
    script = script.replace("sleep 5\n", there)
    for old, new in zip(("8443", "9001", "9002"), (server, *helpers), strict=True):
        script = script.replace(old, new)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-c", script]
    done = subprocess.run(  # noqa: S603
        command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    ended = re.sub(r"^\d{4}-\d\d:", "2026-10:", done.stdout, flags=re.MULTILINE)
    assert lines in ended, done.stdout + done.stderr
    (found,) = (tmp_path / "sums").glob("*.csv")
    header, values = found.read_text().splitlines()
    assert header == "visits,falls,deaths"
    # the noise of each helper has a standard deviation of 5
    exact = (480, 28, 8)
    assert all(abs(int(x) - y) < 70 for x, y in zip(values.split(","), exact, strict=True))
