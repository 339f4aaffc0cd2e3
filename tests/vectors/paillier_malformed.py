"""Encrypted vectors that docs/paillier.md rejects, on arrival or when a sum is decrypted.

Each is expected with the check of §4's table that comes first, also where later ones fail too.
"""

from dataclasses import replace

from draws import draw
from faults import flip
from paillier_scheme import Key, Packing, Parts, Rejected, Sent

from independent_primitives import u64le
from independent_sums import FixedPoint, Integers

MAX = 2**64 - 1
READ = (
    "fixed point", "integers", "weighted", "weighted integers", "plaintexts all full",
    "count alone after the weight",
)  # fmt: skip


def arriving(key: Key, other: Key, packing: Packing) -> list[dict[str, object]]:
    """Faults of one packed vector; `expected` is how many vectors the reader asks for."""
    elements = list(range(packing.d))
    plaintexts = packing.plaintexts(key.bits, elements, None, 1)
    good = Sent(key, packing, 1, 0, [key.encrypt(m, key.noise(f"bad {m}")) for m in plaintexts])
    p = good.parts()
    room = packing.summands
    out: list[tuple[str, int | None, str, bytes]] = []

    def add(name: str, check: str, bad: Parts | bytes, expected: int | None = 1) -> None:
        out.append((name, expected, check, bad if isinstance(bad, bytes) else b"".join(bad)))

    header = b"".join(p[:-1])
    for size in (0, 1, 4, 37, len(header) - 1):
        add(f"{size} bytes", "length", header[:size])
    add("too short, nothing right", "length", draw("too short", 84))
    add("magic of a public key", "version", p._replace(magic=b"SAPK"))
    add("magic in lower case", "version", p._replace(magic=b"saev"))
    add("version 0", "version", p._replace(version=b"\0"))
    add("version 2", "version", p._replace(version=b"\2"))
    for at in (0, 15, 31):
        add(f"byte {at} of the key id", "key", p._replace(key_id=flip(p.key_id, at)))
        add(f"byte {at} of the digest", "packing", p._replace(digest=flip(p.digest, at)))
    add("another key", "key", p._replace(key_id=other.key_id()))
    for what, changed in changes(packing).items():
        add(f"another {what}", "packing", p._replace(digest=changed.digest()))
    for a, s, expected in (
        (0, 0, 1), (0, 0, None), (2, 0, 1), (1, 1, 1), (0, 2, 1), (1, 0, 2), (3, 2, 4),
        (0, 1, 1), (2, 1, 3), (1, 2, 3),
        (room + 1, 0, None), (room, 1, None), (0, room + 1, None), (MAX, 0, None),
        (MAX, 2, 1), (MAX, 1, None), (MAX, MAX, None),
    ):  # fmt: skip
        bad = p._replace(added=u64le(a), subtracted=u64le(s))
        add(f"{a} added, {s} subtracted, {expected} expected", "summands", bad, expected)
    width, body = key.width, p.ciphertexts
    for name, wrong in (
        ("no ciphertexts", b""),
        ("one ciphertext less", body[:-width]),
        ("one ciphertext more", body + body[:width]),
        ("a byte less", body[:-1]),
        ("a byte more", body + b"\0"),
    ):
        add(name, "length", p._replace(ciphertexts=wrong))
    last = len(body) - width
    for name, c in outside(key).items():
        for where, at in (("first", 0), ("last", last)):
            wrong = body[:at] + c.to_bytes(width, "little") + body[at + width :]
            add(f"{where} ciphertext {name}", "ciphertext", p._replace(ciphertexts=wrong))
    # From each check on everything is wrong: the one that comes first is named.
    wrong_all = Parts(b"nope", b"\7", bytes(32), bytes(32), u64le(0), u64le(0), body[:-width])
    for at, check in enumerate(("version", "version", "key", "packing", "summands")):
        add(f"nothing right from part {at} on", check, Parts(*p[:at], *wrong_all[at:]))
    zeros = bytes(len(body) + width)
    add("a ciphertext more, all 0", "length", p._replace(ciphertexts=zeros))
    return [
        {"name": name, "expected": expected, "check": check, "bytes": data,
         "error": "RemoteProtocolError"}
        for name, expected, check, data in out
    ]  # fmt: skip


def changes(packing: Packing) -> dict[str, Packing]:
    """Packings that differ from one of fixed point in a single thing."""
    assert packing.encoding == FixedPoint(8.0, 16)
    return {
        "clip": replace(packing, encoding=FixedPoint(8.000001, 16)),
        "scale of the same bound": replace(packing, encoding=FixedPoint(4.0, 17)),
        "encoding of the same bound": replace(packing, encoding=Integers(2**19)),
        "length": replace(packing, d=packing.d + 1),
        "number of summands": replace(packing, summands=packing.summands + 1),
        "weighting, by 1 at most": replace(packing, max_weight=1),
        "session": replace(packing, session=packing.session + b"\0"),
    }


def outside(key: Key) -> dict[str, int]:
    """Numbers of a ciphertext's width that are not in Z*_{n²}."""
    return {
        "0": 0,
        "n²": key.n2,
        "n² + 1": key.n2 + 1,
        "of all bits": 2 ** (8 * key.width) - 1,
        "p": key.p,
        "a multiple of q": key.q * (key.n2 // key.q - 5),
        "n": key.n,
        "a multiple of n": key.n * (key.n - 2),
    }


def reading(key: Key, packings: dict[str, Packing]) -> list[dict[str, object]]:
    """Sums that arrive well and hold what no sum of so many vectors is; and some that do."""
    out: list[dict[str, object]] = []

    def add(
        packing_name: str, name: str, plaintexts: list[int], added: int, subtracted: int
    ) -> None:
        packing = packings[packing_name]
        _, ciphertexts = key.encrypt_all(plaintexts, f"{packing_name} {name} ")
        case: dict[str, object] = {"check": None, "error": None}
        try:
            elements, weight = packing.read(key.bits, plaintexts, added, subtracted)
            shown = None if weight is None else str(weight)
            case |= {"elements": [str(v) for v in elements], "weight": shown}
        except Rejected as rejected:
            case = {"check": str(rejected), "error": "RemoteProtocolError"}
        message = Sent(key, packing, added, subtracted, ciphertexts)
        out.append(case | {"packing": packing_name, "name": name, "added": added,
                           "subtracted": subtracted, "bytes": message.encoded()})  # fmt: skip

    for name in READ:
        packing = packings[name]
        big, room, d = packing.largest, packing.offset, packing.d
        light = None if packing.max_weight is None else 0
        for count in (1, packing.summands):
            for sign, (a, s) in ((1, (count, 0)), (-1, (0, count)), (-1, (count, 0))):
                for at in (0, 1, d - 1):
                    for excess in (0, 1):
                        v = sign * (count * big + excess)
                        elements = [v if i == at else 0 for i in range(d)]
                        packed = packing.plaintexts(key.bits, elements, light, a - s)
                        what = f"slot {at} is {v}, {a} added, {s} subtracted"
                        add(name, what, packed, a, s)
        for a, s, count in ((1, 0, 0), (1, 0, 2), (1, 0, -1), (1, 1, 1), (1, 1, 0), (2, 1, 2),
                            (2, 1, 1), (2, 1, -1), (1, 0, 3), (1, 0, 4), (0, 1, 1), (0, 1, -1),
                            (3, 0, 1), (1, 0, big), (1, 0, big + 1), (1, 0, room),
                            (1, 0, -room)):  # fmt: skip
            packed = packing.plaintexts(key.bits, [0] * d, light, count)
            add(name, f"count {count}, {a} added, {s} subtracted", packed, a, s)
        if packing.max_weight is not None:
            most = packing.max_weight
            for a, s, weight in ((1, 0, 1), (1, 0, most), (1, 0, most + 1), (1, 0, -1),
                                 (0, 1, -most), (0, 1, -most - 1), (0, 1, 1), (1, 1, -most),
                                 (2, 1, 2 * most), (2, 1, 2 * most + 1), (2, 1, -most - 1),
                                 (1, 0, big), (1, 0, big + 1)):  # fmt: skip
                packed = packing.plaintexts(key.bits, [0] * d, weight, a - s)
                add(name, f"weight {weight}, {a} added, {s} subtracted", packed, a, s)
            packed = packing.plaintexts(key.bits, [0] * d, most + 1, 2)
            add(name, "the weight and the count are wrong", packed, 1, 0)
        packed = packing.plaintexts(key.bits, [big + 1] + [0] * (d - 1), light, 5)
        add(name, "a slot and the count are wrong", packed, 1, 0)
        packed = packing.plaintexts(key.bits, [0] * d, light, 1)
        cut, top = packing.cut(key.bits), (key.n - 1) // 2
        b = packing.slot_bits
        for at in (0, -1):
            beyond = sum((room + 1) << (b * i) for i in range(cut[at]))
            others = {
                "the largest there is": top,
                "the smallest there is": -top,
                "a bit above the last slot": packed[at] + (1 << (b * cut[at])),
                "a bit below the last slot": packed[at] - (1 << (b * cut[at])),
                "all slots one above the largest": beyond,
                "all slots one below the smallest": -beyond,
            }
            for what, m in others.items():
                if abs(m) > top:
                    continue
                wrong = list(packed)
                wrong[at] = m
                add(name, f"plaintext {at}: {what}", wrong, 1, 0)
    return out
