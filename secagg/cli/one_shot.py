"""One-shot sums in ``secagg params`` and ``secagg simulate``: options, costs and output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.table import Table

from secagg._check import check_integer
from secagg.bench.cases import RandomVectors, check_sum, leaving
from secagg.cli.console import Document, given_options, progress
from secagg.encoding import FixedPoint
from secagg.errors import MissingExtra, ParameterError
from secagg.graph.assumptions import DROPOUT
from secagg.kit.table import as_json, duration, volume
from secagg.kit.timing import peak_memory
from secagg.oneshot import Noise, OneShotParams, epsilon
from secagg.oneshot.layout import DIGEST_BYTES, ID_BYTES, START_BYTES
from secagg.oneshot.params import MAX_HELPERS
from secagg.oneshot.reports import CHUNK
from secagg.oneshot.suites import SECRET_BYTES, BoxKey, as_suite
from secagg.protocol import Identity
from secagg.protocol.shape import Security
from secagg.simulate import simulate_one_shot, temporary_journals

OneShot = Annotated[
    bool,
    typer.Option("--one-shot", metavar="", help="One message from each client, and helpers."),
]
Helpers = Annotated[int, typer.Option(help="Number of helpers, with --one-shot.")]
Suite = Annotated[
    str, typer.Option(metavar="hybrid|x25519", help="HPKE suite, with --one-shot.")
]
NoiseSigma = Annotated[
    float | None,
    typer.Option(
        "--noise",
        help="Standard deviation of the noise that helpers add, in steps of the encoding, "
        f"2^-{FixedPoint.fractional_bits}, with --one-shot.",
        show_default="no noise",
    ),
]
HELPERS, THRESHOLD, SUITE = 3, 2, "hybrid"
"""Defaults of the options."""
_PLACE_BYTES, _COUNTS_BYTES = 2, 16
_SECURITY = ("semi-honest", "active")
_DELTA = 1e-9  # well below 1 / n for every n

Keys = Sequence[tuple[bytes, bytes]]


def check_options(*, one_shot: bool, only: Iterable[str], never: Iterable[str]) -> None:
    """Raise `ParameterError` for options of the running command that have no effect.

    `only` are parameters that need ``--one-shot``, `never` those that it excludes.
    """
    if given := given_options(never if one_shot else only):
        relation = "cannot be combined with --one-shot; leave out one of them"
        raise ParameterError(
            f"{', '.join(given)} {relation if one_shot else 'needs --one-shot'}"
        )


def costs(
    clients: int,
    length: int,
    clip: float,
    modulus_bits: int | None,
    helpers: int,
    threshold: int | None,
    security: str,
    suite: str,
    noise: float | None,
    *,
    json: bool,
) -> None:
    """Print the bytes of a report, of a helper and of its answer."""
    check_integer("helpers", helpers, 1, MAX_HELPERS)
    kind = as_suite(suite)
    keys = [
        (BoxKey(kind, os.urandom(SECRET_BYTES[kind])).public, Identity.generate().public)
        for _ in range(helpers)
    ]
    encoding = FixedPoint(clip, rounding="nearest")
    shape = (clients, length, encoding, modulus_bits, threshold, security, DROPOUT, noise)
    params = _params(keys, *shape)
    _echo(params, _traffic(params, clients), json=json)


def simulate(
    clients: int,
    length: int,
    clip: float,
    modulus_bits: int | None,
    dropout: float,
    seed: int,
    helpers: int,
    threshold: int | None,
    security: str,
    suite: str,
    noise: float | None,
    *,
    json: bool,
) -> None:
    """Run a batch in which a fraction of the clients never reports, and check its sum."""
    check_integer("seed", seed, 0, (1 << 32) - 1)
    vectors = RandomVectors(clients, length, clip, seed)
    encoding = FixedPoint(clip, rounding="nearest")
    kind = as_suite(suite)
    with temporary_journals(helpers, kind) as journals, progress("clients", clients) as show:
        keys = [journal.public for journal in journals]
        shape = (clients, length, encoding, modulus_bits, threshold, security, dropout, noise)
        params = _params(keys, *shape)
        result = simulate_one_shot(
            vectors, params, journals, absent=leaving(clients, dropout), progress=show
        )
    bound = params.noise_bound
    check_sum(result.integers, result.survivors, vectors.__getitem__, encoding, noise=bound)
    document: Document = {
        "survivors": len(result.survivors),
        "exact": params.noise is None,
        "bytes_up": result.report_bytes,
        "helper_bytes_in": max(result.helper_bytes_in.values()),
        "helper_bytes_out": max(result.helper_bytes_out.values()),
        "client_seconds": result.client_seconds / len(result.survivors),
        "server_seconds": result.server_seconds,
        "helper_seconds": max(result.helper_seconds.values()),
        "peak_memory": peak_memory(),
    }
    _echo(params, document, json=json)


def _params(
    keys: Keys,
    clients: int,
    length: int,
    encoding: FixedPoint,
    modulus_bits: int | None,
    threshold: int | None,
    security: str,
    dropout: float,
    noise: float | None,
) -> OneShotParams:
    if security not in _SECURITY:
        raise ParameterError(f"security must be semi-honest or active, not {security!r}")
    found = OneShotParams.suggest(
        clients,
        length,
        encoding,
        helpers=keys,
        security=cast("Security", security),
        dropout=dropout,
        threshold=threshold,
        session=b"secagg",
        # a Fraction is what Noise makes of a float
        noise=None if noise is None else Noise(cast("Fraction", noise)),
    )
    return replace(found, modulus_bits=modulus_bits)  # by default 32, which need no packing


def _privacy(params: OneShotParams) -> Document:
    """Return the noise and its (ε, δ); ε is None without dp-accounting."""
    if params.noise is None:
        return {}
    try:
        found = epsilon(params, _DELTA)
    except MissingExtra:
        found = None
    return {"noise": float(params.noise.sigma), "epsilon": found, "delta": _DELTA}


def _traffic(params: OneShotParams, clients: int) -> Document:
    """Return the bytes of a client and of a helper, if all clients report."""
    layout, signers = params.layout, len(params.helpers) if params.quorum else 0
    boxes = clients * layout.record(1) + -(-clients // CHUNK) * (START_BYTES + _PLACE_BYTES)
    request = START_BYTES + _COUNTS_BYTES + ID_BYTES * clients
    reply = START_BYTES + _PLACE_BYTES + DIGEST_BYTES
    signed = _PLACE_BYTES + layout.signature
    answer = reply + layout.packed * len(params.held_by(1))
    return {
        "bytes_up": layout.report,
        "helper_bytes_in": boxes + request + (request + signers * signed if signers else 0),
        "helper_bytes_out": answer + (reply + layout.signature if signers else 0),
    }


def _echo(params: OneShotParams, document: Document, *, json: bool) -> None:
    """Print parameters and costs, as a JSON document or as a table of two columns."""
    count = len(params.helpers)
    missing = count - (params.quorum or params.threshold)
    privacy = _privacy(params)
    if json:
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
        typer.echo(as_json(shape | privacy | document))
        return
    amounts = {name: one for name, one in document.items() if isinstance(one, int | float)}
    rows = [
        ("helpers", f"{params.threshold} of {count} open, {missing} may be missing"),
        ("security", f"{params.security}, {params.suite}"),
        ("modulus", str(params.ring)),
    ]
    if "survivors" in amounts:
        kind = "noisy" if privacy else "exact"
        rows.append(("sum", f"{kind}, of {amounts['survivors']} of {params.n_clients} vectors"))
    if privacy:
        rows.append(("noise", f"{privacy['noise']:g} steps, of each of {params.seeds} seeds"))
        known = privacy["epsilon"]
        stated = "ε needs dp-accounting" if known is None else f"ε = {known:.3g}"
        rows.append(("privacy", f"{stated}, δ = {_DELTA:g}, for any change of one vector"))
    rows += [
        ("a client sends", volume(amounts["bytes_up"])),
        ("a helper receives", volume(amounts["helper_bytes_in"])),
        ("a helper sends", volume(amounts["helper_bytes_out"])),
    ]
    for party in ("client", "server", "helper"):
        if f"{party}_seconds" in amounts:
            whose = "the server's" if party == "server" else f"a {party}'s"
            rows.append((f"{whose} time", duration(amounts[f"{party}_seconds"])))
    if "peak_memory" in amounts:
        rows.append(("peak memory", f"{volume(amounts['peak_memory'])}, all in one process"))
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)
