"""Golden vectors of docs/paillier.md, made from the document by code of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from raised import rejects
from secagg import FixedPoint, Integers, Packing, ParameterError
from secagg.paillier import Ciphertexts, EncryptedVector, PrivateKey, PublicKey
from vectors_reader import Fed, Vector, b, load

VECTORS = load("paillier")
KEYS = {case["name"]: case for case in VECTORS["keys"]}
PACKINGS = {case["name"]: case for case in VECTORS["packings"]}


pytestmark = pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")


@cache
def private_key(name: str) -> PrivateKey:
    return PrivateKey.from_bytes(b(KEYS[name]["private"]), allow_insecure=True)


def public_key(name: str) -> PublicKey:
    return PublicKey.from_bytes(b(KEYS[name]["public"]), allow_insecure=True)


def packing_of(name: str) -> Packing:
    case = PACKINGS[name]
    encoding = dict(case["encoding"])
    if encoding.pop("kind") == "integers":
        made: FixedPoint | Integers = Integers(int(encoding["max"]))
    else:
        made = FixedPoint(**encoding, rounding="nearest")
    return Packing(
        encoding=made,
        length=case["length"],
        summands=case["summands"],
        max_weight=None if case["max_weight"] is None else int(case["max_weight"]),
        session=b(case["session"]),
    )


def vector_of(values: list[float] | list[int | str], packing: Packing) -> np.ndarray:
    if isinstance(packing.encoding, Integers):
        return np.array([int(x) for x in values], dtype=np.int64)
    return np.array(values, dtype=np.float64)


def fed(key: PublicKey, noises: list[Vector]) -> Fed:
    """Entropy that makes noise of these numbers: every e, then a byte that ends in b each."""
    size = (key.exponent_bits or key.bits) // 8
    first = "e" if key.exponent_bits else "r"
    parts = [int(x[first]).to_bytes(size, "little") for x in noises]
    if key.exponent_bits:
        parts.append(bytes(0b1010_1010 | x["b"] for x in noises))
    return Fed([part.hex() for part in parts])


def no_noise(key: PublicKey, count: int) -> Fed:
    """Entropy for the noise 1: what was computed is sent as it is."""
    return fed(key, [{"e": "0", "b": 0} if key.exponent_bits else {"r": "1"}] * count)


@pytest.mark.parametrize("case", VECTORS["keys"], ids=lambda c: c["name"])
def test_check27_paillier_keys(case: Vector) -> None:
    n, h, p, q = (int(case[name]) for name in "nhpq")
    arguments = (h or None, case["exponent_bits"] or None)
    for public in (
        PublicKey(n, *arguments, allow_insecure=True),
        public_key(case["name"]),
        private_key(case["name"]).public_key,
    ):
        assert (public.n, public.h, public.exponent_bits) == (n, *arguments)
        assert public.bits == case["bits"]
        assert public.to_bytes() == b(case["public"])
        assert public.key_id == b(case["key_id"])
    for private in (
        PrivateKey(p, q, *arguments, allow_insecure=True),
        private_key(case["name"]),
    ):
        assert private.primes == (p, q)
        assert private.to_bytes() == b(case["private"])


def computed(operation: str, x: Ciphertexts, *more: Ciphertexts) -> Ciphertexts:
    if operation.startswith("multiply by "):
        return int(operation.split()[-1]) * x
    (y,) = more
    return x - y if operation == "subtract" else x + y


@pytest.mark.parametrize(
    "case", VECTORS["numbers"], ids=lambda c: f"{c['key']}: {c['operation']} {c['of']}"
)
def test_check27_paillier_numbers(case: Vector) -> None:
    key = public_key(case["key"])
    ciphertext, plaintext = b(case["ciphertext"]), int(case["plaintext"])
    if case["operation"] == "encrypt":
        entropy = fed(key, [case["noise"]])
        made = key.encrypt([plaintext], entropy)
        assert made.to_bytes() == ciphertext
    else:
        # no file states the messages of operands: a bound with which no operation can wrap
        operands = [key.load(b(operand), 1, largest=1) for operand in case["operands"]]
        made = computed(case["operation"], *operands)
        entropy = no_noise(key, 1)
        assert made.to_bytes(entropy) == ciphertext
    assert not entropy.left
    came = key.load(ciphertext, 1)
    assert came.to_ints() == [int.from_bytes(ciphertext, "little")]
    assert key.load_ints(came.to_ints()).to_bytes() == ciphertext
    assert private_key(case["key"]).decrypt(came) == [plaintext]


@pytest.mark.parametrize("case", VECTORS["packings"], ids=lambda c: c["name"])
def test_check27_paillier_packings(case: Vector) -> None:
    packing = packing_of(case["name"])
    assert packing.digest == b(case["digest"])
    assert packing.slot_bits == case["slot_bits"]
    for of in case["of_bits"]:
        assert packing.slots(of["bits"]) == of["slots"]
        assert packing.plaintexts(of["bits"]) == of["plaintexts"]


def check_sum(
    vector: EncryptedVector, key: PrivateKey, elements: list[str], weight: str | int | None
) -> None:
    """Decrypted, the vector has these integers and this weight."""
    packing, integers = vector.packing, [int(v) for v in elements]
    read = key.decrypt_vector(vector)
    assert read.integers.tolist() == integers
    encoding = packing.encoding
    scale = 2.0**-encoding.fractional_bits if isinstance(encoding, FixedPoint) else 1
    assert read.sum.tolist() == [v * scale for v in integers]
    assert read.summands == vector.added - vector.subtracted
    assert read.weight == (None if weight is None else int(weight))


with_vectors = pytest.mark.parametrize(
    "case", VECTORS["vectors"], ids=lambda c: f"{c['packing']}, {c['key']}"
)


@with_vectors
def test_check27_paillier_vectors(case: Vector) -> None:
    packing, key = packing_of(case["packing"]), public_key(case["key"])
    private = private_key(case["key"])
    for client in case["clients"]:
        vector, plaintexts = vector_of(client["vector"], packing), client["plaintexts"]
        integers, _ = packing.encode(vector, client["weight"])
        assert integers.tolist() == [int(v) for v in client["slots"]]
        assert packing.pack(integers, key.bits) == [int(m) for m in plaintexts]
        back = packing.unpack([int(m) for m in plaintexts], key.bits)
        assert back.tolist() == integers.tolist()

        entropy = fed(key, client["noises"])
        made = key.encrypt_vector(vector, packing, client["weight"], entropy)
        assert made.to_bytes() == b(client["bytes"])
        assert not entropy.left
        came = key.load_vector(b(client["bytes"]), packing)
        assert came.to_bytes() == b(client["bytes"])
        own = private.encrypt_vector(vector, packing, client["weight"])
        for each in (came, own):
            assert (each.added, each.subtracted) == (1, 0)
            check_sum(each, private, client["slots"][: packing.length], client["weight"])


@pytest.mark.parametrize("name", ["half", "short"])
def test_check37_owners_noise_is_drawn_modulo_both_primes(name: str) -> None:
    """Each ciphertext takes one draw modulo p and one modulo q, and no exponent of h."""
    case = next(c for c in VECTORS["vectors"] if c["key"] == name)
    packing, private = packing_of(case["packing"]), private_key(name)
    client, n = case["clients"][0], private.public_key.n
    plaintexts = [int(m) for m in client["plaintexts"]]
    exponent = bytes(private.public_key.bits // 16).hex()  # 0, so that the noise is 1
    entropy = Fed([exponent] * (2 * len(plaintexts)))
    vector = vector_of(client["vector"], packing)
    made = private.encrypt_vector(vector, packing, client["weight"], entropy)
    assert not entropy.left
    assert made.ciphertexts.to_ints() == [(1 + m * n) % (n * n) for m in plaintexts]


COMPUTED: dict[str, Callable[[EncryptedVector, EncryptedVector], EncryptedVector]] = {
    "first + second": lambda x, y: x + y,
    "first - second": lambda x, y: x - y,
    "second - first": lambda x, y: y - x,
    "2 * first - second": lambda x, y: 2 * x - y,
}


@with_vectors
def test_check27_paillier_sums_differences_and_multiples(case: Vector) -> None:
    packing, key = packing_of(case["packing"]), public_key(case["key"])
    private = private_key(case["key"])
    clients = [key.load_vector(b(c["bytes"]), packing) for c in case["clients"]]
    named = dict(zip(("first", "second"), clients, strict=True))
    for computed in case["computed"]:
        name, data = computed["operation"], b(computed["bytes"])
        if name in COMPUTED:
            made = COMPUTED[name](*clients)
        else:
            factor, of = name.split(" * ")
            made = int(factor) * named[of]
        entropy = no_noise(key, len(computed["plaintexts"]))
        assert made.to_bytes(entropy) == data
        assert not entropy.left
        came = key.load_vector(data, packing, summands=None)
        assert came.to_bytes() == data
        if not computed["subtracted"]:
            key.load_vector(data, packing, summands=computed["added"])
        for each in (made, came):
            assert (each.added, each.subtracted) == (computed["added"], computed["subtracted"])
            plaintexts = [int(m) for m in computed["plaintexts"]]
            assert private.decrypt(each.ciphertexts) == plaintexts
            check_sum(each, private, computed["elements"], computed["weight"])


def test_check34_paillier_sums_beyond_capacity_are_rejected() -> None:
    for case in VECTORS["vectors"]:
        packing, key = packing_of(case["packing"]), public_key(case["key"])
        vector = key.load_vector(b(case["clients"][0]["bytes"]), packing)
        full = vector * packing.summands
        for too_many in (
            lambda v=vector, p=packing: v * (p.summands + 1),
            lambda v=vector, p=packing: v * -(p.summands + 1),
            lambda v=vector, f=full: f + v,
            lambda v=vector, f=full: f - v,
            lambda v=vector, f=full: v - f,
        ):
            with pytest.raises(ParameterError):
                too_many()


@pytest.mark.parametrize("case", VECTORS["arriving"]["cases"], ids=lambda c: c["name"])
def test_check35_paillier_vectors_rejected_on_arrival(case: Vector) -> None:
    key, packing = (VECTORS["arriving"][name] for name in ("key", "packing"))
    assert case["error"] == "RemoteProtocolError"
    arguments = b(case["bytes"]), packing_of(packing), case["expected"]
    rejects(case["check"], lambda: public_key(key).load_vector(*arguments))


@pytest.mark.parametrize(
    "case", VECTORS["reading"]["cases"], ids=lambda c: f"{c['packing']}: {c['name']}"
)
def test_check42_paillier_sums_rejected_when_decrypted(case: Vector) -> None:
    name, packing = VECTORS["reading"]["key"], packing_of(case["packing"])
    key = private_key(name)
    vector = key.public_key.load_vector(b(case["bytes"]), packing, summands=None)
    assert (vector.added, vector.subtracted) == (case["added"], case["subtracted"])
    if case["check"] is None:
        check_sum(vector, key, case["elements"], case["weight"])
        return
    assert case["error"] == "RemoteProtocolError"
    rejects(case["check"], lambda: key.decrypt_vector(vector))


@pytest.mark.parametrize("case", VECTORS["refused_public_keys"], ids=lambda c: c["name"])
def test_check27_paillier_public_keys_rejected(case: Vector) -> None:
    rejects(case["check"], lambda: PublicKey.from_bytes(b(case["bytes"]), allow_insecure=True))


@pytest.mark.parametrize("case", VECTORS["refused_private_keys"], ids=lambda c: c["name"])
def test_check27_paillier_private_keys_rejected(case: Vector) -> None:
    with pytest.raises(ParameterError):
        PrivateKey.from_bytes(b(case["bytes"]), allow_insecure=True)


@pytest.mark.parametrize("case", VECTORS["refused_ciphertexts"], ids=lambda c: c["name"])
def test_check27_paillier_ciphertexts_rejected(case: Vector) -> None:
    key, data = public_key(case["key"]), b(case["bytes"])
    rejects("ciphertext", lambda: key.load(data, 1))
    rejects("ciphertext", lambda: key.load_ints([int.from_bytes(data, "little")]))


def test_check27_paillier_plaintexts_rejected() -> None:
    case = VECTORS["refused_plaintexts"]
    for m in case["plaintexts"]:
        with pytest.raises(ParameterError):
            public_key(case["key"]).encrypt([int(m)])
