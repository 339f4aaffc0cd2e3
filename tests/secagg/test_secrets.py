"""Secrets stay where they are: no pickle of a key, no vector in the frames of an error."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from frames import errors_behind, frames_of, leaks
from harness import Cohort, make_params
from paillier_keys import keypair
from secagg import (
    Client,
    FixedPoint,
    Identity,
    Integers,
    LocalProtocolError,
    ParameterError,
    SecAggError,
    TooFewSurvivors,
    _fast,
    flatten,
    shamir,
    simulate_round,
)
from secagg.encoding import Ring
from secagg.paillier import Packing, PrivateKey
from secagg.protocol.keys import KeyPair
from secagg.threshold import KeyShare
from suspended import secrets_of
from threshold_keys import dealing

MARK = 1.4142135623730951  # an element of every private vector
COUNT = 0x1122334455667788 >> 2  # the same, of integers
WEIGHT = 48_611_873
SECRETS = [
    np.float64(MARK).tobytes(),
    np.float32(MARK).tobytes(),
    (round(MARK * 2**16) * WEIGHT).to_bytes(8, "little"),
    COUNT.to_bytes(8, "little"),
    WEIGHT.to_bytes(4, "little"),
]
ENCODING = FixedPoint(clip=8.0)
PACKING = Packing(encoding=ENCODING, length=4, summands=3, max_weight=50_000_000)
COUNTS = Packing(encoding=Integers(9), length=4, summands=3)
NAN, COUNTED = np.array([MARK, np.nan, MARK, 0.0]), np.array([COUNT] * 4)
GOOD = np.full(4, MARK)


class Ours(FixedPoint):
    """An encoding of the caller's own, with a bug."""

    def encode(self, vector: object, *_: object) -> object:
        raise ZeroDivisionError(len(vector))


@dataclass(frozen=True)
class Refused:
    """An input that is rejected, and what it is rejected with."""

    vector: object = None
    weight: object = WEIGHT
    encoding: FixedPoint | Integers = ENCODING
    data: bytes | None = None
    length: int = 4
    max_weight: int | None = 50_000_000
    error: type[BaseException] = ParameterError


INPUTS = {
    "nan": Refused(NAN),
    "shape": Refused(np.full((2, 2), MARK)),
    "dtype": Refused(np.full(4, COUNT)),
    "list": Refused([MARK] * 4),
    "masked array": Refused(np.ma.masked_array(GOOD)),
    "length": Refused(np.full(5, MARK)),
    "beyond the clip": Refused(GOOD, encoding=FixedPoint(clip=1.0, beyond_clip="refuse")),
    "no weight": Refused(GOOD, None),
    "weight without a maximum": Refused(GOOD, max_weight=None),
    "weight too large": Refused(GOOD, max_weight=WEIGHT - 1),
    "weight of another type": Refused(GOOD, float(WEIGHT)),
    "integers outside": Refused(COUNTED, encoding=Integers(9)),
    "no message": Refused(GOOD, data=5),
    "message of garbage": Refused(GOOD, data=b"\x01\x02", error=SecAggError),
    "encoding of the caller": Refused(GOOD, encoding=Ours(8.0), error=ZeroDivisionError),
}


def raised(call: Callable[[], object], kind: type[BaseException]) -> BaseException:
    with pytest.raises(kind) as caught:
        call()
    return caught.value


def client_of(case: Refused, suite: str = "x25519") -> tuple[Client, bytes, list[bytes]]:
    """A client that is to mask a vector, the server's message, and the client's secrets."""
    params = make_params(
        4, length=case.length, encoding=case.encoding, max_weight=case.max_weight,
        modulus=1 << 64, suite=suite,
    )  # fmt: skip
    cohort = Cohort(params)
    data = cohort.advance(2)[2]
    client = cohort.clients[2]
    own = [*SECRETS, *secrets_of(client)]
    return client, data if case.data is None else case.data, own


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("method", ["answer", "masked_input"])
@pytest.mark.parametrize("name", INPUTS)
def test_check46_frames_of_a_rejected_input_do_not_have_it(
    name: str, method: str, suite: str
) -> None:
    case = INPUTS[name]
    client, data, secrets = client_of(case, suite)
    call = getattr(client, method)
    error = raised(lambda: call(data, case.vector, case.weight), case.error)
    assert leaks(error, secrets, __name__) == []


@pytest.mark.parametrize("broken", [MemoryError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("where", ["pack_into", "mask_words", "encode", "entropy"])
def test_check46_frames_of_any_other_failure_do_not_have_the_input(
    where: str, broken: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> object:
        raise broken

    client, data, secrets = client_of(Refused())
    if where == "entropy":
        client._entropy = fail
    else:
        monkeypatch.setattr(_fast, where, fail)
    error = raised(lambda: client.answer(data, GOOD, WEIGHT), broken)
    assert leaks(error, secrets, __name__) == []
    assert any("Client._mask:" in note for note in error.__notes__)


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("phases", [0, 1, 3])
def test_check46_frames_of_other_phases_do_not_have_the_input(phases: int, suite: str) -> None:
    """A transport passes the vector each time."""
    cohort = Cohort(make_params(4, suite=suite))
    cohort.advance(phases)
    client = cohort.clients[2]
    secrets = [*SECRETS, *secrets_of(client)]
    client._entropy = lambda size: bytes(size // 0)
    kind = SecAggError if phases else ZeroDivisionError
    error = raised(lambda: client.answer(b"\x01", GOOD, WEIGHT), kind)
    assert leaks(error, secrets, __name__) == []
    assert error.__context__ is error.__cause__ is None


@pytest.mark.parametrize("name", [name for name, case in INPUTS.items() if case.data is None])
def test_check46_frames_of_a_failed_simulation_do_not_have_the_inputs(name: str) -> None:
    case = INPUTS[name]
    params = make_params(
        3, length=case.length, encoding=case.encoding, max_weight=case.max_weight,
        modulus=1 << 64,
    )  # fmt: skip
    weights = None if case.weight is None else [case.weight] * 3
    error = raised(
        lambda: simulate_round([case.vector] * 3, params, weights=weights), case.error
    )
    assert leaks(error, SECRETS, __name__) == []


def test_check46_simulation_that_ends_early_leaves_no_inputs() -> None:
    params = make_params(3)
    error = raised(
        lambda: simulate_round([GOOD] * 3, params, dropouts={1: "masked_input"}),
        TooFewSurvivors,
    )
    assert leaks(error, SECRETS, __name__) == []

    def progress(*_: object) -> None:
        raise ZeroDivisionError

    error = raised(
        lambda: simulate_round([GOOD] * 3, params, progress=progress), ZeroDivisionError
    )
    assert leaks(error, SECRETS, __name__) == []
    assert [f.f_code.co_name for f in frames_of(error)][-1] == "progress"


KEY, RING = keypair(), Ring(1 << 64)
ENCRYPTIONS: dict[str, Callable[[], object]] = {
    "encode": lambda: ENCODING.encode(NAN, RING, WEIGHT),
    "encode, weight": lambda: ENCODING.encode(GOOD, RING, -WEIGHT),
    "encode_integers": lambda: ENCODING.encode_integers(NAN),
    "integers": lambda: Integers(9).encode(COUNTED, RING, WEIGHT),
    "integers, weight": lambda: Integers(9).encode(COUNTED, RING, -WEIGHT),
    "flatten, dtype": lambda: flatten([GOOD, np.array([1j])]),
    "flatten, names": lambda: flatten({"a": GOOD, 1: GOOD}),
    "suggest": lambda: FixedPoint.suggest(NAN, 3),
    "suggest, summands": lambda: FixedPoint.suggest(GOOD, 0),
    "packing": lambda: PACKING.encode(NAN, WEIGHT),
    "packing, no weight": lambda: PACKING.encode(GOOD),
    "packing, weight": lambda: PACKING.encode(GOOD, WEIGHT * WEIGHT),
    "packing, length": lambda: PACKING.encode(np.full(5, MARK), WEIGHT),
    "pack, beyond": lambda: COUNTS.pack(np.full(5, COUNT), 512),
    "pack, dtype": lambda: COUNTS.pack(np.full(5, COUNT, dtype=np.uint64), 512),
    "public": lambda: KEY.public_key.encrypt_vector(NAN, PACKING, WEIGHT),
    "public, integers": lambda: KEY.public_key.encrypt_vector(COUNTED, COUNTS),
    "private": lambda: KEY.encrypt_vector(NAN, PACKING, WEIGHT),
    "messages": lambda: KEY.public_key.encrypt([COUNT, 1 << 600]),
    "messages, kind": lambda: KEY.public_key.encrypt([COUNT, "1"]),
}


@pytest.mark.parametrize("name", ENCRYPTIONS)
def test_check46_frames_of_a_failed_encryption_do_not_have_the_input(name: str) -> None:
    error = raised(ENCRYPTIONS[name], ParameterError)
    assert leaks(error, SECRETS, __name__) == []


def _little(number: int) -> bytes:
    return int(number).to_bytes(-(-int(number).bit_length() // 8), "little")


def test_check46_frames_of_a_rejected_key_do_not_have_it() -> None:
    primes = [_little(prime) for prime in KEY.primes]
    p, q = KEY.primes
    public, (share, _) = dealing(2, 1)
    secret = _little(share._secret)
    seed = bytes(range(31))
    for call, secrets in (
        (lambda: PrivateKey(p, q), primes),
        (lambda: PrivateKey(p, p + 2, allow_insecure=True), primes[:1]),
        (lambda: PrivateKey.from_bytes(KEY.to_bytes()[:-1]), primes),
        (lambda: KEY.decrypt(public.public_key.encrypt([1])), primes),
        (lambda: KeyShare(public, 2, share._secret + 1), [_little(share._secret + 1)]),
        (lambda: KeyShare.from_bytes(share.to_bytes() + b"\x00", public), [secret]),
        (lambda: share.decrypt_partially(KEY.public_key.encrypt([1])), [secret]),
        (lambda: Identity(seed), [seed]),
        (lambda: shamir.split(seed, 3, 2), [seed]),
    ):
        assert leaks(raised(call, ParameterError), secrets, __name__) == []


def test_search_of_frames_finds_planted_secrets() -> None:
    """Without the wrapper the same error has the vector, its integers and the weight."""
    encode = FixedPoint.encode.__wrapped__  # type: ignore[attr-defined]
    error = raised(lambda: encode(ENCODING, NAN, RING, WEIGHT), ParameterError)
    found = leaks(error, SECRETS, __name__)
    assert {"FixedPoint.encode: vector", "FixedPoint.encode: weight"} <= set(found)


def test_check46_message_notes_and_the_callers_errors_remain() -> None:
    client, data, _ = client_of(INPUTS["nan"])
    try:
        raise KeyError("the caller's own")
    except KeyError as own:
        before = list(frames_of(own))
        error = raised(lambda: client.answer(data, NAN, WEIGHT), ParameterError)
        assert list(frames_of(own)) == before
        assert own in errors_behind(error)
    assert "element 1" in str(error)
    assert not hasattr(error, "__notes__")


def _kept() -> dict[str, object]:
    cohort = Cohort(make_params(3))
    cohort.advance(2)
    return {
        "private key": KEY,
        "key share": dealing(2, 1)[1][0],
        "identity": Identity(bytes(range(32))),
        "key pair": KeyPair(bytes(range(32))),
        "state": cohort.clients[0]._state,
    }


@pytest.mark.parametrize("name", _kept())
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_check46_secrets_are_not_pickled(name: str, protocol: int) -> None:
    secret = _kept()[name]
    for held in (secret, [secret], {"nested": (secret,)}):
        with pytest.raises(LocalProtocolError, match=type(secret).__name__):
            pickle.dumps(held, protocol)


@pytest.mark.parametrize("name", _kept())
def test_copy_of_a_secret_is_the_secret_itself(name: str) -> None:
    """It is immutable, and another copy in memory would be one more to lose."""
    secret = _kept()[name]
    assert copy.copy(secret) is copy.deepcopy([secret])[0] is secret


def test_exported_key_is_the_same_key() -> None:
    public, (share, _) = dealing(2, 1)
    assert PrivateKey.from_bytes(KEY.to_bytes(), allow_insecure=True) == KEY
    assert KeyShare.from_bytes(share.to_bytes(), public)._secret == share._secret
    assert pickle.loads(pickle.dumps(KEY.public_key)) == KEY.public_key  # noqa: S301
