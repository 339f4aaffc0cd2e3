"""paillier.json: docs/paillier.md §2-§4 with small keys; rejected sums are in its sibling."""

from functools import cache

from draws import draw
from paillier_bad_keys import private_keys, public_keys
from paillier_malformed import arriving, outside, reading
from paillier_scheme import Key, Noise, Packing, Sent, foreign_key, make_key

from independent_primitives import integers
from independent_sums import FixedPoint, Integers

Vector = list[float] | list[int]

FIXED = Packing(FixedPoint(8.0, 16), 20, 10)
PACKINGS = {
    "fixed point": FIXED,
    "fixed point, clip that is no binary fraction": Packing(FixedPoint(0.1, 20), 6, 3),
    "integers": Packing(Integers(1000), 7, 4),
    "weighted": Packing(FixedPoint(2.0, 2), 9, 10, max_weight=10),
    "weighted integers": Packing(Integers(5), 4, 3, max_weight=3),
    "weights up to 1": Packing(Integers(1000), 7, 4, max_weight=1),
    "session": Packing(FixedPoint(8.0, 16), 20, 10, session=b"round 7"),
    "two bits to a slot": Packing(Integers(1), 130, 1),
    "widest slots": Packing(Integers(2**62 - 1), 6, 1),
    "widest slots, signed": Packing(FixedPoint(2.0**58, 0), 6, 3, max_weight=5),
    "plaintexts all full": Packing(Integers(1000), 2 * (255 // 13) - 1, 4),
    "count alone": Packing(Integers(1000), 2 * (255 // 13), 4),
    "count alone after the weight": Packing(
        Integers(500), 2 * (255 // 13) - 1, 4, max_weight=2
    ),
    "weight and count alone": Packing(Integers(500), 2 * (255 // 13), 4, max_weight=2),
    "one element": Packing(FixedPoint(1.0, 0), 1, 2),
}


@cache
def keys() -> dict[str, Key]:
    return {
        "half": make_key(256, 128),
        "half, 512": make_key(512, 256),
        "short": make_key(512, 448),
        "textbook": make_key(256, 0),
        "textbook, 320": make_key(320, 0),
        "p above q": make_key(256, 128, swap=True),
        "foreign": foreign_key(256),
        "foreign, 64": foreign_key(64),
    }


def describe_key(name: str, key: Key) -> dict[str, object]:
    numbers = {number: str(getattr(key, number)) for number in "nhpq"}
    return numbers | {
        "name": name, "bits": key.bits, "exponent_bits": key.exponent_bits,
        "public": key.public(), "private": key.private(), "key_id": key.key_id(),
    }  # fmt: skip


def numbers(name: str, key: Key) -> list[dict[str, object]]:
    """Ciphertexts of integers, and what they make together."""
    top = (key.n - 1) // 2
    noises = [key.noise(f"noise {i}") for i in range(7)]
    # The ends of what may be drawn, once each.
    if key.exponent_bits:
        noises += [Noise(2**key.exponent_bits - 1, 0), Noise(0, 1)]
    else:
        noises += [Noise(key.n - 1), Noise(1)]
    assert {noise.b for noise in noises[:7]} == ({0, 1} if key.exponent_bits else {0})
    plain = [0, 1, -1, 2**64, -(2**100) + 3, top, -top, 12345, 7]
    made = [key.encrypt(m, noise) for m, noise in zip(plain, noises, strict=True)]
    out: list[dict[str, object]] = []
    for m, noise, c in zip(plain, noises, made, strict=True):
        assert key.decrypt(c) == m
        out.append({"key": name, "operation": "encrypt", "of": [str(m)],
                    "noise": key.describe(noise), "ciphertext": key.raw([c]),
                    "plaintext": str(m)})  # fmt: skip
    n2 = key.n2
    combined = [
        ("add", [3, 4], made[3] * made[4] % n2, plain[3] + plain[4]),
        ("add", [5, 2], made[5] * made[2] % n2, top - 1),
        ("add, around n", [5, 1], made[5] * made[1] % n2, -top),
        ("subtract", [3, 4], made[3] * pow(made[4], -1, n2) % n2, plain[3] - plain[4]),
        ("multiply by 1000003", [4], pow(made[4], 1000003, n2), 1000003 * plain[4]),
        ("multiply by -3", [7], pow(made[7], -3, n2), -3 * plain[7]),
        ("multiply by 1", [7], made[7], plain[7]),
        ("multiply by 0", [7], 1, 0),
    ]
    for operation, of, c, m in combined:
        assert key.decrypt(c) == m
        out.append({"key": name, "operation": operation, "of": [str(plain[i]) for i in of],
                    "operands": [key.raw([made[i]]) for i in of],
                    "ciphertext": key.raw([c]), "plaintext": str(m)})  # fmt: skip
    return out


def vector(packing: Packing, label: str) -> Vector:
    """Elements of which some are the largest, some lie beyond the clip and some are halves."""
    drawn = integers(draw(f"paillier vector {label}", 8 * packing.d))
    encoding = packing.encoding
    if isinstance(encoding, Integers):
        fixed = [encoding.max, 0]
        return [*fixed, *(x % (encoding.max + 1) for x in drawn)][: packing.d]
    steps = [encoding.clip, -encoding.clip, 2 * encoding.clip, 2.5 * 2.0**-encoding.f, -0.0]
    floats = [(x / 2**63 - 1) * 1.01 * encoding.clip for x in drawn]
    return [*steps, *floats][: packing.d]


def weights(packing: Packing) -> list[int | None]:
    if packing.max_weight is None:
        return [None, None]
    return [packing.max_weight, 0 if packing.max_weight == 1 else packing.max_weight // 2]


def vectors(name: str, key_name: str) -> dict[str, object]:
    """Two clients' vectors, and what becomes of them."""
    packing, key = PACKINGS[name], keys()[key_name]
    sent, of, clients = [], [], []
    for i, weight in enumerate(weights(packing)):
        values = vector(packing, f"{name} {i}")
        heavy = 1 if weight is None else weight
        elements = [heavy * packing.encoding.quantise(x) for x in values]
        slots = [*elements, *([] if weight is None else [weight]), 1]
        plaintexts = packing.plaintexts(key.bits, elements, weight, 1)
        noises, ciphertexts = key.encrypt_all(plaintexts, f"{name} {i} ")
        message = Sent(key, packing, 1, 0, ciphertexts)
        assert packing.read(key.bits, plaintexts, 1, 0) == (elements, weight)
        sent.append(message)
        of.append(slots)
        clients.append(
            {"vector": values, "weight": weight, "slots": [str(v) for v in slots],
             "plaintexts": [str(m) for m in plaintexts],
             "noises": [key.describe(e) for e in noises], "bytes": message.encoded()}
        )  # fmt: skip
    made = computed(packing, key, sent, of)
    return {"packing": name, "key": key_name, "clients": clients, "computed": made}


def computed(
    packing: Packing, key: Key, sent: list[Sent], of: list[list[int]]
) -> list[dict[str, object]]:
    """Sums and the like, as far as there is room, before fresh noise is put to them."""
    room = packing.summands
    made = [("-1 * first", -1, 0), (f"{room} * first", room, 0)]
    made.append((f"{-room} * second", 0, -room))
    if room >= 2:
        made += [("first + second", 1, 1), ("first - second", 1, -1), ("second - first", -1, 1)]
    if room >= 3:
        made.append(("2 * first - second", 2, -1))
    out: list[dict[str, object]] = []
    for name, *factors in made:
        parts = [one * k for one, k in zip(sent, factors, strict=True) if k]
        message = sum(parts[1:], parts[0])
        values = [factors[0] * a + factors[1] * b for a, b in zip(*of, strict=True)]
        plaintexts = [key.decrypt(c) for c in message.ciphertexts]
        added, subtracted = message.added, message.subtracted
        elements, weight = packing.read(key.bits, plaintexts, added, subtracted)
        after = [] if weight is None else [weight]
        assert [*elements, *after, added - subtracted] == values
        out.append({"operation": name, "added": added, "subtracted": subtracted,
                    "plaintexts": [str(m) for m in plaintexts],
                    "elements": [str(v) for v in elements],
                    "weight": None if weight is None else str(weight),
                    "bytes": message.encoded()})  # fmt: skip
    return out


def describe_packing(name: str, packing: Packing) -> dict[str, object]:
    return packing.describe() | {
        "name": name,
        "digest": packing.digest(),
        "slot_bits": packing.slot_bits,
        "of_bits": [
            {"bits": bits, "slots": packing.slots(bits), "plaintexts": len(packing.cut(bits))}
            for bits in (64, 256, 320, 512, 1024, 2048, 3072)
        ],
    }


def paillier() -> dict[str, object]:
    made = keys()
    half, textbook = made["half"], made["textbook"]
    on = {"fixed point": ["half", "half, 512", "textbook, 320", "foreign", "p above q"],
          "weighted": ["half", "short"], "widest slots": ["half", "foreign, 64"]}  # fmt: skip
    return {
        "keys": [describe_key(name, key) for name, key in made.items()],
        "numbers": [
            case
            for name in ("half", "short", "textbook", "foreign")
            for case in numbers(name, made[name])
        ],
        "packings": [describe_packing(name, packing) for name, packing in PACKINGS.items()],
        "vectors": [vectors(name, key) for name in PACKINGS for key in on.get(name, ["half"])],
        "arriving": {"key": "half", "packing": "fixed point",
                     "cases": arriving(half, textbook, FIXED)},
        "reading": {"key": "half", "cases": reading(half, PACKINGS)},
        "refused_public_keys": public_keys(half, textbook),
        "refused_private_keys": private_keys(half, textbook),
        "refused_ciphertexts": [
            {"key": "half", "name": name, "bytes": half.raw([c])}
            for name, c in outside(half).items()
        ],
        "refused_plaintexts": {
            "key": "half",
            "plaintexts": [
                str(m) for m in (half.n // 2 + 1, -(half.n // 2) - 1, half.n, -half.n, 1 << 600)
            ],
        },
    }  # fmt: skip
