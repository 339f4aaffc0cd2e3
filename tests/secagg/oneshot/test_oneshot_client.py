"""The client's report: sizes, what it is bound to, fresh secrets, and arguments."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from oneshot_parties import LENIENT, parties
from secagg import Identity, ParameterError, client_id
from secagg._fast import reference_masks
from secagg._hedging import Hedged
from secagg.oneshot import OneShotPolicy, messages, report, seeds
from secagg.testing import InsecureReplayedEntropy, make_identity

VECTOR = np.array([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("suite", "security", "most"),
    [
        ("x25519", "active", 450),
        ("x25519", "semi-honest", 450),
        ("hybrid", "active", 2_700),
        ("hybrid", "semi-honest", 2_700),
    ],
)
def test_overhead_of_a_report_of_two_helpers(suite: str, security: str, most: int) -> None:
    with parties(2, 2, suite=suite, security=security) as made:
        assert len(made.report(1)) - made.params.layout.packed <= most


def test_length_of_a_report_depends_on_nothing_private() -> None:
    with parties(3, 2, max_weight=3) as made:
        assert len({len(made.report(u, seed=seed)) for u in (0, 29) for seed in range(3)}) == 1


def test_every_draw_is_new_and_no_two_reports_share_a_mask() -> None:
    with parties(2, 2, n_clients=5) as made:
        sent = [
            report(VECTOR, made.params, 1, identity=make_identity(1), entropy=os.urandom)
            for _ in range(2)
        ]
        size = made.params.layout.packed
        assert sent[0][-size:] != sent[1][-size:]
        assert sent[0][42:106] != sent[1][42:106]


def mask_key(seed: bytes, params: bytes, client_id: int, index: int) -> bytes:
    row = np.frombuffer(seed, np.uint8).reshape(1, -1)
    return seeds.mask_keys(row, params, [(client_id, index)]).tobytes()


def test_the_masks_are_those_of_the_documented_derivation() -> None:
    """y = x + Σ PRG(k_S) with the seeds in the order of the draw."""
    with parties(3, 2, security="semi-honest", length=2) as made:
        params, entropy = made.params, InsecureReplayedEntropy("client")
        sent = report(np.array([5, 6]), params, 7, policy=LENIENT, entropy=entropy)
        statement = b"secagg/1 one-shot seeds" + params.digest + (7).to_bytes(8, "little")
        fresh = InsecureReplayedEntropy("client")
        drawn = Hedged(fresh, b"", statement)(48)
        assert fresh.drawn == entropy.drawn
        values = np.array([5, 6], np.uint32)
        for i in range(3):
            seed = drawn[16 * i : 16 * i + 16]
            key = mask_key(seed, params.digest, 7, i + 1)
            stream = np.frombuffer(reference_masks.keystream(key, 8), "<u4")
            values += stream
            stated = sent[42 + 32 * i : 74 + 32 * i]
            assert stated == seeds.commitment(seed, params.digest, 7, i + 1)
        assert sent[-8:] == values.tobytes()


def test_keys_and_commitments_depend_on_everything_they_are_bound_to() -> None:
    base = (b"s" * 16, b"p" * 32, 1, 1)
    others = [
        (b"t" * 16, *base[1:]),
        (base[0], b"q" * 32, 1, 1),
        (*base[:2], 2, 1),
        (*base[:3], 2),
    ]
    for derive in (mask_key, seeds.commitment):
        assert len({derive(*arguments) for arguments in [base, *others]}) == 5
    head = messages.Head(1, b"head", b"")
    infos = {
        messages.box_info(h, j) for h in (head, messages.Head(1, b"other", b"")) for j in (1, 2)
    }
    assert len(infos) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {"client_id": -1},
        {"client_id": 1 << 64},
        {"client_id": 1.0},
        {"identity": None},
        {"identity": b"seed"},
        {"weight": 1},
        {"policy": OneShotPolicy(min_threshold=3)},
        {"policy": OneShotPolicy(helpers=frozenset([bytes(32)]))},
        {"policy": OneShotPolicy},
        {"policy": {}},
        {"vector": np.arange(5)},
        {"vector": np.array([1, 2, 3, 101])},
        {"vector": [1, 2, 3, 4]},
        {"entropy": lambda size: bytes(size - 1)},
        {"params": b"bytes"},
    ],
    ids=lambda arguments: next(iter(arguments)),  # a function's address is no name
)
def test_argument_out_of_range_raises(arguments: dict[str, object]) -> None:
    with parties(2, 2, n_clients=5) as made:
        right = {
            "vector": VECTOR,
            "params": made.params,
            "client_id": 1,
            "identity": make_identity(1),
        }
        report(**right)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            report(**(right | arguments))  # type: ignore[arg-type]


def test_weight_and_identity_fit_the_session() -> None:
    with parties(2, 2, n_clients=5, security="semi-honest", max_weight=3) as made:
        for weight in (None, 4, -1, 1.5):
            with pytest.raises(ParameterError):
                report(VECTOR, made.params, 1, weight)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            report(VECTOR, made.params, 1, 3, identity=Identity(bytes(32)))
        report(VECTOR, made.params, 1, 3)


def test_report_with_endorsements() -> None:
    with parties(2, 2, n_clients=5) as made:
        policy = OneShotPolicy(helpers=frozenset(j.public[1] for j in made.journals))
        endorsed = [helper.endorse() for helper in made.helpers]
        identity = make_identity(1)
        report(VECTOR, made.params, 1, identity=identity, policy=policy, endorsements=endorsed)
        with pytest.raises(ParameterError):
            report(VECTOR, made.params, 1, identity=identity, policy=policy)


@pytest.mark.parametrize("given", range(10))
def test_endorsements_without_trusted_helpers_raise(given: int) -> None:
    """They would be taken for verified."""
    with parties(2, 2, n_clients=5) as made:
        right = [helper.endorse() for helper in made.helpers]
        endorsements = [
            right,
            tuple(right),
            right[:1],
            right[::-1],
            [b"x"],
            [b""],
            [bytes(64)],
            [bytes(64)] * 3,
            b"x",
            np.array(right),
        ][given]
        drawn: list[int] = []
        for policy in (None, OneShotPolicy(), OneShotPolicy(min_clients=4, corrupt=0)):
            with pytest.raises(ParameterError):
                report(
                    VECTOR,
                    made.params,
                    1,
                    identity=make_identity(1),
                    policy=policy,
                    endorsements=endorsements,  # type: ignore[arg-type]
                    entropy=lambda size: drawn.append(size) or bytes(size),  # type: ignore[func-returns-value]
                )
        assert not drawn
        for none in ([], (), iter(())):
            report(
                VECTOR,
                made.params,
                1,
                identity=make_identity(1),
                endorsements=none,  # type: ignore[arg-type]
            )


def once(endorsements: list[bytes]) -> Iterator[bytes]:
    yield from endorsements


RIGHT: dict[str, Callable[[list[bytes]], object]] = {
    "list": list,
    "tuple": tuple,
    "generator": once,
    "iterator": iter,
    "map": lambda given: map(bytes, given),
    "bytearrays": lambda given: [bytearray(one) for one in given],
    "memoryviews": lambda given: [memoryview(one) for one in given],
    "values of a dict": lambda given: dict(enumerate(given)).values(),
    "deque": deque,
    "array of objects": lambda given: np.array(given, object),
}
WRONG: dict[str, Callable[[list[bytes]], object]] = {
    "None": lambda _: None,
    "a single endorsement": lambda given: given[0],
    "bytes of all": b"".join,
    "bytearray of all": lambda given: bytearray(b"".join(given)),
    "text": lambda given: given[0].hex(),
    "texts": lambda given: [one.hex() for one in given],
    "dict": lambda given: dict(enumerate(given, 1)),
    "dict by key": lambda given: {one: j for j, one in enumerate(given)},
    "set": set,
    "frozenset": frozenset,
    "number": len,
    "numbers": lambda given: [1, 2],
    "Nones": lambda given: [None] * 2,
    "True": lambda _: True,
    "nested": lambda given: [given],
    "short": lambda given: [one[:63] for one in given],
    "long": lambda given: [one + b"x" for one in given],
    "empty ones": lambda _: [b"", b""],
    "class": lambda _: list,
    "function": lambda given: lambda: given,
    "no generator": lambda _: once,
    "empty bytes": lambda _: b"",
}


@pytest.mark.parametrize("name", RIGHT)
def test_endorsements_in_order_are_taken(name: str) -> None:
    with parties(2, 2, n_clients=5) as made:
        policy = OneShotPolicy(helpers=frozenset(j.public[1] for j in made.journals))
        given = RIGHT[name]([helper.endorse() for helper in made.helpers])
        report(
            VECTOR,
            made.params,
            1,
            identity=make_identity(1),
            policy=policy,
            endorsements=given,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("trusting", [True, False])
@pytest.mark.parametrize("name", WRONG)
def test_endorsements_of_another_kind_raise(name: str, trusting: bool) -> None:
    with parties(2, 2, n_clients=5) as made:
        trusted = frozenset(j.public[1] for j in made.journals)
        given = WRONG[name]([helper.endorse() for helper in made.helpers])
        with pytest.raises(ParameterError, match="endorsement"):
            report(
                VECTOR,
                made.params,
                1,
                identity=make_identity(1),
                policy=OneShotPolicy(helpers=trusted if trusting else None),
                endorsements=given,  # type: ignore[arg-type]
            )


def test_repeated_entropy_gives_other_seeds_in_other_sessions_and_to_other_clients() -> None:
    """A helper of one session would otherwise know the seeds of another."""
    with parties(2, 2, n_clients=5) as made:
        other = made.make_params(n_clients=5, session=b"session 2")
        drawn = set()
        for params, client, seed in [
            (made.params, 1, 1),
            (other, 1, 1),
            (made.params, 2, 1),
            (made.params, 1, 2),
        ]:
            sent = report(
                VECTOR,
                params,
                client,
                identity=make_identity(seed),
                entropy=InsecureReplayedEntropy("stuck"),
            )
            boxed = sent[params.layout.box(1)]
            content = sent[34 : 34 + params.layout.head]
            info = messages.box_info(messages.read_head(content, params), 1)
            drawn.add(made.journals[0].box_key.open(boxed, info))
        assert len(drawn) == 4
        assert None not in drawn


def test_name_stands_for_its_id() -> None:
    with parties(2, 2, n_clients=5, security="semi-honest") as made:
        sent = report(VECTOR, made.params, "alice")
        assert sent[34:42] == client_id("alice").to_bytes(8, "little")


def test_error_has_no_frame_with_the_vector() -> None:
    with parties(2, 2, n_clients=5, security="semi-honest") as made:
        with pytest.raises(ParameterError) as caught:
            report(np.array([1, 2, 3, 101]), made.params, 1)
        frame = caught.value.__traceback__
        while frame is not None:
            assert not str(frame.tb_frame.f_globals["__name__"]).startswith("secagg.")
            frame = frame.tb_next


@pytest.mark.parametrize(
    "changes", [{"threshold": 1}, {"min_clients": 2}, {"n_clients": 6}], ids=str
)
def test_default_policy_is_checked(changes: dict[str, object]) -> None:
    with parties(2, 2, security="semi-honest") as made:
        params = made.make_params(**{"security": "semi-honest", "n_clients": 5, **changes})
        with pytest.raises(ParameterError):
            report(VECTOR, params, 1)
        report(VECTOR, params, 1, policy=LENIENT)
