"""oneshot_malformed.json: what each party rejects by docs/oneshot.md §3.3 to §6."""

from collections.abc import Iterator
from typing import Any

import oneshot
from draws import draw
from faults import flip
from oneshot import Batch, Client, make, secrets
from oneshot_faults import not_parameters, records

from independent_oneshot_params import REQUEST
from independent_primitives import cut, ids, sha256, sign, u8, u16le, u64le
from independent_sums import Integers

Case = tuple[str, str, str, bytes]  # name, check, phase, bytes


def framing(good: bytes, phase: str, least: int = 35) -> Iterator[Case]:
    """§5.2 for any message, and its last bytes; `least` is the shortest with another check."""
    for size in (0, 1, 33):
        yield f"the first {size} bytes", "length", phase, good[:size]
    for version in (0, 2, 255):
        yield f"version {version}", "version", phase, u8(version) + good[1:]
    for kind in (0, good[1] % 6 + 1, 7):
        yield f"kind {kind}", "encoding", phase, good[:1] + u8(kind) + good[2:]
    for at in (2, 33):
        yield f"byte {at} altered", "parameters", phase, flip(good, at)
    yield "nothing after the digest", "length", phase, good[:34]
    if least < len(good):
        yield "the last byte missing", "length", phase, good[:-1]
        yield "a byte more", "length", phase, good + b"\0"


def reports(all_: dict[str, Batch]) -> Iterator[dict[str, object]]:
    batch = all_["example"]
    first, second, _ = batch.clients
    p, good = batch.p, first.encode()
    end = len(good) - p.packed
    for name, check, phase, data in framing(good, "report"):
        yield row(batch, "add", name, check, phase, data)
    later = Client(p, 1, [0.0, 0.0, 0.0], 0)
    later.commit([draw("another commitment", 32)] * p.count)
    yield row(batch, "add", "another report of a client", "id", "report", later.encode(), good)
    full = all_["one-of-two"]
    more = Client(full.p, 5, [0, 1, 1]).encode()
    before = [c.encode() for c in full.clients]
    yield row(full, "add", "the report after n", "count", "report", more, *before)
    for name, signature in (
        ("altered", flip(first.signature)),
        ("of another client", second.signature),
        ("of nothing", sign(draw("one-shot identity 1", 32), b"")),
        ("of zeros", bytes(64)),
    ):
        data = good[: end - 64] + signature + good[end:]
        yield row(batch, "add", f"a signature {name}", "signature", "report", data)
    unknown = Client(p, 77, [0.0, 0.0, 0.0], 0).encode()
    yield row(batch, "add", "a client not in the registry", "signature", "report", unknown)
    padded = first.encode(_pad(p.pack(first.y)))
    yield row(batch, "add", "a padding bit", "range", "report", padded)
    prime = all_["three-of-five"]
    client = prime.clients[0]
    for value in (prime.p.modulus, 2**61 - 1):
        y = [*client.y[:-1], value]
        data = client.encode(prime.p.pack(y))
        yield row(prime, "add", f"an element {value}", "range", "report", data)


def checked(all_: dict[str, Batch]) -> Iterator[dict[str, object]]:
    batch = all_["example"]
    good = batch.boxes(2)
    for name, check, phase, data in framing(good, "check"):
        yield row(batch, "check", name, check, phase, data, helper=2)
    for j in (0, 1, 3, 4, 65535):
        data = good[:34] + u16le(j) + good[36:]
        yield row(batch, "check", f"boxes for helper {j}", "helper", "check", data, helper=2)
    yield row(batch, "check", "one byte of a number", "length", "check", good[:35], helper=2)


def requests(all_: dict[str, Batch]) -> Iterator[dict[str, object]]:
    batch = all_["example"]
    p, good = batch.p, batch.request()
    signed = batch.request(1, 2, 3)

    def asked(users: list[int], *signed: bytes, count: int | None = None) -> bytes:
        counts = u64le(batch.batch), u64le(len(users) if count is None else count)
        return p.message(REQUEST, *counts, ids(users), *signed)

    faults = list(framing(good, "reserve"))
    faults += [
        ("15 bytes of counts", "length", "reserve", good[:49]),
        ("a count too high", "length", "reserve", asked([1, 2, 300], count=4)),
        ("a count of 2^64 - 1", "length", "reserve", asked([1, 2, 300], count=2**64 - 1)),
        ("a count too low", "length", "reserve", asked([1, 2, 300], count=2)),
        ("65 bytes of a signature", "length", "reserve", batch.request(1)[:-1]),
        ("ids descend", "ids", "reserve", asked([1, 300, 2])),
        ("an id twice", "ids", "reserve", asked([1, 2, 2, 300])),
        ("no ids", "count", "reserve", asked([])),
        ("a single client", "count", "reserve", asked([1])),
        ("fewer than the minimum", "count", "reserve", asked([1, 2])),
        ("more than n", "count", "reserve", asked([1, 2, 3, 4, 300])),
        ("a client without a box", "unchecked", "reserve", asked([1, 2, 3])),
        ("signer 0", "signatures", "reserve", asked([1, 2, 300], u16le(0) + bytes(64))),
        ("signer 4 of 3", "signatures", "reserve", asked([1, 2, 300], u16le(4) + bytes(64))),
        ("signers descend", "signatures", "reserve", batch.request(2, 1)),
        ("a signer twice", "signatures", "reserve", batch.request(1, 1, 2)),
    ]
    for name, check, phase, data in faults:
        for where in ("reserve", "open"):
            yield row(batch, where, name, check, phase, data, helper=2)
    other = batch.but(batch.clients, batch.batch + 1)
    endorsed = sign(batch.secrets[0][1], p.endorsement())
    for name, check, data in (
        ("no signature", "quorum", good),
        ("q - 1 signatures", "quorum", batch.request(2, 3)),
        ("a signature altered", "signature", flip(signed, -1)),
        ("signatures of another list", "signature", good + other.request(1, 2, 3)[-198:]),
        ("a signature of another helper", "signature", good + u16le(3) + batch.sign(1)),
        ("an endorsement", "signature", good + u16le(1) + endorsed),
    ):
        yield row(batch, "open", name, check, "open", data, helper=2)
    for name, session in (("semi-honest", "two-of-two"), ("active", "one-of-two")):
        batch = all_[session]
        fewer = batch.but(batch.clients[:2], batch.batch)
        again = batch.but(batch.clients[:2], 5)
        signers = (1, 2) if batch.p.q else ()
        for where, before in (("reserve", batch.request()), ("open", batch.request(*signers))):
            for check, data in (
                ("batch", fewer.request(*signers)),
                ("spent", again.request(*signers)),
            ):
                made = f"a shorter list, {name}"
                yield row(batch, where, made, check, "reserve", data, before, helper=1)


def reservations(all_: dict[str, Batch]) -> Iterator[dict[str, object]]:
    batch = all_["example"]
    good = batch.reservation(2)
    head, D, signature = good[:34], good[36:68], good[68:]
    other = batch.but(batch.clients, batch.batch + 1)
    faults = list(framing(good, "reserve"))
    faults += [
        ("33 bytes of D", "length", "reserve", good[:67]),
        ("no signature", "length", "reserve", good[:68]),
        ("helper 0", "helper", "reserve", head + u16le(0) + good[36:]),
        ("helper 4 of 3", "helper", "reserve", head + u16le(4) + good[36:]),
        ("another list", "list", "reserve", other.reservation(2)),
        ("another helper", "signature", "reserve", head + u16le(1) + D + signature),
        ("altered", "signature", "reserve", flip(good, -1)),
    ]
    for name, check, phase, data in faults:
        yield row(batch, "reservation", name, check, phase, data)
    semi = all_["two-of-two"]
    data = semi.reservation(1) + bytes(64)
    name = "a signature, semi-honest"
    yield row(semi, "reservation", name, "length", "reserve", data)


def answers(all_: dict[str, Batch]) -> Iterator[dict[str, object]]:
    batch = all_["example"]
    good = batch.answer(2)
    head = good[:34]
    other = batch.but(batch.clients, batch.batch + 1)
    wrong = [[(x + 1) % batch.p.modulus for x in mask] for mask in batch.masks]
    rest = [batch.answer(j) for j in (1, 3)]
    faults = list(framing(good, "open"))
    faults += [
        ("no masks", "length", "open", good[:68]),
        ("helper 0", "helper", "open", head + u16le(0) + good[36:]),
        ("helper 4 of 3", "helper", "open", head + u16le(4) + good[36:]),
        ("another list", "list", "open", other.answer(2)),
    ]
    for name, check, phase, data in faults:
        yield row(batch, "answer", name, check, phase, data, *rest)
    lie = batch.answer(2, wrong)
    yield row(batch, "answer", "two of one helper", "holders", "open", lie, good, *rest)
    yield row(batch, "answer", "one of two holders lies", "holders", "open", lie, rest[1])
    tall = [[*m[:-1], batch.p.modulus - 1] for m in batch.masks]
    padded = [batch.answer(j, tall) for j in (1, 2, 3)]
    padded = [a[:68] + b"".join(_pad(m) for m in cut(a[68:], 8)) for a in padded]
    yield row(batch, "answer", "a padding bit", "range", "open", padded[0], *padded[1:])
    prime = all_["many-rejections"]
    above = [[prime.p.modulus, *m[1:]] for m in prime.masks]
    made = [prime.answer(j, above) for j in (1, 2)]
    yield row(prime, "answer", "an element R", "range", "open", made[0], made[1])
    plain = all_["two-of-two"]
    shifted = [[(x - 500) % plain.p.modulus for x in plain.masks[0]], plain.masks[1]]
    lies = [plain.answer(j, shifted) for j in (1, 2)]
    name = "masks of too large a sum"
    yield row(plain, "answer", name, "sum", "unmasking", lies[0], lies[1])
    heavy = all_["three-of-five"]
    first = [*heavy.masks[0][:-1], (heavy.masks[0][-1] - 30) % heavy.p.modulus]
    lies = [heavy.answer(j, [first, *heavy.masks[1:]]) for j in range(1, 6)]
    name = "masks of too large a weight"
    yield row(heavy, "answer", name, "weight", "unmasking", lies[0], *lies[1:])


def _pad(mask: bytes) -> bytes:
    return mask[:-1] + u8(mask[-1] | 0x80)


def stored(all_: dict[str, Batch]) -> Iterator[dict[str, object]]:
    batch = all_["example"]
    p, clients = batch.p, batch.clients
    good, kept = batch.stored(False, []), batch.stored(False, clients)
    at, start = 34 + 25, 34 + 25 + p.packed
    zero = sha256(b"")

    def counts(fixed: int, count: int, unsettled: int) -> bytes:
        return good[:42] + u8(fixed) + u64le(count) + u64le(unsettled) + good[at:]

    rows = cut(good[start:], 40)
    one, two, three = (c.encode() for c in clients)
    body = kept[: start + 120]
    short = batch.but(clients[:2], batch.batch).stored(True, [])
    later = Client(p, 1, [0.0, 0.0, 0.0], 0)
    later.commit([draw("another commitment", 32)] * p.count)
    swapped = rows[1] + rows[0] + rows[2]
    tall = one[: -p.packed] + _pad(one[-p.packed :])
    faults = list(framing(good, "accumulator"))
    faults += [
        ("24 bytes of counts", "length", "accumulator", good[:58]),
        ("fixed 2", "count", "accumulator", counts(2, 3, 0)),
        ("more than n", "count", "accumulator", counts(0, 5, 0)),
        ("2^64 - 1", "count", "accumulator", counts(0, 2**64 - 1, 0)),
        ("more unsettled than reports", "count", "accumulator", counts(0, 3, 4)),
        ("a fixed list of two", "count", "accumulator", short),
        ("a count too low", "length", "accumulator", counts(0, 2, 0)),
        ("a count too high", "length", "accumulator", counts(0, 4, 0)),
        ("unsettled, but not there", "length", "accumulator", counts(0, 3, 1)),
        ("a padding bit", "range", "accumulator", good[: start - 1] + b"\xff" + good[start:]),
        ("ids descend", "ids", "accumulator", good[:start] + swapped),
        ("an id twice", "ids", "accumulator", good[:start] + rows[0] + rows[0] + rows[2]),
        ("reports descend", "ids", "accumulator", body + two + one + three),
        ("a report twice", "ids", "accumulator", body + one + one + three),
        ("another digest", "ids", "accumulator",
         kept[:start] + rows[0][:8] + zero + kept[start + 40 :]),
        ("another report", "ids", "accumulator", body + later.encode() + two + three),
        ("a report of another session", "parameters", "report",
         body + one[:2] + bytes(32) + one[34:] + two + three),
        ("a report out of range", "range", "report", body + tall + two + three),
    ]  # fmt: skip
    for name, check, phase, data in faults:
        yield row(batch, "stored", name, check, phase, data)


def row(batch: Batch, where: str, *case: Any, helper: int = 0) -> dict[str, object]:
    """A `Case` at a party, and the messages before it."""
    name, check, phase, data, *before = case
    return {
        "session": batch.name, "where": where, "name": f"{where}: {name}", "check": check,
        "phase": phase, "bytes": data, "before": before, "helper": helper,
    }  # fmt: skip


def malformed() -> dict[str, object]:
    all_ = oneshot.sessions()
    parts = (reports, checked, requests, reservations, answers, stored)
    small, _ = make(3, 1, Integers(9), 2, secrets("bytes", 2), session=b"bytes")
    return {
        "parameters": [
            {"name": name, "check": check, "bytes": data}
            for name, check, data in not_parameters(small)
        ],
        "refused": [case for part in parts for case in part(all_)],
        "records": list(records(all_["example"], all_["two-of-two-active"])),
    }
