"""The command ``secagg``: its output agrees with the library, and errors are one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import Result
from typer.testing import CliRunner

import secagg.cli.estimates
import secagg.cli.simulate
from harness import make_params
from secagg import FixedPoint, Integers, RoundParams
from secagg.cli import app, planned_noise
from secagg.cli.estimates import estimate
from secagg.cli.simulate import dropouts
from secagg.graph import recommend
from secagg.kit import timing
from secagg.privacy import against, plan
from secagg.protocol.suites import NAMES
from secagg.protocol.traffic import Traffic, blame_traffic, client_traffic

SMALL = ("simulate", "--clients", "12", "--length", "50")


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, env=environment)


def document(*arguments: str) -> dict[str, object]:
    ran = invoke(*arguments, "--json")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stderr == ""
    return json.loads(ran.stdout)


def test_params_prints_the_recommendation_and_its_bytes() -> None:
    shown = document("params", "--clients", "1000", "--corrupt", "0.1", "--length", "500")
    found = recommend(1000, 0.1, 0.1)
    params = _params(1000, found.threshold, 500, found.neighbours)
    phases = client_traffic(params, client_id=999)
    assert (shown["neighbours"], shown["threshold"]) == tuple(found)
    for name in ("highest_threshold", "privacy_bits", "completion_bits"):
        assert shown[name] == getattr(found, name)
    assert shown["bytes_up"] == sum(phase.up for phase in phases.values())
    assert shown["bytes_down"] == sum(phase.down for phase in phases.values())
    assert {name: each["bytes_up"] for name, each in shown["phases"].items()} == {
        name: each.up for name, each in phases.items()
    }
    assert min(shown["client_seconds"], shown["server_seconds"]) > 0
    assert shown["modulus_bits"] == 32
    assert "blame" not in shown


@pytest.mark.parametrize(
    ("options", "suite", "why"),
    [
        (("--length", "100000"), "hybrid", "adds 122 kB to a vector of 338 kB"),
        (("--length", "1000"), "x25519", "hybrid would add 122 kB to a vector of 3.38 kB"),
        (("--length", "1000", "--suite", "hybrid"), "hybrid", "--suite"),
        (("--clients", "400", "--length", "1000000"), "x25519", "above 300 clients"),
    ],
)
def test_params_says_which_suite_and_why(
    options: tuple[str, ...], suite: str, why: str
) -> None:
    command = ("params", "--clients", "100", *options)
    shown = document(*command)
    assert (shown["suite"], why in shown["suite_why"]) == (suite, True)
    other = next(name for name in NAMES if name != suite)
    table = invoke(*command).stdout
    assert f"{suite}, {shown['suite_why']}" in " ".join(table.split())
    assert f"with {other}" in table


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_params_prints_the_bytes_of_both_suites_and_of_blame(security: str) -> None:
    shown = document("params", "--clients", "10", "--length", "500", "--security", security)
    of_active = {"security": security, "session": bytes(64)} if security == "active" else {}
    for suite, found in shown["suites"].items():
        params = RoundParams(
            n_clients=10,
            threshold=shown["threshold"],
            length=500,
            encoding=FixedPoint(8.0),
            suite=suite,
            **of_active,
        )
        phases = client_traffic(params, client_id=9).values()
        whole = [sum(phase.up for phase in phases), sum(phase.down for phase in phases)]
        assert [found["bytes_up"], found["bytes_down"]] == whole
    blame = blame_traffic(params)
    assert shown.get("blame") == (
        {"bytes_up": blame.up, "bytes_down": blame.down} if of_active else None
    )
    assert (blame == Traffic(0, 0)) == (security == "semi-honest")


def test_params_plans_noise() -> None:
    pytest.importorskip("dp_accounting")
    options = ("--clients", "200", "--corrupt", "0.1", "--dropout", "0.05", "--length", "900")
    options += ("--epsilon", "3")
    shown = document("params", *options, "--delta", "1e-7", "--rounds", "20", "--norm", "2")
    found = plan(
        200, 900, norm=2, epsilon=3, delta=1e-7, rounds=20, min_survivors=190, colluders=20
    )
    noise = shown["privacy"]
    for name in ("steps", "modulus_bits", "min_survivors", "colluders", "epsilon_replaced"):
        assert noise[name] == getattr(found, name)
    assert (noise["sigma"], noise["bytes"]) == (float(found.sigma), found.message)
    assert noise["error"] == pytest.approx(found.error(), rel=1e-12)
    text = invoke("params", *options).stdout
    # a plan for one sum with the other defaults
    once = plan(200, 900, norm=1, epsilon=3, delta=1e-6, min_survivors=190, colluders=20)
    assert f"{once.steps:,} for the norm 1" in text
    # the lines of Python that are printed give the parameters
    wanted, made = re.search(
        r"Python (plan\(.*\)) (\.params\(.*), session=…\)", " ".join(text.split())
    ).groups()
    assert eval(wanted, {"plan": plan}) == once  # noqa: S307
    params = RoundParams.from_bytes(bytes.fromhex(noise["parameters"]))
    assert params == eval(f"found{made})", {"found": found})  # noqa: S307
    assert shown["smallest_cohort"] >= params.min_survivors
    assert noise["against"] == against(params)
    assert "--rounds 1 --norm 1.0 --min-survivors 190 --colluders 20" in " ".join(text.split())
    active = " ".join(invoke("params", *options, "--security", "active").stdout.split())
    wanted, made = re.search(r"Python (plan\(.*\)) (\.params\(.*session=)…\)", active).groups()
    params = eval(f"{wanted}{made}b's')", {"plan": plan})  # noqa: S307
    assert params.active
    assert "--security active join secagg join … --colluders 20;" in active
    assert "privacy" not in document("params", "--clients", "20")
    assert invoke("params", "--clients", "20", "--rounds", "3").exit_code == 2


def test_params_without_clients_prints_some_sizes() -> None:
    """The command of a plan alone, and a size without a plan beside sizes with plans."""
    pytest.importorskip("dp_accounting")
    options = ("--epsilon", "2", "--delta", "1e-6", "--rounds", "100", "--norm", "1")
    shown = document("params", *options)
    assert shown["length"] == 100_000
    for n, found in zip((100, 1000, 10_000), shown["sizes"], strict=True):
        wanted = plan(n, 100_000, norm=1, epsilon=2, delta=1e-6, rounds=100)
        assert (found["clients"], found["sigma"]) == (n, float(wanted.sigma))
        assert found["error_norm"] == wanted.error_norm()
    text = invoke("params", *options).stdout
    assert f"{wanted.error_norm():.3g}" in text
    assert "100,000 elements (--length)" in text
    assert shown["against"] in text
    assert "a server that follows the protocol" in shown["against"]
    few = document("params", *options, "--length", "9", "--corrupt", "0.89")["sizes"]
    assert ["no_plan" in one for one in few] == [True, False, False]
    assert invoke("params", *options, "--corrupt", "0.9").exit_code == 2
    assert invoke("params").exit_code == 2


@pytest.mark.parametrize("delta", [1e-7, 0.0499, 0.05, 0.5])
def test_plan_is_announced_before_clients_wait(delta, capsys) -> None:
    pytest.importorskip("dp_accounting")
    found = plan(20, 9, norm=1, epsilon=3, delta=delta)
    params = found.params(session=b"s", security="active")
    assert planned_noise.announced(found, params)["privacy"]["epsilon"] == 3
    told = "".join(capsys.readouterr())
    for word in ("ε = 3", against(params), "error of the mean"):
        assert word in told
    assert ("δ: " in told) == (delta * 20 >= 1)
    assert planned_noise.announced(None, params) == {}


def test_params_options_reach_the_finder() -> None:
    options = ("--security", "semi-malicious", "--sigma", "30", "--eta", "10")
    shown = document("params", "--clients", "200", "--dropout", "0.05", *options)
    found = recommend(200, 0.2, 0.05, "semi-malicious", 30, 10)
    assert (shown["neighbours"], shown["threshold"]) == tuple(found)
    assert document("params", "--clients", "9", "--modulus-bits", "40")["modulus_bits"] == 40
    # 2 · 100,000 · 8 · 2^16 needs 37 bits
    assert document("params", "--clients", "100000", "--length", "9")["modulus_bits"] == 37


def test_params_prints_a_table() -> None:
    ran = invoke("params", "--clients", "1000", "--length", "1000")
    assert ran.exit_code == 0, ran.stderr
    for name, value in (
        ("neighbours k", "74"),
        ("threshold t", "45"),
        ("privacy", r"a client is exposed: at most 2\^-40.0"),
        ("completion", r"dropouts end the round: at most 2\^-32.0"),
        ("a client sends", "14.4 kB"),
        ("smallest cohort", "1000 of 1000, if the same 200 collude"),
    ):
        assert re.search(rf"^ *{name} +{value} *$", ran.stdout, re.MULTILINE), name
    small = invoke("params", "--clients", "5").stdout
    assert re.search(r"neighbours k +all others", small)
    assert re.search(r"privacy +a client is exposed: never", small)
    assert document("params", "--clients", "5")["privacy_bits"] is None


def test_check43_params_prints_the_smallest_cohort() -> None:
    for clients, least in (("1000", 1000), ("10", 7)):
        shown = document("params", "--clients", clients, "--length", "9")
        assert shown["smallest_cohort"] == least


def test_params_of_an_active_sum_has_its_threshold_and_its_signatures() -> None:
    command = ("params", "--clients", "50", "--length", "9")
    found, honest = document(*command, "--security", "active"), document(*command)
    assert (found["neighbours"], found["threshold"], found["smallest_cohort"]) == (None, 34, 34)
    assert found["bytes_up"] > honest["bytes_up"]


def test_simulate_runs_a_round_and_reports_it() -> None:
    shown = document(*SMALL, "--dropout", "0.25", "--neighbours", "0", "--threshold", "7")
    assert shown["exact"] is True
    assert (shown["neighbours"], shown["threshold"]) == (None, 7)
    leaving = dropouts(12, 0.25, 0)
    assert len(leaving) == 3
    lost = sum(phase != "unmasking" for phase in leaving.values())
    assert shown["survivors"] == 12 - lost
    assert shown["client_seconds"] > 0
    assert shown["server_seconds"] > 0
    assert shown["peak_memory"] > 1 << 20


def test_simulate_defaults_to_params_or_70_percent() -> None:
    def found(command: str, *options: str) -> tuple[object, object]:
        shown = document(command, "--length", "9", *options)
        return shown["neighbours"], shown["threshold"]

    # (36, 19) is rejected if one of 208 clients stays away; dropouts come later
    sparse = found("simulate", "--clients", "208", "--corrupt", "0.1")
    assert sparse == tuple(recommend(208, 0.1, 0.1))
    assert found("simulate", "--clients", "40", "--threshold", "29") == (None, 29)
    assert found("simulate", "--clients", "40", "--neighbours", "20") == (20, 15)
    assert found(*SMALL, "--neighbours", "0") == (None, 9)


def _params(n: int, threshold: int, length: int, neighbours: int | None = None) -> RoundParams:
    shape = {"n_clients": n, "threshold": threshold, "length": length}
    return RoundParams(**shape, neighbours=neighbours, encoding=FixedPoint(8.0))


ERRORS = {
    "params --clients 3 --dropout 0.7": "no sum is safe",
    "params --clients 9 --security lying": "security 'lying' has no graph",
    "params --clients 2": "--clients is 2: each client would learn",
    "simulate --modulus-bits 8": "take --modulus-bits 27",
    "simulate --clients 12 --neighbours 2 --corrupt 0.3": "2 neighbours and threshold 2",
    "simulate --clients 12 --threshold 12 --dropout 0.25": "lower --threshold",
    "one-shot params --clients 9 --helpers 1": "a threshold of at most 1",
    f"helper serve /nonexistent --aggregator {'0' * 64}": "secagg helper keygen",
}


@pytest.mark.parametrize(("command", "message"), ERRORS.items())
def test_invalid_arguments_print_one_line_with_options(command: str, message: str) -> None:
    ran = invoke(*command.split())
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert ran.stderr.startswith("secagg: ")
    assert ran.stderr.count("\n") == 1
    assert not [python for python in ("RoundParams", "HelperJournal") if python in ran.stderr]


def test_wrong_sum_is_reported_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = secagg.cli.simulate.simulate_round

    def wrong(*arguments: object, **options: object) -> object:
        result = real(*arguments, **options)
        result.integers[7] += 1
        return result

    monkeypatch.setattr(secagg.cli.simulate, "simulate_round", wrong)
    ran = invoke(*SMALL)
    assert ran.exit_code == 2
    assert "the sum is not exact" in ran.stderr


def test_closed_pipe_prints_no_error() -> None:
    code = "from secagg.cli import main; main()"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        ran = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, "params", "--clients", "9"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (1, "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "secagg: out of memory\n"),
        (
            MemoryError("Unable to allocate 7 GiB"),
            "secagg: out of memory: Unable to allocate 7",
        ),
        (OSError("no such thing"), "secagg: cannot go on: no such thing\n"),
    ],
)
def test_errors_of_the_machine_print_one_line(monkeypatch, error, message):
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(secagg.cli.simulate, "simulate_round", fails)
    ran = invoke(*SMALL)
    assert ran.exit_code == 1
    assert ran.stderr.startswith(message)
    assert (ran.stderr.count("\n"), ran.stdout) == (1, "")


def test_ctrl_c_in_the_middle_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real signal, after the sixth masked input."""
    real = secagg.cli.simulate.simulate_round

    def impatient(*arguments: object, progress: object, **options: object) -> object:
        def kill(phase: str, done: int, of: int) -> None:
            if (phase, done) == ("masked_input", 6):
                os.kill(os.getpid(), signal.SIGINT)

        return real(*arguments, progress=kill, **options)

    monkeypatch.setattr(secagg.cli.simulate, "simulate_round", impatient)
    ran = invoke(*SMALL, FORCE_COLOR="1")
    assert ran.exit_code == 130
    assert ran.stderr.endswith("secagg: interrupted\n")
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_missing_extra_prints_the_install_command(module: str) -> None:
    code = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from secagg.cli import main; main()"""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert ran.returncode == 2
    expected = r'secagg: the command line needs \w+: pip install "secagg\[cli\]"\n'
    assert re.fullmatch(expected, ran.stderr)


@pytest.mark.parametrize("suite", NAMES)
@pytest.mark.parametrize(
    ("n", "neighbours", "length", "dropped", "security"),
    [
        (20, None, 100, 2, "semi-honest"),
        (20, None, 100, 2, "active"),
        (20, None, 1 << 20, 0, "active"),
        (30, 8, 100, 3, "semi-honest"),
        (2048, None, 100, 512, "semi-honest"),
    ],
)
def test_estimate_multiplies_times_by_counts(
    monkeypatch, suite, n, neighbours, length, dropped, security
):
    """If every primitive takes a second, the estimate is the counts of docs/parameters.md."""

    def one_second(call: Callable[[], object]) -> float:
        call()
        return 1.0

    monkeypatch.setattr(secagg.cli.estimates, "mean_seconds", one_second)
    g = n if neighbours is None else neighbours + 1
    params = make_params(
        n, neighbours=neighbours, length=length, encoding=Integers(max=3), suite=suite,
        security=security,
    )  # fmt: skip
    hybrid, active, bulk = suite == "hybrid", security == "active", 1 / 64
    vector = max(1, length / 2**18)
    large = max(1, g / 512)
    mask, share = vector / 8, large**2
    rebuild = large / min(g, 512) if neighbours is None else large**2
    left = n - dropped
    client, server = estimate(params, dropped)
    # two agreements, two seals; ML-KEM twice and secrets; hashes thrice and three signatures
    peer = 4 * bulk + hybrid * (2 + bulk) + active * (3 * bulk + 3)
    assert client == pytest.approx(2 + hybrid + peer * (g - 1) + g * mask + vector + share)
    assert server == pytest.approx(
        n * (2 + hybrid + active * (5 + (g - 1) * bulk))
        + left * (vector + mask + active * (g - 1) * bulk)
        + n * rebuild
        + dropped * (1 + (g - 1) * left / (n - 1) * ((1 + hybrid) * bulk + mask))
    )


def test_primitive_time_is_the_mean_without_the_first_call(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    durations = iter([5.0, 0.015, 0.010, 0.011, 0.012])

    def call() -> None:
        clock[0] += next(durations)

    assert timing.mean_seconds(call) == pytest.approx(0.012)
    assert next(durations, None) is None  # 15 + 10 + 11 ms were not long enough, 48 ms were
