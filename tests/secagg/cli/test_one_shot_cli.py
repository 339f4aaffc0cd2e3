"""One-shot sums on the command line: costs, simulations, and a helper with files."""

from __future__ import annotations

import json
import math
import re
import stat
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

import secagg.cli.one_shot
from oneshot_parties import parties
from secagg import BudgetSpent, FixedPoint, Integers, ParameterError, Registry
from secagg._printable import at_least
from secagg.cli import app
from secagg.cli.privacy import in_words, privacy_of
from secagg.oneshot import (
    Accumulator,
    HelperJournal,
    Noise,
    OneShotParams,
    OneShotPolicy,
    report,
)
from secagg.privacy import Budget, Loss, against, epsilon
from secagg.testing import make_identity
from secagg.testing.oneshot import helper_keys

SMALL = ("one-shot", "simulate", "--clients", "12", "--length", "50", "--suite", "x25519")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def document(*arguments: str) -> dict[str, object]:
    ran = invoke(*arguments, "--json")
    assert ran.exit_code == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    "options",
    [
        ("--security", "active"),
        ("--security", "active", "--helpers", "5", "--threshold", "3"),
        ("--helpers", "2"),
        ("--helpers", "4", "--threshold", "4", "--modulus-bits", "40"),
        ("--noise", "5e9", "--clip", "0.5"),
    ],
)
def test_params_prints_the_bytes_that_a_simulation_counts(options: tuple[str, ...]) -> None:
    found = document(*SMALL, "--dropout", "0", *options)
    told = document("one-shot", "params", *SMALL[2:], *options)
    assert found["exact"] == ("--noise" not in options)
    assert {name: found[name] for name in told} == told


def test_simulate_leaves_out_the_clients_that_never_report() -> None:
    found = document(*SMALL, "--dropout", "0.25", "--seed", "3")
    assert found["survivors"] == 9
    for name in ("client_seconds", "server_seconds", "helper_seconds", "peak_memory"):
        assert found[name] > 0  # type: ignore[operator]
    shown = " ".join(invoke(*SMALL, "--dropout", "0.25").stdout.split())
    assert "helpers 2 of 3 open, 1 may be missing" in shown
    assert "sum exact, of 9 of 12 vectors" in shown
    assert re.search(r"a helper's time [\d.]+ m?s", shown)


def test_noise_is_printed_with_its_privacy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Δ² = d (2M)²: 50 elements up to ±2^16 steps."""
    pytest.importorskip("dp_accounting")
    options = (*SMALL, "--clip", "1", "--noise", "1000000.1")
    found = document(*options)
    sigma = Fraction(256_000_026, 256)  # rounded up
    shape = {"n_clients": 12, "length": 50, "encoding": FixedPoint(1.0), "threshold": 2}
    shape |= {"min_clients": 9, "suite": "x25519", "session": b"secagg"}
    shape |= {"security": "semi-honest"}
    params = OneShotParams(helpers=helper_keys(3), noise=Noise(sigma), **shape)
    assert (found["noise"], found["exact"]) == (float(sigma), False)
    bound = math.sqrt(50) * 2**17
    assert found["epsilon"] == epsilon(params, found["delta"], sensitivity=bound)
    # 3 seeds, and steps of 2^-16
    assert found["error"] == pytest.approx(float(sigma) * math.sqrt(3) / 2**16)
    assert found["epsilon_ledger"] == Loss.of(params).epsilon(found["delta_ledger"])
    shown = " ".join(invoke(*options).stdout.split())
    assert f"error of the sum {found['error']:.3g} an element" in shown
    assert f"a client's ledger ε = {at_least(found['epsilon_ledger'])}, δ = 1e-06" in shown
    assert "sum noisy, of 11 of 12 vectors" in shown
    assert f"ε = {at_least(found['epsilon'])}, δ = 1e-09" in shown
    assert found["against"] == (whom := against(params))
    assert f"against {whom}" in shown
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    assert document(*options)["epsilon"] is document(*options)["epsilon_ledger"] is None
    assert "ε needs the extra privacy" in invoke(*options).stdout


@pytest.mark.parametrize("coarse", [False, True])
def test_noise_that_a_ledger_refuses_is_told(coarse: bool) -> None:
    """Also where the loss is small, and the noise has too few steps for a budget."""
    pytest.importorskip("dp_accounting")
    encoding, noise = (Integers(1), Noise(30)) if coarse else (FixedPoint(1.0, 16), Noise(10))
    with parties(n_clients=12, encoding=encoding, modulus=2**40, noise=noise) as made:
        found = privacy_of(made.params)
        with pytest.raises(BudgetSpent):
            Budget(1.0, 1e-6).check(Loss(), 0, Loss.of(made.params))
    assert found["epsilon_ledger"] is None
    shown = in_words(found, made.params.seeds)["a client's ledger"]
    assert shown.startswith("refused, for too little noise or too few steps")


@pytest.mark.parametrize(
    ("more", "message"), [(0, "not exact"), (2**40, "beyond its noise")], ids=["exact", "noisy"]
)
def test_wrong_one_shot_sum_is_an_error(monkeypatch, more, message):
    real = secagg.cli.one_shot.simulate_one_shot

    def wrong(*arguments: object, **options: object) -> object:
        result = real(*arguments, **options)  # type: ignore[arg-type]
        result.integers[7] += 1 + more
        return result

    monkeypatch.setattr(secagg.cli.one_shot, "simulate_one_shot", wrong)
    ran = invoke(*SMALL, *(("--noise", "1000") if more else ()))
    assert ran.exit_code == 2
    assert message in ran.stderr


ERRORS = {
    "--noise 0": "--noise must",
    "--noise 1e9 --modulus-bits 32": "take --modulus-bits 36",
    "--security semi-malicious": "--security must be semi-honest or active",
    "--dropout 0.9": "no sum is safe",
}


@pytest.mark.parametrize(("options", "message"), ERRORS.items())
def test_errors_are_one_line(options: str, message: str) -> None:
    assert_error(invoke(*SMALL, *options.split()), message)


def assert_error(ran: Result, message: str = "") -> None:
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("secagg: ")
    assert message in ran.stderr


class Files:
    """Session of three helpers whose messages are files."""

    def __init__(self, folder: Path, security: str) -> None:
        self.folder = folder
        keys = [
            document("helper", "keygen", str(folder / f"{j}.journal"), "--suite", "x25519")
            for j in (1, 2, 3)
        ]
        pairs = [
            tuple(bytes.fromhex(one[name]) for name in ("hpke", "ed25519")) for one in keys
        ]
        shape = {"n_clients": 5, "length": 4, "threshold": 2, "min_clients": 3}
        shape |= {"security": security, "suite": "x25519", "session": b"files"}
        self.params = OneShotParams(encoding=Integers(100), helpers=pairs, **shape)
        active = security == "active"
        public = {u: make_identity(u).public for u in range(4)}
        known = Registry(public) if active else None
        self.accumulator = Accumulator(self.params, registry=known)
        for u in range(4):
            identity = make_identity(u) if active else None
            data = report(np.full(4, u), self.params, u, identity=identity)
            self.accumulator.add(data)
        self.write("params", self.params.to_bytes())
        registry = json.dumps({u: key.hex() for u, key in public.items()})
        self.registry = (
            ("--registry", self.write("registry", registry.encode())) if active else ()
        )

    def write(self, name: str, data: bytes) -> str:
        (self.folder / name).write_bytes(data)
        return str(self.folder / name)

    def run(self, j: int, step: str, *more: str, boxes: bytes | None = None) -> list[str]:
        chunks = self.accumulator.boxes(j) if boxes is None else [boxes]
        kind = "boxes" if boxes is None else "given"
        paths = [self.write(f"{kind} {j} {i}", chunk) for i, chunk in enumerate(chunks)]
        params = ("--params", str(self.folder / "params"))
        journal = str(self.folder / f"{j}.journal")
        return ["helper", step, journal, *params, *self.registry, *more, *paths]


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_helpers_open_a_sum_from_files(tmp_path: Path, security: str) -> None:
    files = Files(tmp_path, security)
    for j in (1, 2, 3):
        assert document(*files.run(j, "check")) == {"helper": j, "rejected": []}
    request = ("--request", files.write("request", files.accumulator.request()))
    if security == "active":
        for j in (1, 2, 3):
            where = ("--out", str(tmp_path / f"reservation {j}"))
            document(*files.run(j, "reserve", *request, *where))
        signed = [(tmp_path / f"reservation {j}").read_bytes() for j in (1, 2, 3)]
        files.write("request", files.accumulator.request(signed))
    answers = []
    for j in (1, 3):
        out = tmp_path / f"answer {j}"
        told = document(*files.run(j, "open", *request, "--out", str(out)))
        answers.append(out.read_bytes())
        assert told["bytes"] == len(answers[-1])
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
    result = files.accumulator.result(answers)
    assert result.survivors == (0, 1, 2, 3)
    assert result.sum.tolist() == [6] * 4


def test_rejected_clients_are_printed_and_not_opened(tmp_path: Path) -> None:
    files = Files(tmp_path, "semi-honest")
    (boxes,) = files.accumulator.boxes(1)
    bad = boxes[:-1] + bytes([boxes[-1] ^ 1])
    assert document(*files.run(1, "check", boxes=bad))["rejected"] == [3]
    assert "rejected: 3\n" in invoke(*files.run(1, "check", boxes=bad)).stdout
    request = ("--request", files.write("request", files.accumulator.request()))
    out = tmp_path / "answer"
    more = (*request, "--out", str(out))
    assert_error(invoke(*files.run(1, "open", *more, boxes=bad)), "unchecked")
    # the minimum of a helper is its own
    assert_error(invoke(*files.run(1, "open", *more, "--min-clients", "5")), "count")
    assert not out.exists()
    assert invoke(*files.run(1, "open", *more, "--min-clients", "4")).exit_code == 0


@pytest.mark.parametrize("step", ["reserve", "open"])
def test_reply_does_not_replace_the_journal(tmp_path: Path, step: str) -> None:
    files = Files(tmp_path, "semi-honest")
    request = ("--request", files.write("request", files.accumulator.request()))
    (tmp_path / "link").symlink_to("1.journal")
    for name in ("1.journal", "link"):
        out = ("--out", str(tmp_path / name))
        assert_error(invoke(*files.run(1, step, *request, *out)), "--out")
    with HelperJournal.open(tmp_path / "1.journal") as journal:
        assert journal.public == files.params.helpers[0]


def test_wrong_files_are_errors_of_one_line(tmp_path: Path) -> None:
    files = Files(tmp_path, "active")
    missing = str(tmp_path / "nothing")
    for command, message in (
        (["helper", "keygen", str(tmp_path / "1.journal")], "exists"),
        (
            ["helper", "check", missing, "--params", str(tmp_path / "params"), missing],
            "no such",
        ),
        ([*files.run(1, "check"), missing], "does not exist"),
        (files.run(1, "check", "--registry", files.write("r", b"[]")), "JSON object"),
        (files.run(1, "check", boxes=b"boxes"), "length"),
        (files.run(1, "check", "--params", files.write("p", b"\1")), "length"),
    ):
        assert_error(invoke(*command), message)
    with HelperJournal.open(tmp_path / "1.journal"):
        assert invoke(*files.run(1, "check")).exit_code == 2


def test_relayed_parameters_are_endorsed(tmp_path: Path) -> None:
    files = Files(tmp_path, "active")
    keys = [identity for _, identity in files.params.helpers]
    options = ("--params", str(tmp_path / "params"), *files.registry)
    told = [
        document("helper", "endorse", str(tmp_path / f"{j}.journal"), *options)
        for j in (1, 2, 3)
    ]
    assert [one["helper"] for one in told] == [1, 2, 3]
    assert {one["parameters"] for one in told} == {files.params.digest.hex()}
    endorsements = [bytes.fromhex(str(one["endorsement"])) for one in told]
    policy = OneShotPolicy(helpers=frozenset(keys))
    policy.check(files.params, endorsements)
    with pytest.raises(ParameterError):
        policy.check(replace(files.params, min_clients=4), endorsements)
    # a journal endorses no parameters without its keys
    document("helper", "keygen", str(tmp_path / "4.journal"), "--suite", "x25519")
    assert_error(invoke("helper", "endorse", str(tmp_path / "4.journal"), *options))


@pytest.mark.parametrize(
    ("security", "options"),
    [
        ("active", ()),  # the clients' keys are unknown
        ("active", ("--corrupt", "0.4")),
        ("active", ("--max-length", "3")),
        ("semi-honest", ("--registry", "registry")),
        ("semi-honest", ("--max-clients", "4")),
    ],
    ids=str,
)
@pytest.mark.parametrize("step", ["endorse", "open"])
def test_helper_neither_endorses_nor_serves_what_it_rejects(tmp_path, step, security, options):
    files = Files(tmp_path, security)
    given = [str(tmp_path / one) if one == "registry" else one for one in options]
    if options:
        given += files.registry
    paths = [files.write(f"boxes {i}", one) for i, one in enumerate(files.accumulator.boxes(1))]
    request, out = files.write("request", files.accumulator.request()), tmp_path / "out"
    if step != "endorse":
        given += ["--request", request, "--out", str(out), *paths]
    params = ("--params", str(tmp_path / "params"))
    assert_error(invoke("helper", step, str(tmp_path / "1.journal"), *params, *given))
    assert not out.exists()


@pytest.mark.parametrize("command", ["params", "simulate"])
def test_option_of_earlier_versions_is_the_command_and_warns(command: str) -> None:
    ran = invoke(command, "--clients", "12", "--one-shot", "--suite", "x25519", "--json")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["suite"] == "x25519"
    assert f"secagg one-shot {command}" in ran.stderr
    assert "1.1" in ran.stderr
