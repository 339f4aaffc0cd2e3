"""Commands ``secagg one-shot``: the costs of a sum, and a sum on random vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from secagg._check import check_integer
from secagg.bench.cases import RandomVectors, check_sum, leaving
from secagg.cli import console as options
from secagg.cli import output
from secagg.cli.addresses import SecurityOption
from secagg.cli.console import App, Document
from secagg.cli.privacy import NoiseSigma, as_noise, in_words, privacy_of
from secagg.encoding import FixedPoint
from secagg.graph.graph import DROPOUT
from secagg.kit.table import duration, volume
from secagg.kit.timing import peak_memory
from secagg.oneshot import OneShotParams
from secagg.oneshot.layout import START_BYTES
from secagg.oneshot.messages import CHUNK, PLACE, Kind, request_bytes
from secagg.oneshot.params import MAX_HELPERS
from secagg.oneshot.replies import size
from secagg.oneshot.suites import SECRET_BYTES, BoxKey
from secagg.protocol import Identity
from secagg.protocol.suites import as_suite
from secagg.simulate import simulate_one_shot, temporary_journals

EXAMPLES = options.examples(
    "secagg one-shot params --clients 1000000 --helpers 5 --threshold 3 --security active",
    "secagg one-shot simulate --clients 1000 --helpers 3 --threshold 2 --noise 1e9",
)

_Helpers = Annotated[int, typer.Option(help="Number of helpers.")]
_Threshold = Annotated[int, typer.Option(help="Number of helpers that open a sum.")]
_Suite = Annotated[str, typer.Option(metavar="hybrid|x25519", help="HPKE suite.")]
HELPERS, THRESHOLD, SUITE = 3, 2, "hybrid"
"""Defaults of the options."""

app = App(name="one-shot", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Estimate and try one-shot sums: one message from each client, and helpers."""


@app.command(epilog=EXAMPLES)
def params(
    clients: options.Clients,
    length: options.Length = 100_000,
    clip: options.Clip = 8.0,
    modulus_bits: options.ModulusBits = None,
    helpers: _Helpers = HELPERS,
    threshold: _Threshold = THRESHOLD,
    security: SecurityOption = "semi-honest",
    suite: _Suite = SUITE,
    noise: NoiseSigma = None,
    as_json: options.Json = False,
) -> None:
    """Print the bytes of a report, of a helper and of the helper's answer."""
    with options.command():
        # before the keys are drawn, which would take hours for a wrong number
        check_integer("helpers", helpers, 1, MAX_HELPERS)
        kind = as_suite(suite)
        keys = [
            (BoxKey(kind, os.urandom(SECRET_BYTES[kind])).public, Identity.generate().public)
            for _ in range(helpers)
        ]
        agreed = _agreed(
            keys, clients, length, clip,
            modulus_bits=modulus_bits, threshold=threshold, security=security, noise=noise,
        )  # fmt: skip
        _echo(agreed, _traffic(agreed, clients), json=as_json)


@app.command(epilog=EXAMPLES)
def simulate(
    clients: options.Clients = 100,
    length: options.Length = 10_000,
    dropout: options.Dropout = DROPOUT,
    clip: options.Clip = 8.0,
    modulus_bits: options.ModulusBits = None,
    seed: Annotated[int, typer.Option(help="Seed of the vectors and the dropouts.")] = 0,
    helpers: _Helpers = HELPERS,
    threshold: _Threshold = THRESHOLD,
    security: SecurityOption = "semi-honest",
    suite: _Suite = SUITE,
    noise: NoiseSigma = None,
    as_json: options.Json = False,
) -> None:
    """Run a sum on random vectors in this process, and check that the sum is exact.

    The fraction --dropout of the clients never reports.
    """
    with options.command():
        check_integer("seed", seed, 0, (1 << 32) - 1)
        vectors = RandomVectors(clients, length, clip, seed)
        with (
            temporary_journals(helpers, as_suite(suite)) as journals,
            output.progress("clients", clients) as show,
        ):
            agreed = _agreed(
                [journal.public for journal in journals], clients, length, clip,
                modulus_bits=modulus_bits, threshold=threshold, security=security,
                noise=noise, dropout=dropout,
            )  # fmt: skip
            result = simulate_one_shot(
                vectors, agreed, journals, absent=leaving(clients, dropout), progress=show
            )
        bound, encoding = agreed.noise_bound, FixedPoint(clip, rounding="nearest")
        check_sum(result.integers, result.survivors, vectors.__getitem__, encoding, noise=bound)
        document: Document = {
            "survivors": len(result.survivors),
            "exact": agreed.noise is None,
            "bytes_up": result.report_bytes,
            "helper_bytes_in": max(result.helper_bytes_in.values()),
            "helper_bytes_out": max(result.helper_bytes_out.values()),
            "client_seconds": result.client_seconds / len(result.survivors),
            "server_seconds": result.server_seconds,
            "helper_seconds": max(result.helper_seconds.values()),
            "peak_memory": peak_memory(),
        }
        _echo(agreed, document, json=as_json)


def _agreed(
    keys: Sequence[tuple[bytes, bytes]],
    clients: int,
    length: int,
    clip: float,
    *,
    modulus_bits: int | None,
    threshold: int,
    security: str,
    noise: float | None,
    dropout: float = DROPOUT,
) -> OneShotParams:
    found = OneShotParams.suggest(
        clients,
        length,
        FixedPoint(clip, rounding="nearest"),
        helpers=keys,
        security=options.as_security(security),
        dropout=dropout,
        threshold=threshold,
        session=b"secagg",
        noise=as_noise(noise),
    )
    # by default 32 bits, which need no packing
    return replace(found, modulus_bits=modulus_bits)


def _traffic(params: OneShotParams, clients: int) -> Document:
    """Return the bytes of a client and of a helper, if all clients report."""
    layout, signers = params.layout, len(params.helpers) if params.quorum else 0
    boxes = clients * layout.record(1) + -(-clients // CHUNK) * (START_BYTES + PLACE.size)
    requests = request_bytes(clients) + (request_bytes(clients, signers) if signers else 0)
    reservation, answer = (size(kind, params, 1) for kind in (Kind.RESERVATION, Kind.ANSWER))
    return {
        "bytes_up": layout.report,
        "helper_bytes_in": boxes + requests,
        "helper_bytes_out": answer + (reservation if signers else 0),
    }


def _echo(params: OneShotParams, document: Document, *, json: bool) -> None:
    """Print parameters and costs, as a JSON document or as a table of two columns."""
    count = len(params.helpers)
    missing = count - (params.quorum or params.threshold)
    privacy = privacy_of(params)
    shape: Document = {
        "clients": params.n_clients,
        "helpers": count,
        "threshold": params.threshold,
        "missing_helpers": missing,
        "seeds": params.seeds,
        "security": params.security,
        "suite": params.suite,
        "length": params.length,
        "modulus_bits": params.ring.bits,
    }
    rows = [
        ("helpers", f"{params.threshold} of {count} open, {missing} may be missing"),
        ("security", f"{params.security}, {params.suite}"),
        ("modulus", str(params.ring)),
    ]
    if "survivors" in document:
        kind, survivors = "noisy" if privacy else "exact", document["survivors"]
        rows.append(("sum", f"{kind}, of {survivors} of {params.n_clients} vectors"))
    if privacy:
        rows += in_words(privacy, params.seeds).items()
    rows += [
        ("a client sends", volume(document["bytes_up"])),
        ("a helper receives", volume(document["helper_bytes_in"])),
        ("a helper sends", volume(document["helper_bytes_out"])),
    ]
    for party in ("client", "server", "helper"):
        if f"{party}_seconds" in document:
            whose = "the server's" if party == "server" else f"a {party}'s"
            rows.append((f"{whose} time", duration(document[f"{party}_seconds"])))
    output.show(shape | privacy | document, rows, json=json)
