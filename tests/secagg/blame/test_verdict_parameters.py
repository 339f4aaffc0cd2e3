"""Claims under other parameters, rosters and policies (docs/protocol.md, §14.2)."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from blamed_round import (
    HONEST,
    IDS,
    LIAR,
    POLICY,
    SignedRound,
    add_one,
    convicts_nobody,
    guilty,
    true_shares,
)
from harness import make_params
from raised import rejects
from secagg import ClientPolicy, ParameterError, Registry, blame


def test_check58_shares_of_one_round_under_the_threshold_of_another() -> None:
    """Without the session from P, fourteen shares of t = 19 would convict an honest dealer."""
    ids = range(1, 21)
    round_ = SignedRound("x25519", ids, threshold=19)
    lower = dataclasses.replace(round_.params, threshold=14)
    policy = ClientPolicy(colluders=0)
    packed = lower.to_bytes()
    data = true_shares(round_, 5, holders=range(1, 15))
    assert len(packed) == len(round_.params.to_bytes())
    forged = data[:4] + packed + data[4 + len(packed) :]
    convicts_nobody("signature", forged, round_, policy)


def test_another_roster() -> None:
    round_ = SignedRound()
    round_.deal(LIAR, add_one(0, 1))
    verdict = round_.verdict_of_shares(LIAR, 0, IDS)
    assert verdict is not None
    assert blame.check(verdict.data, round_.registry, POLICY) == LIAR
    data = verdict.data.replace(round_.roster, bytes(32))
    convicts_nobody("signature", data, round_)


def test_parameters_of_the_other_variant() -> None:
    round_ = SignedRound()
    packed = make_params(7, 5).to_bytes()
    head = b"\4\1" + struct.pack("<H", len(packed)) + packed
    convicts_nobody("parameters", head + bytes(40), round_)


@pytest.mark.parametrize("packed", [b"", b"\4", b"\3" * 80, bytes(80)], ids=len)
def test_parameters_that_are_none(packed: bytes) -> None:
    head = b"\4\1" + struct.pack("<H", len(packed)) + packed
    convicts_nobody("parameters", head + bytes(40), SignedRound())


@pytest.mark.parametrize(
    "policy",
    [
        ClientPolicy(colluders=3),
        ClientPolicy(min_clients=8),
        ClientPolicy(min_threshold=6),
        ClientPolicy(corrupt=0.5),
    ],
)
def test_parameters_that_the_policy_rejects(policy: ClientPolicy) -> None:
    round_ = SignedRound()
    data = guilty(round_, "shares").data
    with pytest.raises(ParameterError):
        blame.check(data, round_.registry, policy)


def test_policy_counts_colluders_in_the_registry() -> None:
    """A quarter of the seven clients is two; of the registry's nine it is three, too many."""
    round_, policy = SignedRound(), ClientPolicy(corrupt=0.25)
    data = guilty(round_, "answer").data
    registry = Registry({u: round_.registry[u] for u in IDS})
    assert blame.check(data, registry, policy) == LIAR
    with pytest.raises(ParameterError):
        blame.check(data, round_.registry, policy)


def test_arguments_of_other_types() -> None:
    round_ = SignedRound()
    data = guilty(round_, "answer").data
    for arguments in (
        ("text", round_.registry),
        (data, dict(round_.registry)),
        (data, round_.registry, "policy"),
    ):
        with pytest.raises(ParameterError):
            blame.check(*arguments)  # type: ignore[arg-type]


def test_default_policy_is_that_of_clients() -> None:
    """Two of seven collude, so two complaints prove nothing and three do."""
    round_ = SignedRound()
    registry = Registry({u: round_.registry[u] for u in IDS})
    for count, check in ((2, "count"), (3, None)):
        lists = {at: round_.accept(IDS[at], {HONEST: 1}) for at in range(count)}
        data = round_.accuser.complaints(round_.dealt[HONEST], lists).data
        if check is None:
            assert blame.check(data, registry) == HONEST
        else:
            rejects(check, lambda data=data: blame.check(data, registry))


def test_own_encoding_of_an_application() -> None:
    class Halves(type(make_params().encoding)):  # type: ignore[misc]
        def canonical(self) -> bytes:
            return b"halves"

    encoding = Halves(clip=8.0, rounding="nearest")
    round_ = SignedRound("x25519", encoding=encoding)
    data = guilty(round_, "answer").data
    convicts_nobody("parameters", data, round_)
    assert blame.check(data, round_.registry, POLICY, encoding) == LIAR
