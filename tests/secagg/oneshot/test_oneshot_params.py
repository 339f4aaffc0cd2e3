"""Parameters of one-shot sums: ranges, keys, digest, bytes; and a client's policy on them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import hpke

from oneshot_parties import Parties, parties, rejects
from secagg import Bounded, FixedPoint, Integers, MissingExtra, Noise, ParameterError
from secagg.oneshot import OneShotParams, OneShotPolicy, suites


@pytest.fixture(scope="module")
def three() -> Iterator[Parties]:
    with parties(3, 2) as made:
        yield made


@pytest.mark.parametrize(
    "changes",
    [
        {"n_clients": 2.5},
        {"threshold": 4},
        {"security": "malicious"},
        {"suite": "x448"},
        {"suite": "hybrid"},  # keys of another suite
        {"session": "text"},
        {"encoding": Integers},
        {"encoding": Bounded(1.0, 8)},
        {"noise": Noise(100, colluders=1)},
        {"modulus": 2000, "modulus_bits": 12},
        {"helpers": b"keys"},
        {"helpers": [(b"short", b"key")]},
        {"helpers": [("text", b"key")]},
    ],
    ids=str,
)
def test_value_out_of_range_raises(three: Parties, changes: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        three.make_params(**changes)


def test_params_can_be_pickled_after_use(three: Parties) -> None:
    three.params.layout  # noqa: B018
    assert pickle.loads(pickle.dumps(three.params)) == three.params  # noqa: S301


def test_own_encoding_keeps_its_local_choices(three: Parties) -> None:
    params = three.make_params(encoding=FixedPoint(1.0, 4))
    own = FixedPoint(1.0, 4, rounding="nearest", beyond_clip="refuse")
    assert OneShotParams.from_bytes(params.to_bytes(), own).encoding is own
    rejects(
        "parameters", lambda: OneShotParams.from_bytes(params.to_bytes(), FixedPoint(1.0, 5))
    )
    with pytest.raises(ParameterError):
        OneShotParams.from_bytes(params.to_bytes(), FixedPoint)  # type: ignore[arg-type]


def test_suite_that_cryptography_lacks_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnlyX25519:
        X25519 = hpke.KEM.X25519

    suites._suite.cache_clear()
    suites.load_key.cache_clear()
    with parties(2) as two, pytest.MonkeyPatch.context() as patched:
        patched.setattr(hpke, "KEM", OnlyX25519)
        with pytest.raises(MissingExtra):
            suites._suite("hybrid")
        with pytest.raises(MissingExtra):
            two.make_params(
                suite="hybrid", helpers=[(bytes(1184) + b"\x09" + bytes(31), bytes(32))]
            )
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "cryptography.hazmat.primitives.hpke", None)
        patched.delattr("cryptography.hazmat.primitives.hpke")
        suites._suite.cache_clear()
        with pytest.raises(MissingExtra):
            suites._suite("x25519")


def test_policy_rejects_weaker_parameters(three: Parties) -> None:
    right = three.make_params(n_clients=5)
    OneShotPolicy(require_active=True).check(right)
    weaker = [
        (OneShotPolicy(min_threshold=3), right),
        (OneShotPolicy(), three.make_params(n_clients=5, threshold=1)),
        (OneShotPolicy(min_clients=4), right),
        (OneShotPolicy(colluders=0), three.make_params(n_clients=5, min_clients=2)),
        (OneShotPolicy(max_length=3), right),
        (
            OneShotPolicy(require_active=True),
            three.make_params(n_clients=5, security="semi-honest"),
        ),
        (OneShotPolicy(require_hybrid=True), right),
    ]
    for policy, params in weaker:
        with pytest.raises(ParameterError):
            policy.check(params)


@pytest.mark.parametrize("n", [3, 5, 6, 10, 11, 100])
def test_check53_policy_leaves_two_honest_vectors_in_every_sum(three: Parties, n: int) -> None:
    """A fifth of the clients, rounded up, collude by default."""
    least = -(-n // 5) + 2
    OneShotPolicy().check(three.make_params(n_clients=n, min_clients=least))
    weak = three.make_params(n_clients=n, min_clients=least - 1)
    OneShotPolicy(min_clients=2, corrupt=0).check(weak)
    for policy in (
        OneShotPolicy(min_clients=2),
        OneShotPolicy(min_clients=2, corrupt=0, colluders=least - 2),
    ):
        with pytest.raises(ParameterError):
            policy.check(weak)
    with pytest.raises(ParameterError):  # however many report
        OneShotPolicy(colluders=n - 1).check(three.make_params(n_clients=n, min_clients=n))


@pytest.mark.parametrize(
    "changes",
    [
        {"min_threshold": 0},
        {"min_clients": 1},
        {"helpers": b"key"},
        {"helpers": [b"key"]},
        {"corrupt": 1},
        {"colluders": -1},
        {"max_length": 0},
        {"max_clients": 1},
    ],
    ids=str,
)
def test_policy_out_of_range_raises(changes: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        OneShotPolicy(**changes)  # type: ignore[arg-type]


def test_policy_takes_endorsements_by_known_helpers_only(three: Parties) -> None:
    known = [journal.public[1] for journal in three.journals]
    endorsed = [helper.endorse() for helper in three.helpers]
    trusting = OneShotPolicy(corrupt=0, helpers=frozenset(known))
    for right in (endorsed, iter(endorsed), [bytearray(one) for one in endorsed]):
        trusting.check(three.params, right)  # type: ignore[arg-type]
    hexes, short = ([one.hex() for one in endorsed], [one[:63] for one in endorsed])
    given = (None, b"".join(endorsed), hexes, short, [endorsed], set(endorsed), list)
    wrong: list[tuple[object, object]] = [
        (None, endorsed),  # they would be taken for verified
        *((known, one) for one in (*given, dict.fromkeys(endorsed))),
        (known, []),
        (known, endorsed[:2]),
        (known, [endorsed[1], endorsed[0], endorsed[2]]),
        (known[:2], endorsed),
        (known, [*endorsed[:2], bytes(64)]),
        (known, [*endorsed[:2], endorsed[2].hex()]),
    ]
    for accepted, given_ in wrong:
        with pytest.raises(ParameterError):
            OneShotPolicy(corrupt=0, helpers=accepted).check(three.params, given_)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        trusting.check(three.make_params(session=b"session 2"), endorsed)


def test_helper_endorses_no_key_but_its_own(three: Parties) -> None:
    """An HPKE key of the aggregator beside the helper's Ed25519 key would read its boxes."""
    with parties(3, 2) as aggregator:
        keys = list(three.params.helpers)
        keys[0] = (aggregator.params.helpers[0][0], keys[0][1])
        swapped = three.make_params(helpers=keys)
        with pytest.raises(ParameterError):
            three.restart(swapped)
    three.restart()


def test_sums_of_the_parameters_warn_and_are_a_round_of_the_same_shape(three: Parties) -> None:
    params = three.params
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        sums = params.sums
    for name in ("n_clients", "length", "encoding", "ring", "elements", "max_weight", "active"):
        assert getattr(sums, name) == getattr(params, name)
