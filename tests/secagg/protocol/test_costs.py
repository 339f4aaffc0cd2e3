"""The formulas of docs/parameters.md against the bytes of real rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness import TOY, Cohort, make_params
from secagg import Integers, ParameterError, Phase, RoundParams
from secagg.protocol import dealing, messages
from secagg.protocol.params_bytes import MAX_PARAMS_BYTES
from secagg.protocol.traffic import Traffic, blame_traffic, client_traffic

WIDTHS = [0, 127, 128, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]


@pytest.mark.parametrize(
    ("n", "changes"),
    [
        (9, {"modulus_bits": 25}),
        (20, {"neighbours": 6, "modulus": (1 << 61) - 1}),
        pytest.param(300, {"neighbours": 20}, marks=pytest.mark.large),
        (30, {"security": "active", "max_weight": 9}),
        (9, {"suite": "hybrid"}),
        (20, {"suite": "hybrid", "neighbours": 6}),
        (30, {"suite": "hybrid", "security": "active"}),
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
    many: dict[str, object] = {"n": 1 << 20, "encoding": Integers(max=3)}
    cases: list[RoundParams] = [
        make_params(**settings, suite=suite)
        for suite in ("x25519", "hybrid")
        for settings in (
            {"n": 3},
            {"n": 3, "security": "active"},
            many | {"security": "active"},
            many | {"neighbours": 100_000},
            many | {"length": (1 << 30) - 1},
        )
    ]
    for params in cases:
        traffic = client_traffic(params, client_id=np.uint64((1 << 64) - 1))
        for kind, phase, way in kinds:
            if phase not in traffic:
                continue
            size = getattr(traffic[phase], way)
            most = messages.max_bytes(kind, params)
            assert most - 256 - spare(kind, params) < size <= most


def spare(kind: type[messages.Message], params: RoundParams) -> int:
    """Bytes of the bound that a round of honest clients leaves free, but for the frame."""
    hybrid, signed = params.suite == "hybrid", 0
    if "parameters" in kind.__struct_fields__:  # the peer's may be longer
        return MAX_PARAMS_BYTES - len(params.to_bytes())
    if kind is messages.MaskedInput:  # complaints, and a deposit for the client itself
        signed = (9 + 96 * hybrid) * params.holders if params.active else 0
        return 32 * hybrid + signed
    if kind not in (messages.ShareKeys, messages.Shares):
        return 0
    # the lists leave out the client itself
    box = messages.SEALED_BYTES[params.suite] + 32 * hybrid
    if kind is messages.Shares and params.active:
        signed = 32 + 64 + 4 + 64 + 32 * dealing.depth(params.holders)
    return box + signed + 8 * (kind is messages.Shares)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("n", [3, 4, 32, 1000, 8192, 100_000])
def test_headers_grow_with_the_lists(n: int, suite: str, security: str) -> None:
    """Byte strings below, at and above 2^8 and 2^16, against the encoder itself."""
    params = make_params(n, encoding=Integers(max=3), suite=suite, security=security)
    traffic, packed = client_traffic(params, client_id=n - 1), params.to_bytes()
    hybrid, active = suite == "hybrid", security == "active"
    digest, others, signature = bytes(32), n - 1, bytes(64 * active)
    checks, box = bytes(32 * hybrid), messages.SEALED_BYTES[suite]
    kem_key, values = bytes(1184 * hybrid), bytes(params.ring.packed_bytes(4))
    hashes, path = bytes(64 * active), bytes(32 * active * dealing.depth(n))
    point, commitment = bytes(4 * active), bytes(32 * active)
    sent = {
        Phase.ADVERTISE_KEYS: messages.AdvertiseKeys(
            n - 1, packed, digest, digest, kem_key, signature
        ),
        Phase.SHARE_KEYS: messages.ShareKeys(
            n - 1,
            digest,
            digest,
            bytes(box * others),
            checks * others,
            hashes * n,
            signature,
        ),
        Phase.MASKED_INPUT: messages.MaskedInput(
            n - 1, digest, checks * others, b"", b"", signature, values
        ),
        Phase.UNMASKING: messages.UnmaskShares(
            n - 1, digest, bytes(messages.SHARE_BYTES * n), signature
        ),
    }
    columns = (bytes(8), bytes(box), checks, commitment, signature, point, hashes, path)
    received = {
        Phase.SHARE_KEYS: messages.Roster(
            packed, n, digest, bytes(8 * n), digest * n, digest * n, kem_key * n, signature * n
        ),
        Phase.MASKED_INPUT: messages.Shares(digest, *(item * others for item in columns)),
        Phase.UNMASKING: messages.UnmaskRequest(
            digest, bytes(8 * n), b"", bytes(8 * active * n), signature * n
        ),
    }
    for phase, message in sent.items():
        assert traffic[phase].up == len(messages.encode(message))
    for phase, message in received.items():
        assert traffic[phase].down == len(messages.encode(message))


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("n", [3, 10, 61, 100, 1000])
def test_blame_takes_hashes_signatures_and_paths(n: int, suite: str) -> None:
    """Headers of byte strings grow by 3 bytes at most."""
    params = make_params(n, suite=suite, security="active")
    found, depth = blame_traffic(params), dealing.depth(n)
    assert 0 <= found.up - (64 * n + 3 * 64) <= 3
    assert 0 <= found.down - (n - 1) * (32 + 64 + 4 + 64 + 32 * depth) <= 15
    assert blame_traffic(replace(params, security="semi-honest")) == Traffic(0, 0)
    # the rest of the active variant: signatures of keys and of the survivors, and the check
    active, other = (
        client_traffic(each) for each in (params, replace(params, security="semi-honest"))
    )
    more = [sum(one.up for one in each.values()) for each in (active, other)]
    check = active[Phase.CONSISTENCY_CHECK].up
    assert more[0] - more[1] == found.up + check + 64
