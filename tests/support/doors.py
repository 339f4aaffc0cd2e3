"""Default parameters at each door, of the door's own builder, and the page's tables of them.

``python tests/support/doors.py`` writes the tables into docs/parameters.md.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner

import cli_processes
from fedmf import OneShotSum, SecAggSum
from secagg import FixedPoint, Identity, Registry, RoundParams
from secagg.cli import collect_begin, planned_noise
from secagg.cli import params as cli_params
from secagg.cli import simulate as cli_simulate
from secagg.cli.sums import Aggregator, Sums
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.oneshot import OneShotParams
from secagg.oneshot.helper_files import HelperEntry
from secagg.oneshot.suites import BoxKey
from secagg.privacy import Plan, plan
from secagg.protocol.key_files import registry_to_json
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName
from secagg.statistics.sessions import round_params

PAGE = Path(__file__).parents[2] / "docs" / "parameters.md"
SIZES = (3, 5, 10, 50, 100, 200, 1000)
ENCODING = FixedPoint(clip=1.0)
IDENTITIES = [Identity.generate().public for _ in range(max(SIZES))]
HELPERS = [
    HelperEntry(
        "https://localhost",
        "x25519",
        BoxKey("x25519", os.urandom(32)).public,
        Identity.generate().public,
    )
    for _ in range(3)
]


def flower(n: int, security: Security = "semi-honest", **more: Any) -> RoundParams:
    from flwr.serverapp.strategy import FedAvg

    from secagg.flower import SecAgg

    length = more.pop("length", 4)
    registry = served(n).registry if security == "active" else None
    more |= {"security": security, "registry": registry}
    wrapped = SecAgg(FedAvg(), clip=1.0, max_weight=1, **more)
    return wrapped._params(n, length, b"flower")


def flare(n: int, security: Security = "semi-honest", **more: Any) -> RoundParams:
    from secagg.flare import SecAggFedAvg

    length = more.pop("length", 4)
    return SecAggFedAvg(clip=1.0, num_clients=n, security=security, **more)._params(n, length)


def served(n: int, security: Security = "semi-honest", length: int = 4, **more: Any) -> Sums:
    registry = Registry(dict(enumerate(IDENTITIES[:n])))
    shape = (registry, length, ENCODING, None, None, security, CORRUPT, DROPOUT)
    return Sums(*shape, name="session", run=b"run", **more)


def serve(n: int, security: Security = "semi-honest", **more: Any) -> RoundParams:
    return served(n, security, **more).params(0, None)


def options(length: int = 4, suite: SuiteName | None = None) -> list[str]:
    """Return the options of a command for the length of a vector, and for a suite."""
    return ["--length", f"{length}"] + ([] if suite is None else ["--suite", suite])


def params(n: int, security: Security = "semi-honest", **more: Any) -> RoundParams | None:
    if security == "active":
        return None
    with patch.object(cli_params, "estimate", lambda *_: (0.0, 0.0)):
        command = ["params", "--clients", str(n), "--clip", "1", "--json", *options(**more)]
        ran = CliRunner().invoke(cli_processes.command("secagg"), command)
    shown = json.loads(ran.stdout)
    chosen = {name: shown[name] for name in ("threshold", "neighbours", "suite", "length")}
    return RoundParams(n_clients=n, encoding=ENCODING, **chosen)


def simulate(n: int, security: Security = "semi-honest", **more: Any) -> RoundParams | None:
    if security == "active":
        return None
    chosen = ParameterError("the parameters are chosen")
    with patch.object(cli_simulate, "simulate_round", side_effect=chosen) as simulated:
        command = ["simulate", "--clients", str(n), "--clip", "1", *options(**more)]
        CliRunner().invoke(cli_processes.command("secagg"), command)
    return simulated.call_args.args[1]


def statistics(n: int, security: Security = "semi-honest", **more: Any) -> RoundParams:
    """Return the parameters of a study's step, which is as long as its table."""
    length = more.pop("length", 4)
    step = SimpleNamespace(length=length, encoding=ENCODING)
    study: Any = SimpleNamespace(step=step, plan=SimpleNamespace(privacy=None))
    return round_params(study, n, b"study", security=security, **more)


def fedmf(
    n: int, security: Security = "semi-honest", length: int = 4, **more: Any
) -> RoundParams | None:
    if security == "active":
        return None
    return SecAggSum(**more).params(n, length, ENCODING, b"fedmf")


def one_shot_flower(n: int) -> OneShotParams:
    from flwr.serverapp.strategy import FedAvg

    from secagg.flower import OneShot

    helpers: Any = [SimpleNamespace(public=one[2:], reach=print) for one in HELPERS]
    wrapped = OneShot(FedAvg(), helpers=helpers, clip=1.0, max_weight=1)
    return wrapped._params(n, 4, b"flower", helpers)


def one_shot_flare(n: int) -> OneShotParams:
    from secagg.flare import OneShotFedAvg

    keys = [one._asdict() | {"hpke": one.hpke.hex()} for one in HELPERS]
    helpers = [one | {"ed25519": one["ed25519"].hex()} for one in keys]
    made = OneShotFedAvg(clip=1.0, num_clients=n, helpers=helpers, identity="key.pem")
    return made._params(n, 4, b"message")


def one_shot_serve(n: int) -> OneShotParams:
    return served(n).params(0, Aggregator(HELPERS, Identity.generate(), None, plain=False))


def one_shot_collection(n: int) -> OneShotParams:
    keys = [one._asdict() | {"hpke": one.hpke.hex()} for one in HELPERS]
    helpers = [one | {"ed25519": one["ed25519"].hex()} for one in keys]
    chosen = ParameterError("the parameters are chosen")
    with TemporaryDirectory() as name, patch.object(collect_begin, "told") as told:
        told.side_effect = chosen
        folder = Path(name)
        (folder / "clients.json").write_text(registry_to_json(dict(enumerate(IDENTITIES[:n]))))
        (folder / "helpers.json").write_text(json.dumps(helpers))
        (folder / "a.pem").write_bytes(Identity.generate().to_pem())
        given = [folder / "clients.json", "--length", 4, "--clip", 1, "--helpers"]
        given += [folder / "helpers.json", "--identity", folder / "a.pem"]
        command = ["collect", "begin", folder / "reports", *given]
        CliRunner().invoke(cli_processes.command("secagg"), list(map(str, command)))
    return told.call_args.args[0]


def one_shot_fedmf(n: int) -> OneShotParams:
    journals: Any = [SimpleNamespace(public=one[2:]) for one in HELPERS]
    return OneShotSum()._params(journals, n, 4, ENCODING, b"fedmf")


ROUNDS = {
    "Flower": flower,
    "FLARE": flare,
    "`secagg serve`": serve,
    "`secagg params`": params,
    "`secagg simulate`": simulate,
    "`fedmf`": fedmf,
}
ONE_SHOT = {
    "Flower": one_shot_flower,
    "FLARE": one_shot_flare,
    "`secagg serve`": one_shot_serve,
    "`secagg collect`": one_shot_collection,
    "`fedmf`": one_shot_fedmf,
}


NOISE = ("--epsilon", "2", "--rounds", "3", "--norm", "1")


def planned(n: int) -> Plan:
    """Return the plan that each door with noise makes of its options."""
    return plan(n, 4, norm=1, epsilon=2, delta=1e-6, rounds=3)


def noised_flower(n: int, **more: Any) -> RoundParams:
    from flwr.serverapp.strategy import FedAvg

    from secagg.flower import SecAgg

    return SecAgg(FedAvg(), noise=planned(n), **more)._params(n, 4, b"flower")


def noised_flare(n: int, **more: Any) -> RoundParams:
    from secagg.flare import SecAggFedAvg

    noise = {"epsilon": 2, "delta": 1e-6}
    more |= {"num_clients": n, "num_rounds": 3}
    return SecAggFedAvg(noise=noise, norm=1.0, **more)._params(n, 4)


def noised_params(n: int, **more: Any) -> RoundParams:
    with patch.object(cli_params, "estimate", lambda *_: (0.0, 0.0)):
        command = ["params", "--clients", str(n), "--json", *NOISE, *options(**more)]
        ran = CliRunner().invoke(cli_processes.command("secagg"), command)
    plan = json.loads(ran.stdout)["privacy"]
    return RoundParams.from_bytes(bytes.fromhex(plan["parameters"]))


def noised_simulate(n: int, **more: Any) -> RoundParams:
    chosen = ParameterError("the parameters are chosen")
    with patch.object(cli_simulate, "simulate_round", side_effect=chosen) as simulated:
        command = ["simulate", "--clients", str(n), *NOISE, *options(**more)]
        CliRunner().invoke(cli_processes.command("secagg"), command)
    return simulated.call_args.args[1]


def noised_serve(n: int, **more: Any) -> RoundParams:
    chosen = ParameterError("the parameters are chosen")
    with (
        TemporaryDirectory() as name,
        patch.object(planned_noise, "announced", side_effect=chosen) as announced,
    ):
        path = Path(name, "clients.json")
        path.write_text(registry_to_json(dict(enumerate(IDENTITIES[:n]))))
        command = ["serve", str(path), "--out", name, *NOISE, *options(**more)]
        CliRunner().invoke(cli_processes.command("secagg"), command)
    return announced.call_args.args[1]


SUITES = {**ROUNDS, "statistics": statistics}
"""Doors of rounds, also of studies, whose thresholds are not all of the one function."""
NOISED = {
    "Flower": noised_flower,
    "FLARE": noised_flare,
    "`secagg params`": noised_params,
    "`secagg simulate`": noised_simulate,
    "`secagg serve`": noised_serve,
}


def shown(found: RoundParams | None) -> str:
    """Return the cell of a table: t, and k in brackets on a sparse graph."""
    if found is None:
        return "–"
    k = found.neighbours
    return f"{found.threshold}" if k is None else f"{found.threshold} ({k})"


def tables() -> dict[str, str]:
    """Return the tables of the page by their headings."""
    found = {}
    for heading, doors, cell in (
        ("threshold", ROUNDS, lambda of, n: shown(of(n))),
        ("active threshold", ROUNDS, lambda of, n: shown(of(n, "active"))),
        ("min_clients", ONE_SHOT, lambda of, n: f"{of(n).min_clients}"),
    ):
        rows = [[f"{n}", *(cell(of, n) for of in doors.values())] for n in SIZES]
        lines = [[heading, *doors], ["---"] * (1 + len(doors)), *rows]
        found[heading] = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return found


def write() -> None:
    """Write the tables into the page, in place of the tables with the same first cells."""
    text = PAGE.read_text(encoding="utf-8")
    for heading, new in tables().items():
        before, found, rest = text.partition(f"\n| {heading} |")
        assert found, heading
        text = f"{before}\n{new}\n{rest.partition(chr(10) * 2)[2]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
