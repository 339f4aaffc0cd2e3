from __future__ import annotations

import itertools
import json
import re
import sys
from dataclasses import replace

import pytest

from benches.papers import experiments, under_encryption
from benches.papers.encrypted_items import PlainItems
from benches.papers.experiments import main
from benches.papers.under_encryption import (
    BASU,
    Cost,
    fedmf_under_encryption,
    items_under_encryption,
    measure_phe,
)
from effort import needs_data
from fedmf import FedMF, PlainSum, Trainer
from fedmf.data import load
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.data.subset import most_rated
from paillier_keys import keypair
from secagg.bench import peers
from secagg.bench.cases import Case, Figure, Load, Row
from secagg.paillier import generate_keypair

SPLIT = random_split(most_rated(simulate(20, 30, 300, seed=2), 6, 5), seed=0)


PHE = Row(
    system=peers.FLOATS, case=Case(5, 12), setting="512 bits", clients_run=2,
    client=Load(Figure(6.0, 3, 12), None), server=Load(Figure(2.5, 15, 60), None),
    holder=Load(Figure(1.5, 3, 12), None), bytes_up=Figure(396, 3, 12), bytes_down=Figure(0),
    error=1e-15,
)  # fmt: skip


@pytest.fixture
def sampled(monkeypatch):
    """Take the time of phe from a sample of three floats, and that of no process."""
    monkeypatch.setattr(under_encryption.keyed, "measure", lambda *what: PHE)


def ticking(monkeypatch):
    """Let whatever a role does once take it a second."""
    ticks = itertools.count()
    monkeypatch.setattr("fedmf.aggregate.aggregation.perf_counter", lambda: float(next(ticks)))


def test_fedmf_encrypted_equals_plain_and_reports_costs(monkeypatch, sampled):
    """Fedmf is the same under encryption and priced beside phe."""
    ticking(monkeypatch)
    found = fedmf_under_encryption(SPLIT, keypair(), model=FedMF(k=2), rounds=3, seed=4)
    run = Trainer(FedMF(k=2), PlainSum(), rounds=3, seed=4).fit(SPLIT.train, SPLIT.test)
    assert found.rmse_plain == found.rmse_encrypted == run.history_.last.test_rmse
    assert found.difference == 0
    assert found.same_integers
    assert (found.users, found.items, found.factors, found.rounds) == (5, 6, 2, 3)
    assert found.bits == 512
    clear, encrypted, phe = found.costs
    assert (clear.scaled, encrypted.scaled, phe.scaled) == (False, False, True)
    assert clear.key_holder == 0
    assert (encrypted.user, encrypted.key_holder) == (1, 1)
    assert found.phe is PHE
    assert (phe.user, phe.server, phe.key_holder) == (24.0, 10.0, 6.0)
    assert phe.everybody == 5 * 24.0 + 10.0 + 6.0
    assert phe.bytes_up == 12 * 132
    without = fedmf_under_encryption(SPLIT, keypair(), rounds=1, with_phe=False)
    assert len(without.costs) == 2
    assert without.phe is None


def test_costs_of_iterations_exclude_the_rater_count(monkeypatch):
    """An iteration's costs are averaged over those that do not count raters."""
    taken = []

    class Watched(Trainer):
        def fit(self, train, test):
            super().fit(train, test)
            records = [
                replace(r, client_seconds=r.round * 50.0, server_seconds=r.round * 1.0,
                        key_holder_seconds=r.round * 0.5, bytes_up=r.round * 8.0)
                for r in self.history_
            ]  # fmt: skip
            self.history_ = type(self.history_)(tuple(records))
            taken.append(self.history_)
            return self

    monkeypatch.setattr(under_encryption, "Trainer", Watched)
    found = fedmf_under_encryption(SPLIT, keypair(), rounds=3, with_phe=False)
    assert [r.count_digest is None for r in taken[0]] == [False, True, True]
    assert found.costs[1] == Cost(
        how="PaillierSum, 512 bits", user=25.0, server=2.5, key_holder=1.25,
        everybody=128.75, bytes_up=20.0,
    )  # fmt: skip
    only = fedmf_under_encryption(SPLIT, keypair(), rounds=1, with_phe=False)
    assert only.costs[0].user == 10.0


@pytest.mark.parametrize("broken", [False, True])
def test_comparison_of_different_integers_reports_it(broken, monkeypatch):
    if broken:
        monkeypatch.setattr(under_encryption, "PlainSum", lambda: PlainSum(fractional_bits=12))
    found = fedmf_under_encryption(SPLIT, keypair(), rounds=2, with_phe=False)
    assert found.same_integers is not broken
    assert ("the integers are DIFFERENT" in found.table()) is broken


def test_items_encrypted_equal_the_plain_matrix(monkeypatch):
    found = items_under_encryption(SPLIT, keypair(), rounds=5, refresh_every=2)
    assert found.same_integers
    assert found.difference == 0
    assert found.refreshes == 2
    assert (found.factors, found.rounds, found.bits) == (BASU.k, 5, 512)
    (cost,) = found.costs
    assert cost.everybody == pytest.approx(5 * cost.user + cost.server)
    assert cost.key_holder == 0
    subtract = PlainItems.subtract
    monkeypatch.setattr(PlainItems, "subtract", lambda self, g: subtract(self, list(g)[1:]))
    assert not items_under_encryption(SPLIT, keypair(), rounds=1).same_integers


def test_phe_is_measured_like_secagg_bench():
    """Two users are measured as three."""
    found = measure_phe(2, 4, 512)
    assert (found.system, found.case) == (peers.FLOATS, Case(3, 4))
    assert (found.measured, found.error) == (True, 0.0)


@pytest.mark.slow
@needs_data
def test_fedmf_at_3072_bits_has_the_same_rmse():
    """The corner of ml latest small reaches the same rmse at 3072 bits."""
    split = random_split(most_rated(load("ml-latest-small")), seed=0)
    found = fedmf_under_encryption(split, generate_keypair(), with_phe=False)
    print(found.table())
    assert (found.users, found.items, found.bits) == (50, 40, 3072)
    assert found.difference <= 1e-9
    assert found.same_integers
    assert found.rmse_encrypted < 0.75


def test_interrupt_ends_the_whole_comparison(monkeypatch):
    """And not only the training in the clear, which would keep what it has."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(PlainSum, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fedmf_under_encryption(SPLIT, keypair(), rounds=2, with_phe=False)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["experiments", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


SMALL = ("--data", "simulated", "--items", "4", "--users", "3")


@pytest.fixture
def small_key(monkeypatch):
    """Let keys of any length be small ones; the lengths that were asked for."""
    asked = []

    def make(bits):
        asked.append(bits)
        return keypair()

    monkeypatch.setattr(experiments, "generate_keypair", make)
    return asked


def test_command_prints_table_or_json(monkeypatch, capsys, small_key, sampled):
    run(monkeypatch, "fedmf", *SMALL, "--rounds", "1", "--no-phe", "--json", "--bits", "2048")
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["users"], found["items"], found["rounds"]) == (3, 4, 1)
    assert found["same_integers"]
    assert len(found["costs"]) == 2
    assert shown.err == ""
    run(monkeypatch, "fedmf", *SMALL, "--rounds", "1")
    shown = capsys.readouterr()
    assert re.search("phe, a ciphertext per float +~", shown.out)
    assert "training under encryption" in shown.err
    run(monkeypatch, "basu", *SMALL, "--rounds", "2", "--refresh-every", "1")
    shown = capsys.readouterr().out
    assert "2 iterations, encrypted again 1×" in shown
    assert "the integers are the same" in shown
    assert small_key == [2048, 3072, 3072]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fedmf", "--refresh-every", "3"), "--refresh-every"),
        (("basu", *SMALL, "--rounds", "0"), "fedmf: --rounds"),
        (("basu", *SMALL, "--refresh-every", "0"), "fedmf: --rounds"),
        (("basu", "--data", "ml-100"), "fedmf: data set 'ml-100'"),
    ],
)
def test_command_with_bad_arguments_exits_with_2(
    arguments, message, monkeypatch, capsys, small_key
):
    assert run(monkeypatch, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
