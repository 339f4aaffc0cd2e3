"""Command ``secagg params``: neighbours, threshold, suite and estimated costs of a round."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import typer

from secagg import graph
from secagg.bench.cases import round_params
from secagg.cli import console as options
from secagg.cli import output, planned_noise, suites
from secagg.cli.estimates import estimate
from secagg.encoding import FixedPoint
from secagg.graph.graph import CORRUPT, DROPOUT, count, to_adversary
from secagg.kit.table import volume
from secagg.privacy import Plan
from secagg.protocol import RoundParams
from secagg.protocol.params_bytes import MAX_SESSION_BYTES
from secagg.protocol.suggestion import suggest_graph
from secagg.protocol.suites import NAMES
from secagg.protocol.traffic import Traffic, blame_traffic, client_traffic

EXAMPLES = options.examples(
    "secagg params --clients 1000 --corrupt 0.2 --dropout 0.1",
    "secagg params --clients 10000 --corrupt 0.33 --dropout 0.1 --length 1000000 --json",
    "secagg params --clients 1000 --epsilon 2 --delta 1e-6 --rounds 100 --norm 1",
    "secagg params --epsilon 2 --delta 1e-6 --rounds 100 --norm 1",
)


def params(
    clients: Annotated[
        int | None,
        typer.Option(
            help="Number of clients, n.",
            show_default="with --epsilon, a table for 100, 1,000 and 10,000 clients",
        ),
    ] = None,
    corrupt: options.Corrupt = CORRUPT,
    dropout: options.Dropout = DROPOUT,
    security: Annotated[
        str,
        typer.Option(
            metavar="semi-honest|semi-malicious|active",
            help="Assumed server: it follows the protocol, or asks different clients for "
            "different kinds of share, or does whatever it likes.",
        ),
    ] = "semi-honest",
    suite: suites.SuiteOption = None,
    length: options.Length = 100_000,
    clip: options.Clip = 8.0,
    modulus_bits: options.ModulusBits = None,
    sigma: options.Sigma = 40,
    eta: Annotated[
        int, typer.Option(help="Largest probability that dropouts end the round, as 2^-eta.")
    ] = 30,
    epsilon: planned_noise.Epsilon = None,
    delta: planned_noise.Delta = None,
    rounds: planned_noise.Rounds = None,
    norm: planned_noise.Norm = None,
    as_json: options.Json = False,
) -> None:
    """Find neighbours, threshold and suite, and estimate the costs of a round.

    Times follow from measurements of primitives on this machine. Bytes are the largest of any
    client: a client that stays to the end and loses no neighbour. With --epsilon the command
    plans noise for differential privacy, too; without --clients it prints what to expect for
    some numbers of clients.
    """
    with options.command():
        asked = suites.as_chosen(suite)

        def plan_of(number: int) -> Plan | None:
            return planned_noise.planned(
                number, length, corrupt, dropout,
                epsilon=epsilon, delta=delta, rounds=rounds, norm=norm, bits=modulus_bits,
            )  # fmt: skip

        if clients is None:
            planned_noise.show_sizes(plan_of, json=as_json)
            return
        noise = plan_of(clients)
        server = "active" if security == "active" else to_adversary(security)
        if noise is None:
            found = suggest_graph(clients, corrupt, dropout, server, sigma, eta)
        else:
            found = noise.graph(server, sigma, eta)
        k, t, best = *found, found.highest_threshold
        colluders = count(corrupt, clients)
        # on the complete graph fewer clients never unmask a sum
        fewest = max(3, t)
        if k is not None and server != "active":
            fewest = graph.smallest_cohort(clients, k, t, colluders, dropout, server, sigma)
        if noise is None:
            encoding = FixedPoint(clip, rounding="nearest")
            chosen = round_params(clients, t, k, length, encoding, modulus_bits, asked)
            chosen = suites.as_served(chosen, asked, modulus_bits)
        else:
            chosen = noise.params(neighbours=k, threshold=t, suite=asked)
            fewest = max(fewest, chosen.min_survivors)
        # signatures name the session, and the longest name costs most
        if server == "active":
            chosen = replace(chosen, security="active", session=bytes(MAX_SESSION_BYTES))
        traffic = client_traffic(chosen, client_id=clients - 1)
        by_suite = {name: _total(replace(chosen, suite=name)) for name in NAMES}
        whole, blame = by_suite[chosen.suite], blame_traffic(chosen)
        client_seconds, server_seconds = estimate(chosen, int(dropout * clients))
        bits = (found.privacy_bits, found.completion_bits)
        privacy, completion = (None if one == math.inf else one for one in bits)
        document: options.Document = {
            "highest_threshold": best,
            "privacy_bits": privacy,
            "completion_bits": completion,
            "smallest_cohort": fewest,
            **suites.as_document(chosen, asked),
            **_as_document(whole),
            "phases": {str(phase): _as_document(each) for phase, each in traffic.items()},
            "suites": {name: _as_document(each) for name, each in by_suite.items()},
            "client_seconds": client_seconds,
            "server_seconds": server_seconds,
        }
        event = "a client is exposed"
        assumed = f"if at most {corrupt:.3g} of the clients collude and {dropout:.3g} drop out"
        caveat = [("", assumed)]
        if server != "semi-honest":
            event = "both secrets of one client are rebuilt"
        if server == "semi-malicious":
            caveat += [("", "not counted: dropouts that such a server invents")]
        facts = [
            ("threshold t", f"{t}" if best == t else f"{t} to {best}"),
            ("privacy", f"{event}: {_chance(privacy)}"),
            *caveat,
            ("smallest cohort", f"{fewest} of {clients}, if the same {colluders} collude"),
            (
                "",
                "so many must turn up at the start, or no client answers: plan --clients for "
                "those that come, since --dropout counts those that leave later"
                if fewest > t
                else "so many must turn up, and stay to the end",
            ),
            ("completion", f"dropouts end the round: {_chance(completion)}"),
            ("suite", f"{chosen.suite}, {suites.in_words(chosen, asked)}"),
        ]
        further = [
            (f"with {name}", _in_words(each))
            for name, each in by_suite.items()
            if name != chosen.suite
        ]
        if chosen.active:
            document["blame"] = _as_document(blame)
            further.insert(0, ("blame takes", _in_words(blame)))
        if noise is not None:
            document["privacy"] = planned_noise.as_document(noise, chosen)
            further += planned_noise.in_words(noise, chosen, asked)
        output.echo(chosen, document, facts, further, json=as_json)


def _total(params: RoundParams) -> Traffic:
    """Return the bytes of a client in all phases."""
    phases = client_traffic(params, client_id=params.n_clients - 1).values()
    return Traffic(sum(one.up for one in phases), sum(one.down for one in phases))


def _as_document(traffic: Traffic) -> options.Document:
    return {"bytes_up": traffic.up, "bytes_down": traffic.down}


def _in_words(traffic: Traffic) -> str:
    return f"{volume(traffic.up)} sent, {volume(traffic.down)} received"


def _chance(bits: float | None) -> str:
    if bits is None:
        return "never"
    return f"at most 2^-{bits:.1f}" if bits else "with so many of so few"
