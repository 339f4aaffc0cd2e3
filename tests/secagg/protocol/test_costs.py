"""The formulas of docs/parameters.md against the bytes of real rounds."""

from __future__ import annotations

import numpy as np
import pytest

from harness import TOY, Cohort, make_params
from secagg import Integers, ParameterError, Phase, RoundParams
from secagg.protocol import messages
from secagg.protocol.traffic import client_traffic

PHASES = (Phase.ADVERTISE_KEYS, Phase.SHARE_KEYS, Phase.MASKED_INPUT, Phase.UNMASKING)


WIDTHS = [0, 127, 128, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]


@pytest.mark.parametrize(
    ("n", "changes"),
    [
        (9, {"modulus_bits": 25}),
        (20, {"neighbours": 6, "modulus": (1 << 61) - 1}),
        pytest.param(300, {"neighbours": 20}, marks=pytest.mark.large),
        (30, {"security": "active", "max_weight": 9}),
    ],
)
def test_dropouts_shorten_messages_as_in_the_formula(n, changes) -> None:
    """Some drop out before each phase; every message against what its client sees."""
    params = make_params(n, 2 if "neighbours" in changes else None, **changes)
    ids = [*WIDTHS, *range(1000, 1000 + n)][:n]
    cohort = Cohort(params, ids, policy=TOY)
    phases = cohort.phases()
    sent, seen = [], []
    for i in range(len(phases)):
        inbox = dict(cohort.inbox)
        last = i == len(phases) - 1
        gone = () if last else ids[i :: 15 if params.active else 9]
        out = cohort.step(without=gone)
        if i == 1:
            graph = cohort.server._stage.cohort.graph
        if not last:
            cohort.deliver(out)
        sent.append((inbox, out))
        seen.append(set(out))
    for u in seen[-1]:
        holders = set(graph.holders[u])
        expected = client_traffic(
            params,
            client_id=u,
            cohort=len(seen[0]),
            u2=len(holders & seen[1]),
            u3=len(holders & seen[2]),
            u4=len(seen[3]) if params.active else None,
        )
        for phase, (inbox, out) in zip(phases, sent, strict=True):
            assert (len(out[u]), len(inbox[u])) == (expected[phase].up, expected[phase].down)
    assert len(seen[-1]) >= n // 3


def test_impossible_counts_are_rejected() -> None:
    wrong = [{"u2": 8}, {"u2": 0}, {"u2": 3, "u3": 4}, {"u3": 0}, {"cohort": 21}, {"cohort": 0}]
    wrong += [{"cohort": 5, "u2": 6}, {"client_id": -1}, {"client_id": 1 << 64}]
    for changes in wrong:
        with pytest.raises(ParameterError):
            client_traffic(make_params(20, neighbours=6), **changes)


def test_decoder_bound_fits_every_message_tightly() -> None:
    """The frame of 256 bytes covers everything outside lists, vectors and keys."""
    kinds = (
        (messages.AdvertiseKeys, Phase.ADVERTISE_KEYS, "up"),
        (messages.Roster, Phase.SHARE_KEYS, "down"),
        (messages.ShareKeys, Phase.SHARE_KEYS, "up"),
        (messages.Shares, Phase.MASKED_INPUT, "down"),
        (messages.MaskedInput, Phase.MASKED_INPUT, "up"),
        (messages.ConsistencyRequest, Phase.CONSISTENCY_CHECK, "down"),
        (messages.ConsistencySignature, Phase.CONSISTENCY_CHECK, "up"),
        (messages.UnmaskRequest, Phase.UNMASKING, "down"),
        (messages.UnmaskShares, Phase.UNMASKING, "up"),
    )
    cases: list[RoundParams] = [
        make_params(3),
        make_params(3, security="active"),
        make_params(1 << 20, security="active", encoding=Integers(max=3)),
        make_params(1 << 20, neighbours=100_000, encoding=Integers(max=3)),
        make_params(1 << 20, length=(1 << 30) - 1, encoding=Integers(max=3)),
    ]
    for params in cases:
        traffic = client_traffic(params, client_id=np.uint64((1 << 64) - 1))
        for kind, phase, way in kinds:
            if phase not in traffic:
                continue
            size = getattr(traffic[phase], way)
            # the lists that leave out the client itself are at most 8 + 96 bytes shorter, and
            # the peer's parameters may be longer
            spare = (
                378 - len(params.to_bytes()) if "parameters" in kind.__struct_fields__ else 0
            )
            assert messages.max_bytes(kind, params) - 256 - 104 - spare < size
            assert size <= messages.max_bytes(kind, params)


@pytest.mark.parametrize("n", [3, 4, 32, 1000, 8192, 100_000])
def test_headers_grow_with_the_lists(n: int) -> None:
    """Byte strings below, at and above 2^8 and 2^16, against the encoder itself."""
    params = make_params(n, encoding=Integers(max=3))
    traffic = client_traffic(params, client_id=n - 1)
    digest, others = bytes(32), n - 1
    sealed, ids = bytes(messages.SEALED_BYTES * others), bytes(8 * n)
    sent = [
        messages.ShareKeys(n - 1, digest, digest, sealed),
        messages.UnmaskShares(n - 1, digest, bytes(messages.SHARE_BYTES * n)),
    ]
    received = [
        messages.Roster(params.to_bytes(), n, digest, ids, bytes(32 * n), bytes(32 * n), b""),
        messages.UnmaskRequest(digest, ids, b"", b"", b""),
    ]
    for phase, up, down in zip((PHASES[1], PHASES[3]), sent, received, strict=True):
        assert traffic[phase].up == len(messages.encode(up))
        assert traffic[phase].down == len(messages.encode(down))
    inbox = messages.Shares(digest, bytes(8 * others), sealed)
    assert traffic[PHASES[2]].down == len(messages.encode(inbox))
