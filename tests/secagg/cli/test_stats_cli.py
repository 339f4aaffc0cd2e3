"""Studies on the command line: plans, dry runs, results, and sites as processes over HTTP."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import socket
import stat
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_processes import address, invoke, process, until
from secagg import ClientPolicy, RemoteProtocolError, http
from secagg.cli import sums
from secagg.cli.files import create_identity, read_keys, write_keys
from secagg.cli.studies import LEAST
from secagg.privacy import Budget, PrivacyLedger
from secagg.session import Completed
from secagg.statistics import (
    Category,
    Counts,
    Ledger,
    Logistic,
    Moments,
    Number,
    Plan,
    Privacy,
    Site,
    SitePolicy,
    Study,
    collect,
    simulate,
)
from secagg.statistics.sessions import round_params
from study_sites import join, register

PLAN = Plan(
    "Łódź → health",
    {"age": Number(18, 100), "sex": Category(("f", "m")), "event": Category((0, 1))},
    (Moments("age", by="sex"), Counts(("sex", "event")), Logistic("event", ("age", "sex"))),
)
SITES = tuple(f"site-{i}" for i in range(5))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with a plan and the tables of five sites."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN.to_toml(), "utf-8")
    (tmp_path / "plan.json").write_text(PLAN.to_json(), "utf-8-sig")
    random = np.random.default_rng(7)
    for name in SITES:
        age = random.integers(10, 95, 60)
        event = random.random(60) < 1 / (1 + np.exp((55 - age) / 15))
        rows = [
            ("age", "sex", "event"),
            *zip(age, random.choice([*"fmx"], 60), 1 * event, strict=True),
        ]
        with open(f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows(rows)
    return tmp_path


def result(tables: tuple[str, ...] = SITES) -> dict[str, object]:
    found = simulate(PLAN, [Path(f"{name}.csv") for name in tables], way="plain")
    return json.loads(found.to_json())


def study() -> Study:
    """Return the study of all sites after the last step."""
    sites = [Site(f"{name}.csv", PLAN) for name in SITES]

    class Summed:
        def __init__(self, message: bytes) -> None:
            self.integers = np.sum([site(message) for site in sites], axis=0)
            self.survivors = tuple(range(len(sites)))

    async def ask(study: Study, _: object) -> Summed:
        return Summed(study.message())

    return asyncio.run(collect(PLAN, ask))


def rejected(*arguments: object, message: str = "") -> None:
    """Check that a command ends with one line, before it sends or writes anything."""
    ran = invoke("stats", *arguments)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert message in ran.stderr, ran.stderr


def test_plan_is_converted_and_explained(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    described = json.loads(invoke("stats", "plan", "plan.json", "--json").stdout)
    assert described["digest"] == PLAN.digest.hex()
    assert described["words"] == str(PLAN)
    for form, read in (("toml", Plan.from_toml), ("json", Plan.from_json)):
        ran = invoke("stats", "plan", f"plan.{form}", "--to", form, charset="cp1252")
        assert read(ran.stdout_bytes.decode()) == PLAN
    words = invoke("stats", "plan", "plan.toml", charset="cp1252").stdout.splitlines()
    assert words.pop() == PLAN.digest.hex()
    assert "Study 'Lódz -> health'" in words[0]
    assert max(map(len, words)) <= 60


PLANS = {
    "syntax": ("p.toml", b"name = ", "p.toml: "),
    "lines": ("p.json", b"{", "p.json: "),
    "fields": ("p.toml", b"name = 'x'", "statistics"),
    "extreme": (
        "p.toml",
        b"name='x'\n[columns.a]\nlow=0\nhigh=1\n[[statistics]]\nkind='min'",
        "single person",
    ),
    "bytes": ("p.toml", b"name = '\xff'", "UTF-8"),
    "folder": (".", None, "cannot read"),
    "absent": ("absent.toml", None, "does not exist"),
    "device": ("/dev/zero", None, "device"),
}


@pytest.mark.parametrize(("name", "content", "message"), PLANS.values(), ids=list(PLANS))
def test_damaged_plan_is_one_line(folder, name, content, message):
    if content is not None:
        (folder / name).write_bytes(content)
    rejected("plan", name, message=message)


def test_formats_of_a_plan_are_two(folder):
    rejected("plan", "plan.toml", "--to", "xml", message="--to")
    rejected("plan", "plan.toml", "--to", "json", "--json", message="--to")


def test_check_prints_what_would_leave_and_writes_nothing(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    arguments = ("stats", "check", "plan.toml", "site-0.csv", "--ledger", "l")
    found = json.loads(invoke(*arguments, "--json").stdout)
    site = Site("site-0.csv", PLAN)
    assert found["numbers"] == site(Study(PLAN).message()).size
    assert (found["plan"], found["records"]) == (PLAN.digest.hex(), 60)
    below, unknown = int(site.records.below["age"].sum()), site.records.unknown["sex"]
    assert found["columns"]["age"] == {
        "missing": 0, "below": below, "above": 0, "unknown": None,
    }  # fmt: skip
    assert found["columns"]["sex"]["unknown"] == unknown > 0
    assert set(found["sums"]) == {"in every step", *(part.name for part in PLAN.parts)}
    lines = invoke(*arguments, charset="cp1252").stdout.splitlines()
    assert f"{found['numbers']:,} numbers" in "\n".join(lines)
    assert max(map(len, lines)) <= 60
    assert not (folder / "l").exists()


TABLES = {
    "text": ("age,sex,event\n40,f,1\nold,m,0\n", "'age', row 2"),
    "column": ("age,sex\n40,f\n", "event"),
    "fields": ("age,sex,event\n40,f\n", "row 1"),
    "bytes": ("age,sex,event\n\udcff,f,1\n", "t.csv"),
    "absent": (None, "t.csv"),
}


@pytest.mark.parametrize(("content", "message"), TABLES.values(), ids=list(TABLES))
def test_damaged_table_ends_a_site_before_it_connects(folder, content, message):
    if content is not None:
        (folder / "t.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
    create_identity(folder / "a.pem")
    rejected("check", "plan.toml", "t.csv", message=message)
    key = ("--client", "a", "--identity", "a.pem", "--ledger", "ledger")
    # nobody listens there, which would be another error
    rejected("join", "http://127.0.0.1:9", "plan.toml", "t.csv", *key, message=message)
    rejected("simulate", "plan.toml", "site-0.csv", "t.csv", message="t.csv: ")
    assert not (folder / "ledger").exists()


def test_site_rejects_a_plan_by_policy_and_ledger(folder):
    files = ("plan.toml", "site-0.csv")
    for option in ("--min-count", "--min-sites", "--records-per-parameter"):
        rejected("check", *files, option, 100, message=f"smaller {option}")
    Site("site-0.csv", PLAN, ledger=Ledger("ledger"))(Study(PLAN).message())
    other = Plan("other", {"age": Number(18, 99)}, (Moments("age"),))
    (folder / "other.toml").write_text(other.to_toml(), "utf-8")
    rejected("check", "other.toml", files[1], "--ledger", "ledger", message="'age'")
    assert invoke("stats", "check", *files, "--ledger", "ledger").exit_code == 0
    join = ("join", "http://127.0.0.1:9", *files, "--client", "a", "--identity", "a.pem")
    rejected(*join, "--ledger", "absent/ledger", message="--ledger")
    (folder / "damaged").write_text("{}")
    rejected(*join, "--ledger", "damaged", message="damaged")


def test_site_with_a_spent_budget_declines(folder, monkeypatch):
    pytest.importorskip("dp_accounting")
    noise = Privacy(2.0, 1e-6, max_records=100, noises="1.5", colluders=3)
    noised = Study(Plan("noised", {"age": Number(18, 100)}, (Moments("age"),), privacy=noise))
    (folder / "plan.toml").write_text(noised.plan.to_toml(), "utf-8")
    create_identity(folder / "a.pem")
    params = round_params(noised, 12, b"study", security="active")
    budget = Budget(2, 1e-6)
    PrivacyLedger("a.privacy", budget, unit="record").spend(noised.step.loss(params))
    checks, policies = [], []

    async def taken(url, name, train, policy, **_):
        with pytest.raises(RemoteProtocolError) as caught:
            train(noised.message(), params)
        checks.append(caught.value.check)
        policies.append(policy)
        return Completed()

    monkeypatch.setattr(http, "join", taken)
    files = ("plan.toml", "site-0.csv", "--client", "a", "--identity", "a.pem")
    join = ("stats", "join", "http://127.0.0.1:9", *files, "--ledger", "l", "--json")
    ran = invoke(*join, "--budget", 2, "--privacy-ledger", "a.privacy", "--colluders", 1)
    assert (ran.exit_code, checks) == (2, ["budget"]), ran.stderr
    assert policies == [ClientPolicy(colluders=1)]
    assert json.loads(ran.stdout)["spent"]["sums"] == 1
    assert invoke(*join, "--budget", 2).exit_code == 2
    # a ledger of a whole site's losses is another file
    PrivacyLedger("site.privacy", budget)
    ran = invoke(*join, "--budget", 2, "--privacy-ledger", "site.privacy")
    assert (ran.exit_code, len(checks)) == (2, 1)
    assert "site.privacy" in ran.stderr
    # a plan without noise leaves no ledger behind, which would have the other unit
    Path("plain.toml").write_text(replace(noised.plan, privacy=None).to_toml(), "utf-8")
    budgeted = ("--budget", 2, "--privacy-ledger", "new")
    ran = invoke(*join[:3], "plain.toml", *join[4:], *budgeted)
    assert (ran.exit_code, len(checks)) == (2, 1)
    assert not Path("new").exists()


@pytest.mark.parametrize("way", ["plain", "secagg", "one-shot"])
def test_simulation_prints_the_result(folder, way):
    tables = [f"{name}.csv" for name in SITES]
    ran = invoke("stats", "simulate", "plan.toml", *tables, "--way", way, "--json")
    assert json.loads(ran.stdout) == result()
    steps = ran.stderr.splitlines()
    assert steps[0].startswith("step 1: ")
    assert all(line.endswith("5 sites") for line in steps)


def test_simulation_names_wrong_arguments(folder):
    rejected("simulate", "plan.toml", "site-0.csv", "--way", "no", message="--way")
    rejected("simulate", "plan.toml", *["site-0.csv"] * 3, message="site-0.csv")


def test_report_prints_and_writes_a_stored_study(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    (folder / "study.bin").write_bytes(study().message())
    files = ("--html", "pages/r.html", "--csv", "tables")
    ran = invoke("stats", "report", "study.bin", "--earlier", "study.bin", "--json", *files)
    expected = result()
    assert json.loads(ran.stdout) == expected
    assert "<title>Łódź → health</title>" in (folder / "pages" / "r.html").read_text("utf-8")
    written = sorted((folder / "tables").iterdir())
    assert len(written) == len(expected["tables"])
    for path, table in zip(written, expected["tables"].values(), strict=True):
        header, *rows = csv.reader(path.read_text("utf-8").splitlines())
        texts = [["" if x is None else str(x) for x in row] for row in table["rows"]]
        assert (header, rows) == (table["header"], texts)
    shown = invoke("stats", "report", "study.bin", charset="cp1252").stdout
    assert "moments of age by sex" in shown
    assert max(map(len, shown.splitlines())) <= 60


STUDIES = {
    "unfinished": lambda whole: Study(PLAN).then(whole.past[0]).message(),
    "cut": lambda whole: whole.message()[:-1],
    "longer": lambda whole: whole.message() + b"x",
    "other": lambda _: b"\x00" * 100,
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("damage", STUDIES.values(), ids=list(STUDIES))
def test_damaged_study_is_one_line(folder, damage):
    (folder / "study.bin").write_bytes(damage(study()))
    rejected("report", "study.bin")


def test_least_counts_are_those_of_a_policy():
    assert vars(SitePolicy()) == LEAST


def test_server_names_what_it_lacks_before_it_listens(folder):
    register(folder, "a", "b")
    serve = ("serve", "plan.toml", "sites.json", "--out", "out")
    rejected(*serve, message="2 sites")
    register(folder, "c")
    rejected(*serve, "--security", "no", message="--security")
    rejected(*serve, "--helpers", "h.json", message="--identity")
    noised = replace(PLAN, statistics=PLAN.statistics[:2], privacy=Privacy(1, 1e-6, 1000))
    (folder / "noised.toml").write_text(noised.to_toml(), "utf-8")
    rejected("serve", "noised.toml", *serve[2:], message="--helpers")
    (folder / "out").mkdir()
    (folder / "out" / "study.bin").write_bytes(b"")
    rejected(*serve, message="--out")


def test_helper_that_is_away_ends_a_study_before_it_listens(folder, monkeypatch):
    monkeypatch.setattr(sums, "_PATIENCE", 1e-9)
    register(folder, "a", "b", "c", "aggregator")
    entries = []
    for j in range(3):
        made = invoke("helper", "keygen", f"{j}.journal", "--suite", "x25519", "--json")
        entries.append(json.loads(made.stdout) | {"url": f"http://127.0.0.1:{free_port()}"})
    (folder / "h.json").write_text(json.dumps(entries))
    helpers = ("--helpers", "h.json", "--identity", "aggregator.pem")
    ports = ("--port", 0, "--operator-port", 0, "--deadline", 1e-3)
    ran = invoke("stats", "serve", "plan.toml", "sites.json", "--out", "out", *ports, *helpers)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert entries[0]["url"] in ran.stderr.splitlines()[-1]
    assert "members:" not in ran.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.mark.large
@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_study_goes_on_after_kills(folder, security):
    """A site dies in step 2. With semi-honest sums the server dies, too, and a site is late."""
    killed, late = SITES[0], "late"
    (folder / "late.csv").write_bytes((folder / f"{killed}.csv").read_bytes())
    files = ("plan.toml", "sites.json", "--out", "out", "--folder", "state", "--json")
    port, sites = free_port(), {}
    ports = ("--port", port, "--operator-port", 0, "--deadline", 10)
    serve = ("stats", "serve", *files, *ports, "--security", security)
    with_server = security == "semi-honest"
    register(folder, *SITES, *[late] * with_server)
    with ExitStack() as stack:

        def start(*names: str) -> None:
            more = [] if with_server else ["--registry", "sites.json"]
            for name in names:
                given = join(folder, name, f"http://127.0.0.1:{port}", *more)
                sites[name] = stack.enter_context(process(*given))

        start(*SITES)
        server = stack.enter_context(process(*serve))
        until(server, r"step 2: \d+ numbers, 5 sites")
        for one in [server] * with_server + [sites[killed]]:
            one.kill()
            one.wait()
        start(killed, *[late] * with_server)
        if with_server:
            server = stack.enter_context(process(*serve))
        out, error = server.communicate()
        assert server.returncode == 0, error
        ended = {name: (*one.communicate(), one.returncode) for name, one in sites.items()}
    written = (folder / "out" / "result.json").read_text("utf-8")
    assert json.loads(out) == json.loads(written) == result()
    assert invoke(*serve).stdout == out  # from the folder, without sites
    expected, stored = study(), folder / "out" / "study.bin"
    assert stored.read_bytes() == expected.message()
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    if with_server:
        out, error, code = ended.pop(late)
        assert (json.loads(out)["steps"], code) == ([], 2)
        assert "late answered no step" in error
    for name, (out, error, code) in ended.items():
        assert code == 0, error
        answered, last = json.loads(out)["steps"], len(expected.past)
        assert answered == list(range(1, last + 1))[-len(answered) :]
        assert (len(answered) < last) == (name == killed)


@pytest.mark.large
def test_study_of_helpers_and_a_site_with_another_plan(folder):
    register(folder, *SITES, "aggregator")
    keys = read_keys(folder / "sites.json")
    public = keys.pop("aggregator").hex()
    write_keys(folder / "sites.json", keys)
    other = Plan("other", PLAN.columns, PLAN.statistics)
    (folder / "other.toml").write_text(other.to_toml(), "utf-8")
    entries, last = [], SITES[-1]
    with ExitStack() as stack:

        def start(*arguments: object):
            return stack.enter_context(process(*arguments))

        for j in range(3):
            made = invoke("helper", "keygen", f"{j}.journal", "--suite", "x25519", "--json")
            served = start(
                "helper", "serve", f"{j}.journal", "--aggregator", public, "--port", 0
            )
            entries.append(json.loads(made.stdout) | {"url": address(served, "helper")})
        (folder / "h.json").write_text(json.dumps(entries))
        port = free_port()
        url, helpers = f"http://127.0.0.1:{port}", ("--helpers", "h.json")
        commands = {name: join(folder, name, url, *helpers) for name in SITES}
        commands[last] = tuple("other.toml" if x == "plan.toml" else x for x in commands[last])
        sites = {name: start(*command) for name, command in commands.items()}
        ports = ("--port", port, "--operator-port", 0, "--identity", "aggregator.pem")
        server = start(
            "stats", "serve", "plan.toml", "sites.json", "--out", "o", *ports, *helpers
        )
        until(server, rf"step 1: sum of 4 of 5 vectors, missing {last}")
        out, error = server.communicate()
        assert server.returncode == 0, error
        ended = {name: (*one.communicate(), one.returncode) for name, one in sites.items()}
    assert json.loads((folder / "o" / "result.json").read_text("utf-8")) == result(SITES[:-1])
    assert "logistic regression of event" in out
    assert [code for _, _, code in ended.values()] == [0, 0, 0, 0, 2]
    assert "another plan" in ended[last][1].splitlines()[-1]


def test_site_at_a_study_without_it_does_not_succeed(folder):
    """The server of a study that failed: too few sites came."""
    register(folder, *SITES)
    ports = ("--port", 0, "--operator-port", 0, "--deadline", 1e-3)
    ran = invoke("stats", "serve", "plan.toml", "sites.json", "--out", "o", *ports)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1].startswith("secagg: gather")
    assert os.listdir(folder / "o") == []


def test_ctrl_c_ends_a_study(folder):
    register(folder, *SITES)
    ports = ("--port", 0, "--operator-port", 0)
    with process("stats", "serve", "plan.toml", "sites.json", "--out", "o", *ports) as server:
        until(server, "step 1: .*, up to 5 sites")
        server.send_signal(signal.SIGINT)
        out, error = server.communicate()
    assert (server.returncode, out, error) == (130, "", "secagg: interrupted\n")
