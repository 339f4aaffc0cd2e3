"""Command ``secagg params``: neighbours, threshold and estimated costs of a round.

Times are estimated from timings of single operations on this machine, multiplied by their
counts. Only work that grows with clients or elements is counted; see docs/parameters.md.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Annotated

import numpy as np
import typer

from secagg import _fast, graph, shamir
from secagg.bench.cases import round_params
from secagg.cli import console as options
from secagg.cli import output, planned_noise
from secagg.encoding import FixedPoint
from secagg.graph.graph import CORRUPT, DROPOUT, count, to_adversary
from secagg.kit.timing import mean_seconds
from secagg.privacy import Plan
from secagg.protocol import RoundParams, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SHARE_BYTES, SHARE_LIMBS
from secagg.protocol.params_bytes import MAX_SESSION_BYTES
from secagg.protocol.suggestion import suggest_graph
from secagg.protocol.traffic import client_traffic
from secagg.server.unmasking import Recovery

# most elements and shares that are timed; larger times are scaled
_ELEMENTS, _SHARES = 1 << 18, 512
# a round expands so many masks together, so they are timed together
_MASKS = 8
# likewise, so many keys are found together
_PEERS = 64

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
    """Find neighbours and threshold, and estimate the costs of a round.

    Times follow from measurements of primitives on this machine. Bytes are the largest of any
    client: a client that stays to the end and loses no neighbour. With --epsilon the command
    plans noise for differential privacy, too; without --clients it prints what to expect for
    some numbers of clients.
    """
    with options.command():

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
            chosen = round_params(clients, t, k, length, encoding, modulus_bits)
        else:
            chosen = noise.params(neighbours=k, threshold=t)
            fewest = max(fewest, chosen.min_survivors)
        # signatures name the session, and the longest name costs most
        if server == "active":
            chosen = replace(chosen, security="active", session=bytes(MAX_SESSION_BYTES))
        traffic = client_traffic(chosen, client_id=clients - 1)
        client_seconds, server_seconds = estimate(chosen, int(dropout * clients))
        bits = (found.privacy_bits, found.completion_bits)
        privacy, completion = (None if one == math.inf else one for one in bits)
        document: options.Document = {
            "highest_threshold": best,
            "privacy_bits": privacy,
            "completion_bits": completion,
            "smallest_cohort": fewest,
            "bytes_up": sum(phase.up for phase in traffic.values()),
            "bytes_down": sum(phase.down for phase in traffic.values()),
            "phases": {
                str(phase): {"bytes_up": each.up, "bytes_down": each.down}
                for phase, each in traffic.items()
            },
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
        ]
        if noise is not None:
            document["privacy"] = planned_noise.as_document(noise, chosen)
        further = [] if noise is None else planned_noise.in_words(noise, chosen)
        output.echo(chosen, document, facts, further, json=as_json)


def _chance(bits: float | None) -> str:
    if bits is None:
        return "never"
    return f"at most 2^-{bits:.1f}" if bits else "with so many of so few"


def estimate(params: RoundParams, dropped: int) -> tuple[float, float]:
    """Estimate the seconds of a client and of the server in a whole round.

    The seconds are of one core of this machine, from timings of the round's operations, which
    take less than a second. `dropped` clients drop out after sharing their keys, when dropouts
    cost the server most.
    """
    n, others = params.n_clients, params.holders - 1
    agree, make_pair, check, seal, find = _keys()
    mask, take = _vectors(params)
    share, rebuild = _shares(params, dropped)
    client = 2 * make_pair + others * (2 * agree + 2 * seal + mask) + mask + take + share
    survivors = n - dropped
    # no input has masks between two dropped-out clients
    pairs = dropped * others * survivors / max(1, n - 1)
    server = (
        n * 2 * check
        + survivors * (take + rebuild + mask)
        + dropped * (rebuild + make_pair)
        + pairs * (find + mask)
    )
    return client, server


def _keys() -> tuple[float, float, float, float, float]:
    """Return the seconds of work with keys.

    The work is a key agreement, a new key pair, a check of a key, a sealing, and a mask key
    from a client's revealed masking seed.
    """
    mine, theirs = (keys.KeyPair(os.urandom(keys.SEED_BYTES)) for _ in range(2))
    session = os.urandom(keys.SEED_BYTES)
    one = np.ones(1, np.uint64), keys.rows_of([theirs.public])

    def agree() -> None:
        shared = keys.rows_of([mine.agree(theirs.public) or b""])
        keys.pairwise_mask_keys(shared, session, (0, mine.public), *one)

    make_pair = mean_seconds(lambda: keys.KeyPair(os.urandom(keys.SEED_BYTES)))
    check = mean_seconds(lambda: keys.is_usable(mine.public))
    peers = np.ones(_PEERS, np.uint64), keys.rows_of([theirs.public] * _PEERS)
    shares = np.zeros((_PEERS, 2 * SHARE_BYTES), np.uint8)
    seal = mean_seconds(lambda: keys.seal(peers[1], session, 0, peers[0], shares))
    find = mean_seconds(
        lambda: keys.revealed_mask_keys(mine.seed, session, (0, mine.public), *peers)
    )
    return mean_seconds(agree), make_pair, check, seal / _PEERS, find / _PEERS


def _vectors(params: RoundParams) -> tuple[float, float]:
    """Return the seconds of a mask, and of unpacking and adding a vector, at full length."""
    ring, size = params.ring, min(params.elements, _ELEMENTS)
    values, total = ring.zeros(size), ring.zeros(size)
    masks = MaskSum()
    for i in range(_MASKS):
        masks.add(os.urandom(16), negate=bool(i % 2))
    packed = _fast.pack_bits(values, ring.bits)

    def take() -> None:
        _fast.unpack_bits(packed, ring.bits, values)
        ring.add_into(total, values)

    scale = params.elements / size
    mask = mean_seconds(lambda: masks.apply(total, ring)) / _MASKS
    ring.reduce(total)
    return scale * mask, scale * mean_seconds(take)


def _shares(params: RoundParams, dropped: int) -> tuple[float, float]:
    """Return the seconds to share two secrets among all holders, and to rebuild a secret."""
    # time large cohorts at a smaller scale, with the same ratio of threshold to holders
    scale = max(1.0, params.holders / _SHARES)
    holders, t = int(params.holders / scale), max(1, int(params.threshold / scale))
    answered = max(t, round(holders * (1 - dropped / params.n_clients)))
    points = np.arange(1, holders + 1, dtype=np.uint64)
    secret = os.urandom(keys.SEED_BYTES)
    limbs = np.tile(shamir.to_limbs(secret), 2)
    rows = shamir.split_limbs(limbs, t, points, os.urandom)[:answered, None, :SHARE_LIMBS]
    # on the complete graph all secrets have the same holders, and are checked together
    together, power = (holders, 1) if params.neighbours is None else (1, 2)
    shares = np.repeat(rows, together, axis=1)

    def rebuild() -> None:
        Recovery(t, b"").rebuild(
            range(together),
            lambda _, found: found == secret,
            range(answered),
            points[:answered],
            shares,
        )

    split = mean_seconds(lambda: shamir.split_limbs(limbs, t, points, os.urandom))
    return split * scale**2, mean_seconds(rebuild) / together * scale**power
