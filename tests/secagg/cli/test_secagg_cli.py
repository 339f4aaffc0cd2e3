"""The command ``secagg``: its output agrees with the library, and errors are one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

import secagg.cli.params
import secagg.cli.simulate
from harness import make_params
from secagg import FixedPoint, Integers, RoundParams
from secagg.bench.cases import RandomVectors
from secagg.cli import app
from secagg.cli.params import estimate
from secagg.cli.simulate import dropouts
from secagg.graph import recommend
from secagg.kit import timing
from secagg.protocol.traffic import client_traffic

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
    params = RoundParams(
        n_clients=1000,
        threshold=found.threshold,
        neighbours=found.neighbours,
        length=500,
        encoding=FixedPoint(8.0),
    )
    phases = client_traffic(params, client_id=999)
    assert (shown["neighbours"], shown["threshold"]) == tuple(found)
    assert shown["highest_threshold"] == found.highest_threshold
    assert shown["privacy_bits"] == found.privacy_bits
    assert shown["completion_bits"] == found.completion_bits
    assert shown["bytes_up"] == sum(phase.up for phase in phases.values())
    assert shown["bytes_down"] == sum(phase.down for phase in phases.values())
    assert {name: each["bytes_up"] for name, each in shown["phases"].items()} == {
        name: each.up for name, each in phases.items()
    }
    assert shown["client_seconds"] > 0
    assert shown["server_seconds"] > 0
    assert shown["modulus_bits"] == 32


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
    lines = [re.split(r" {2,}", line.strip(), maxsplit=1) for line in ran.stdout.splitlines()]
    assert ["if at most 0.2 of the clients collude and 0.1 drop out"] in lines
    rows = dict(line for line in lines if len(line) == 2)
    assert rows["neighbours k"] == "74"
    assert rows["threshold t"] == "45"
    assert rows["privacy"] == "a client is exposed: at most 2^-40.0"
    assert rows["completion"] == "dropouts end the round: at most 2^-32.0"
    assert rows["a client sends"] == "14.4 kB"
    assert re.fullmatch(r"[\d.]+ m?s", rows["the server's time"])
    small = invoke("params", "--clients", "5")
    assert re.search(r"neighbours k +all others", small.stdout)
    assert re.search(r"privacy +a client is exposed: never", small.stdout)
    assert document("params", "--clients", "5")["privacy_bits"] is None


def test_check43_params_prints_the_smallest_cohort() -> None:
    command = ("params", "--clients", "1000", "--length", "9")
    assert document(*command)["smallest_cohort"] == 1000
    shown = " ".join(invoke(*command).stdout.split())
    assert "smallest cohort 1000 of 1000, if the same 200 collude" in shown
    assert document("params", "--clients", "10", "--length", "9")["smallest_cohort"] == 7


def test_params_of_an_active_sum_has_its_threshold_and_its_signatures() -> None:
    command = ("params", "--clients", "50", "--length", "9")
    found, honest = document(*command, "--security", "active"), document(*command)
    assert (found["neighbours"], found["threshold"], found["smallest_cohort"]) == (None, 34, 34)
    assert found["bytes_up"] > honest["bytes_up"]


def test_simulate_runs_the_recommendation_that_leaves_no_room() -> None:
    """(36, 19) is rejected if one of 208 clients stays away; dropouts come later."""
    options = ("--clients", "208", "--corrupt", "0.1", "--dropout", "0.1", "--length", "3")
    assert document("simulate", *options)["exact"]


def test_params_states_the_promise_against_each_server() -> None:
    small = invoke("params", "--clients", "30", "--security", "semi-malicious").stdout
    assert re.search(r"privacy +both secrets of one client are rebuilt: never *\n", small)
    assert re.search(r"\n +not counted: dropouts that such a server invents *\n", small)
    assert "exposed" not in small
    large = invoke("params", "--clients", "1000", "--security", "semi-malicious").stdout
    assert "one client are rebuilt: at most 2^-40.1" in large
    assert "not counted" not in invoke("params", "--clients", "30").stdout


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
    sparse = document("simulate", "--clients", "120", "--length", "9")
    assert (sparse["neighbours"], sparse["threshold"]) == tuple(recommend(120, 0.2, 0.1))
    advised = document("params", "--clients", "40", "--length", "9")
    assert (advised["neighbours"], advised["threshold"]) == (None, 28)
    k, t = advised["neighbours"], advised["threshold"]
    tried = document("simulate", "--clients", "40", "--length", "9")
    assert (tried["neighbours"], tried["threshold"]) == (k, t)
    options = ("--clients", "40", "--length", "9", "--threshold", str(t + 1))
    higher = document("simulate", *options)
    assert (higher["neighbours"], higher["threshold"]) == (k, t + 1)
    on_graph = document("simulate", "--clients", "40", "--length", "9", "--neighbours", "20")
    assert (on_graph["neighbours"], on_graph["threshold"]) == (20, 15)
    assert document(*SMALL, "--neighbours", "0")["threshold"] == 9
    bytes_up = sum(p.up for p in client_traffic(_params(12, 9, 50)).values())
    everybody = document(*SMALL, "--neighbours", "0", "--dropout", "0")
    assert everybody["bytes_up"] == bytes_up


def _params(n: int, threshold: int, length: int) -> RoundParams:
    return RoundParams(
        n_clients=n, threshold=threshold, length=length, encoding=FixedPoint(8.0)
    )


def test_simulate_prints_a_table_and_on_a_terminal_its_progress() -> None:
    quiet = invoke(*SMALL)
    assert quiet.exit_code == 0
    assert re.search(r"sum +exact, of 1[12] of 12 vectors", quiet.stdout)
    assert re.search(r"peak memory +[\d.]+ MB", quiet.stdout)
    assert quiet.stderr == ""
    shown = invoke(*SMALL, FORCE_COLOR="1")
    assert "clients" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("params", "--clients", "3", "--dropout", "0.7"), "no sum is safe"),
        (("params", "--clients", "200", "--corrupt", "0.9"), "not even the complete graph"),
        (("params", "--clients", "100", "--corrupt", "1"), r"corrupt is 1\.0"),
        (("params", "--clients", "100", "--sigma", "0"), "sigma is 0"),
        (("params", "--clients", "9", "--security", "lying"), "security 'lying' has no graph"),
        (("params", "--clients", "100", "--modulus-bits", "9"), "no headroom"),
        ((*SMALL, "--neighbours", "5"), "neighbours is 5"),
        ((*SMALL, "--neighbours", "2", "--corrupt", "0.3"), "2 neighbours and threshold 2"),
        ((*SMALL, "--dropout", "0.8", "--neighbours", "0"), "no sum is safe"),
        ((*SMALL, "--seed", "-1"), "seed is -1"),
        ((*SMALL, "--clip", "0"), "clip"),
    ],
)
def test_invalid_arguments_print_one_line(arguments: tuple[str, ...], message: str) -> None:
    ran = invoke(*arguments)
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert re.search(message, ran.stderr)
    assert ran.stderr.startswith("secagg: ")
    assert ran.stderr.count("\n") == 1


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


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_closed_pipe_prints_no_error(options: tuple[str, ...]) -> None:
    code = "from secagg.cli import main; main()"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        ran = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, "params", "--clients", "9", *options],
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
def test_errors_of_the_machine_print_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
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


def test_help_has_examples() -> None:
    environment = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    assert "params" in invoke("--help", **environment).stdout
    shown = invoke("params", "--help", **environment).stdout
    assert "secagg params --clients 1000 --corrupt 0.2 --dropout 0.1" in shown
    assert "secagg simulate --clients 100" in invoke("simulate", "--help", **environment).stdout


def test_random_vectors_are_recomputed_at_each_access() -> None:
    vectors = RandomVectors(5, 1000, 2.0, seed=3)
    assert list(vectors) == list(range(5))
    assert np.array_equal(vectors[4], vectors[4])
    assert vectors[4] is not vectors[4]
    assert not np.array_equal(vectors[4], vectors[3])
    assert 1.9 < max(vectors[0]) <= 2.0
    with pytest.raises(KeyError):
        vectors[5]


@pytest.mark.parametrize(
    ("n", "neighbours", "length", "dropped"),
    [(20, None, 100, 2), (20, None, 1 << 20, 0), (30, 8, 100, 3), (2048, None, 100, 512)],
)
def test_estimate_multiplies_times_by_counts(
    monkeypatch: pytest.MonkeyPatch, n: int, neighbours: int | None, length: int, dropped: int
) -> None:
    """If every primitive takes a second, the estimate is the counts of docs/parameters.md."""

    def one_second(call: Callable[[], object]) -> float:
        call()
        return 1.0

    monkeypatch.setattr(secagg.cli.params, "mean_seconds", one_second)
    g = n if neighbours is None else neighbours + 1
    params = make_params(n, neighbours=neighbours, length=length, encoding=Integers(max=3))
    vector = max(1, length / 2**18)
    large = max(1, g / 512)
    mask, share = vector / 8, large**2
    rebuild = large / min(g, 512) if neighbours is None else large**2
    left = n - dropped
    found = estimate(params, dropped)
    assert found.client == pytest.approx(2 + (2 + 2 / 64) * (g - 1) + g * mask + vector + share)
    assert found.server == pytest.approx(
        2 * n
        + left * (vector + mask)
        + n * rebuild
        + dropped * (1 + (g - 1) * left / (n - 1) * (1 / 64 + mask))
    )


def test_primitive_time_is_the_mean_without_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    durations = iter([5.0, 0.015, 0.010, 0.011, 0.012])

    def call() -> None:
        clock[0] += next(durations)

    assert timing.mean_seconds(call) == pytest.approx(0.012)
    assert next(durations, None) is None  # 15 + 10 + 11 ms were not long enough, 48 ms were


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("params", "--clients", "1"), "secagg: --clients is 1"),
        (("simulate", "--modulus-bits", "8"), "take --modulus-bits 27"),
    ],
)
def test_error_names_the_option_and_not_the_parameter(
    arguments: tuple[str, ...], remedy: str
) -> None:
    ran = invoke(*arguments)
    assert ran.exit_code == 2
    assert remedy in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("params --clients 2", "--clients is 2: each client would learn"),
        ("simulate --clients 2", "take 3 or more"),
        (
            "one-shot params --clients 9 --helpers 1",
            "a threshold of at most 1",
        ),
        ("one-shot simulate --clients 9 --helpers 1 --threshold 2", "take 2 or more"),
        ("one-shot params --clients 9 --helpers 2 --threshold 3", "at most 2"),
        (f"helper serve /nonexistent --aggregator {'0' * 64}", "secagg helper keygen"),
    ],
)
def test_numbers_that_do_not_fit_have_a_remedy_in_options(arguments, remedy):
    result = invoke(*arguments.split())
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert remedy in line
    assert not [python for python in ("RoundParams", "HelperJournal") if python in line]
