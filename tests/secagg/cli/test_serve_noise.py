"""`serve --epsilon`, `join --budget`, `report --budget`: options, records, real processes."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_processes import address, invoke, process
from secagg import BudgetSpent, FixedPoint, Noise, Registry, http
from secagg._printable import at_least
from secagg.cli import planned_noise
from secagg.cli.books import Book
from secagg.cli.files import create_identity, write_keys
from secagg.cli.privacy import told
from secagg.cli.sums import Sums
from secagg.cli.vectors import Vectors, number_of
from secagg.http.reporting import Offer
from secagg.oneshot import OneShotParams
from secagg.privacy import Budget, PrivacyLedger, against, plan
from secagg.session import LocalLink, Session, take_part
from secagg.session.completed import Completed
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

NAMES = ("bern", "cork", "delft", "essen", "faro")
N, LENGTH = len(NAMES), 3
PLAN = plan(N, LENGTH, norm=1, epsilon=2, delta=1e-6, rounds=2, min_survivors=4, colluders=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with a registry, identities, and a vector of each client."""
    monkeypatch.chdir(tmp_path)
    keys = {name: create_identity(tmp_path / f"{name}.pem").public for name in NAMES}
    write_keys(tmp_path / "r.json", keys)
    np.save(tmp_path / "v.npy", np.full(LENGTH, 0.1))
    return tmp_path


def serve(*more: object) -> tuple[object, ...]:
    ports = ("--port", 0, "--operator-port", 0)
    return ("serve", "r.json", "--length", LENGTH, "--out", "sums", *ports, *more)


EPSILON = ("--epsilon", 2, "--rounds", 2)
WRONG = {
    "no clip": ([], "--clip"),
    "norm alone": (["--clip", 8, "--norm", 1], "--epsilon"),
    "survivors alone": (["--clip", 8, "--min-survivors", 4], "--epsilon"),
    "clip, too": ([*EPSILON, "--clip", 8], "--clip"),
    "integers": ([*EPSILON, "--integers"], "--integers"),
    "no number": (["--epsilon", 2, "--every", "day", "--folder", "state"], "--rounds"),
    "helpers": ([*EPSILON, "--helpers", "h.json", "--identity", "bern.pem"], "--noise"),
    "colluders": ([*EPSILON, "--colluders", 4], "colluders"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_noise_ends_a_server_before_it_listens(name, folder):
    more, shown = WRONG[name]
    (folder / "h.json").write_text(
        json.dumps(
            [{"url": "https://h", "suite": "x25519", "hpke": "00" * 32, "ed25519": "00" * 32}]
        )
    )
    ran = invoke(*serve(*more))
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert shown in ran.stderr
    assert not (folder / "sums").exists()


def test_record_has_what_all_sums_have_spent(folder):
    """Members with ledgers, and a third sum that neither side has a budget for."""
    registry = Registry({name: make_identity(i).public for i, name in enumerate(NAMES)})
    shape = (PLAN.encoding, PLAN.modulus_bits, None, "semi-honest", 0.2, 0.1)
    sums = Sums(registry, LENGTH, *shape, name="s", run=b"", plan=PLAN)
    book = Book(folder, sums, None)

    async def run() -> None:
        async with Session(registry, deadlines=60, name="s", budget=PLAN.budget) as session:
            session.watch(book.note)
            for name in NAMES:
                ledger = PrivacyLedger(None, PLAN.budget)
                link = LocalLink(session, name)
                task = take_part(link, name, lambda m, p: np.zeros(LENGTH), spending=ledger)
                members.append(asyncio.create_task(task))
            for number in range(2):
                begun = book.begin()
                book.keep(number, begun, await sums.next(session, number, None))
            begun = book.begin()
            with pytest.raises(BudgetSpent) as error:
                await sums.next(session, 2, None)
            book.keep_failure(2, begun, error.value)
        assert [await one for one in members] == [2] * N

    members: list[asyncio.Task[Completed]] = []
    asyncio.run(run())
    first, second, failed = json.loads(invoke("verify", folder, "--json").stdout)["records"]
    spent = [one["spent"]["epsilon"] for one in (first, second)]
    assert 0 < spent[0] < spent[1] <= first["spent"]["budget"] == 2
    assert (first["noise"], failed["outcome"]) == (float(PLAN.sigma), "failed")
    assert first["parameters"]["min_survivors"] == 4
    whom = "a server that follows the protocol, with up to 1 client"
    shown = f"  ε = {spent[1]:.3g} of 2 spent against the server, δ = 1e-06\n  against {whom}\n"
    assert shown in invoke("verify", folder).stdout
    assert first["parameters"]["against"] == whom


def test_server_says_what_holds_against_whom(capsys):
    shown = planned_noise.announced(PLAN, PLAN.params())
    noise, known, _ = capsys.readouterr().err.splitlines()
    assert "ε = 2, δ = 1e-06 for 2 sums together, against zeros; " in noise
    assert noise.endswith(
        f"ε = {at_least(PLAN.epsilon_replaced)} against any other vectors of a client"
    )
    assert known == "against: a server that follows the protocol, with up to 1 client"
    assert shown["privacy"]["min_survivors"] == 4
    assert planned_noise.announced(None, PLAN.params()) == {}
    with temporary_journals(3) as journals:
        keys = [one.public for one in journals]
    encoding, noise = FixedPoint(1.0), Noise(1e6)
    params = OneShotParams.suggest(N, 9, encoding, helpers=keys, session=b"s", noise=noise)
    assert told(params)["against"] == (whom := against(params))
    shown = capsys.readouterr().err
    assert f"against: {whom}" in shown
    ledger = PrivacyLedger(None, Budget(2, 1e-6))
    ledger.spend(params)
    counted = f"ε = {ledger.spent.epsilon(1e-6):.3g}, δ = 1e-06, against zeros"
    assert f"a client's ledger: {counted}\n" in shown


def test_server_says_that_clients_decline(capsys):
    """Noise for no colluders, where `secagg join` expects a fifth, and a graph of 17 bits."""
    few = replace(PLAN, colluders=0)
    weak = plan(200, LENGTH, norm=1, epsilon=2, delta=0.01)
    k, t = weak.graph(sigma=17)
    for one, graph, last in (
        (few, {}, ["join"]),
        (weak, {"neighbours": k, "threshold": t}, ["clients"]),
        (PLAN, {}, []),
    ):
        planned_noise.announced(one, one.params(**graph))
        shown = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
        assert [name for name in shown if name != "δ"] == [
            "noise", "against", "error of the mean", *last
        ]  # fmt: skip


def test_simulated_sum_has_the_error_of_its_plan():
    noise = ("--epsilon", 2, "--norm", 3, "--rounds", 10)
    ran = invoke("simulate", "--clients", 12, "--length", 1000, *noise, "--json")
    found = json.loads(ran.stdout)
    # ± 2.2 % is the deviation of a mean of 1,000 squares; two clients may have dropped out
    assert 0.85 < found["error"] / found["privacy"]["error"] < 1.25
    assert not found["exact"]


def test_join_has_a_ledger(folder, monkeypatch):
    asked = []

    async def taken(*_, spending, **__):
        asked.append(spending)
        spending.spend(PLAN.params())
        return Completed([0], [])

    monkeypatch.setattr(http, "join", taken)
    client = ("--client", "bern", "--identity", "bern.pem", "--vector", "v.npy")
    budget = ("--budget", 2, "--delta", 1e-5, "--ledger", "l")
    ran = invoke("join", "http://127.0.0.1:9", *client, *budget, "--json")
    assert asked[0].budget == Budget(2, 1e-5)
    assert json.loads(ran.stdout)["spent"]["epsilon"] == asked[0].spent.epsilon(1e-5)
    ran = invoke("join", "http://127.0.0.1:9", *client, *budget)
    assert ran.stdout.splitlines()[-1].endswith("2 masked vectors")
    others = (
        "up to 0.2 of the clients in four exchanges, and against fewer helpers than open a "
    )
    others += "one-shot sum and any clients"
    both = f"holds for both kinds of sums together against {others}"
    assert f"{both}, with a server that follows the protocol" in ran.stderr
    more = ("--registry", "r.json", "--colluders", 3)
    ran = invoke("join", "http://127.0.0.1:9", *client, *budget, *more)
    assert "up to 3 clients in four exchanges, and against fewer helpers" in ran.stderr
    assert "does anything" in ran.stderr
    for few in (("--budget", 2), ("--ledger", "l"), ("--delta", 1e-5)):
        assert invoke("join", "http://127.0.0.1:9", *client, *few).exit_code == 2
    wrong = invoke("join", "http://127.0.0.1:9", *client, "--budget", 0, "--ledger", "l")
    assert wrong.stderr.startswith("secagg: --budget "), wrong.stderr


def test_join_with_a_spent_ledger_says_so_before_and_after(folder, monkeypatch):
    PrivacyLedger("l", PLAN.budget).spend(PLAN.loss)

    async def taken(*_, spending, **__):
        error = BudgetSpent("spent")
        error.completed = (1,), ()
        raise error

    monkeypatch.setattr(http, "join", taken)
    client = ("--client", "bern", "--identity", "bern.pem", "--vector", "v.npy")
    budget = ("--budget", 2, "--ledger", "l")
    ran = invoke("join", "http://127.0.0.1:9", *client, *budget)
    assert ran.exit_code == 2
    assert ran.stdout.startswith("sums: 1\nε = 2 of 2 spent against the server")
    assert "privacy: ε = 2 of 2 spent against the server" in ran.stderr
    ran = invoke("join", "http://127.0.0.1:9", *client, *budget, "--json")
    found = json.loads(ran.stdout)
    assert (found["numbers"], found["spent"]["sums"]) == ([1], 1)


def test_report_has_a_ledger(folder, monkeypatch):
    """The options of `join`; the ledger goes to the report, and the command shows it."""
    (folder / "h.json").write_text("[]")
    asked = []
    params = OneShotParams(
        n_clients=5,
        length=LENGTH,
        encoding=FixedPoint(8.0),
        helpers=((b"h" * 32, b"e" * 32), (b"H" * 32, b"E" * 32)),
        threshold=2,
        min_clients=3,
        suite="x25519",
        session=b"s",
        noise=Noise(1 << 22),
    )

    async def offered(*_, **__):
        return Offer(params, (), b"")

    async def sent(*_, spending, **__):
        asked.append(spending)
        if spending is not None:
            spending.spend(params)

    monkeypatch.setattr(http, "get_offer", offered)
    monkeypatch.setattr(http, "send_report", sent)
    files = ("--vector", "v.npy", "--clip", 8, "--helpers", "h.json")
    client = ("report", "http://127.0.0.1:9", "--client", "bern", *files)
    budget = ("--budget", 1.3, "--delta", 1e-5, "--ledger", "l")
    ran = invoke(*client, *budget, "--json")
    assert asked[0].budget == Budget(1.3, 1e-5)
    found = json.loads(ran.stdout)
    assert found["parameters"] == params.digest.hex()
    assert found["spent"]["sums"] == 1
    assert found["spent"]["epsilon"] == asked[0].spent.epsilon(1e-5)
    few = "fewer helpers than open a one-shot sum and any clients"
    assert f"budget: holds against {few}, with a server" in ran.stderr
    assert "follows the protocol; with --identity, " in ran.stderr
    ran = invoke(*client, *budget, "--identity", "bern.pem")
    spent = "of 1.3 spent against the server, δ = 1e-05, for each client, by 2 masked vectors"
    assert ran.stdout.splitlines()[-1].endswith(spent)
    assert "does anything" in ran.stderr
    ran = invoke(*client, *budget)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "2 masked vectors" in ran.stderr
    assert "too much after 2 sums" in ran.stderr
    for few in (("--budget", 2), ("--ledger", "l"), ("--delta", 1e-5)):
        assert invoke(*client, *few).exit_code == 2
    assert len(asked) == 3
    assert json.loads(invoke(*client, "--json").stdout) == {"parameters": params.digest.hex()}
    assert asked[3] is None


@pytest.mark.parametrize(("norm", "lines"), [(0.5, 0), (1, 0), (1.01, 1)])
def test_client_alone_hears_that_its_vector_is_scaled(tmp_path, norm, lines):
    np.save(tmp_path / "w.npy", norm * np.array([0.6, 0, 0.8]))
    told: list[str] = []
    Vectors([tmp_path / "w.npy"], tell=told.append)(number_of(0), PLAN.params())
    assert len(told) == lines


@pytest.mark.large
def test_noised_sums_by_commands_until_the_budget_ends(folder):
    """A client with half the server's budget ends after the first of two sums."""
    options = (*EPSILON, "--min-survivors", 4, "--security", "active", "--json")
    with process(*serve(*options, "--deadline", 60)) as server:
        url = address(server, "members")
        members = []
        for u, name in enumerate(NAMES):
            vectors = ("--vector", "v.npy", "--vector", "v.npy", "--registry", "r.json")
            budget = ("--budget", 2 if u else 1.5, "--ledger", f"{name}.ledger")
            client = ("join", url, "--client", name, "--identity", f"{name}.pem")
            members.append(process(*client, *vectors, *budget))
        running = [one.__enter__() for one in members]
        ended = [one.communicate() for one in running]
        out, error = server.communicate()
        for one in members:
            one.__exit__(None, None, None)
    assert server.returncode == 3, error
    assert [one.returncode for one in running] == [2, 0, 0, 0, 0], ended
    assert "budget" in ended[0][1]
    assert ended[0][0].startswith("sums: 1, in sums 0 of 2\nε = "), ended
    assert all("ε = 2 of 2 spent" in out for out, _ in ended[1:]), ended
    first, second = json.loads(out)["sums"]
    assert second["missing"][0] == {
        "client": "bern",
        "why": "declined",
        "phase": "advertise_keys",
        "check": "",
    }
    assert first["spent"]["epsilon"] < second["spent"]["epsilon"] <= 2
    total = np.load("sums/sum-0.npy")
    assert 0 < np.abs(total - 0.5).max() < 100
    # another process of the client finds the ledger
    with pytest.raises(BudgetSpent):
        PrivacyLedger("bern.ledger", Budget(1.5, 1e-6)).spend(PLAN.params())


@pytest.mark.large
def test_commands_of_a_plan_for_few_colluders(folder):
    """The options are used as they are printed, and a client that expects more declines."""
    asked = ("--clients", N, "--corrupt", 0, "--epsilon", 2, "--length", LENGTH)
    text = " ".join(invoke("params", *asked).stdout.split())
    served, joined = re.search(r"secagg serve … (.*) join secagg join … (.*?);", text).groups()
    more = ("--json", "--deadline", 60, *served.split())
    with ExitStack() as stack:
        server = stack.enter_context(process(*serve(*more)))
        url, running = address(server, "members"), []
        for u, name in enumerate(NAMES):
            client = ("--client", name, "--identity", f"{name}.pem", "--vector", "v.npy")
            expected = joined.split() if u else ("--colluders", 1)
            running.append(stack.enter_context(process("join", url, *client, *expected)))
        ended = [one.communicate() for one in running]
        out, error = server.communicate()
    assert server.returncode == 3, error
    assert [one.returncode for one in running] == [2, 0, 0, 0, 0], ended
    assert "--colluders" in ended[0][1], ended
    (found,) = json.loads(out)["sums"]
    assert [one["client"] for one in found["missing"]] == ["bern"]
    assert found["missing"][0]["why"] == "declined"
    assert found["clients"] == list(NAMES[1:])
