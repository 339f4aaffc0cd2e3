"""The vectors of docs/protocol.md §4, §5.7 and §5.9: numbers, mask streams and packing."""

import struct

from draws import draw
from params import described

from independent_params import Parameters
from independent_primitives import ids, sha256
from independent_streams import attempts, prg
from independent_sums import FixedPoint, Integers, pack

SHORT, LONG = 67, 20011
POWERS = [1, 2, 7, 8, 9, 15, 16, 31, 32, 33, 40, 48, 56, 63, 64]
REJECTING = 2**64 // 5 + 1  # a fifth of the words is rejected, the largest share possible
OTHERS = {
    "3": 3,
    "5": 5,
    "prime below 2^16": 65521,
    "odd composite": 2**32 - 1,
    "prime above 2^32": 2**32 + 15,
    "even": 2**33 + 2,
    "2^61 - 1": 2**61 - 1,
    "2^62 - 1": 2**62 - 1,
    # A word in 16 lies on the edge of rejection: M mod 2^64 = 2^64 mod R = 2^60.
    "edge, 3 times 2^60": 3 * 2**60,
    "rejecting": REJECTING,
    "rejecting, even": REJECTING - REJECTING % 2 + 2,
}


def masks() -> dict[str, object]:
    """Whole streams of 67 elements, and a digest and the end of long ones."""
    annex = bytes(range(16))
    streams = []
    moduli = {f"2^{b}": 2**b for b in POWERS} | OTHERS
    for name, modulus in moduli.items():
        key = draw(f"masks {name}", 16)
        streams.append(_stream(name, key, modulus, SHORT))
        streams.append(_stream(name + ", long", key, modulus, LONG))
    streams.append(_stream("Annex A, 2^15", annex, 2**15, 8))
    streams.append(_stream("Annex A, 2^40", annex, 2**40, 8))
    streams.append(_stream("Annex A, rejecting", annex, REJECTING, 8))
    key, most = searched()
    streams.append(
        _stream(f"searched: one element takes attempt {most}", key, REJECTING, SHORT)
    )
    return {"streams": streams}


def searched() -> tuple[bytes, int]:
    """The first key under which one of the first 67 elements rejects five words."""
    for i in range(10_000):
        key = draw(f"masks searched {i}", 16)
        most = max(attempt for _, attempt in attempts(key, SHORT, REJECTING))
        if most >= 5:
            return key, most
    raise AssertionError("no key found")


def _stream(name: str, key: bytes, modulus: int, count: int) -> dict[str, object]:
    elements = prg(key, count, modulus)
    out: dict[str, object] = {"name": name, "key": key, "modulus": modulus, "count": count}
    if count <= SHORT:
        return out | {"elements": ids(elements)}
    # Two places a reader can look at when the digest differs: a middle one and the end.
    return out | {
        "from_10000": ids(elements[10000:10008]),
        "last": ids(elements[-8:]),
        "sha256": sha256(ids(elements)),
    }


def packing() -> dict[str, object]:
    out = []
    for bits in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 61, 63, 64):
        for count in (1, 5, 8, 23):
            stream = prg(draw(f"packing {bits} {count}", 16), count, 2**bits)
            stream[-1] = 2**bits - 1
            out.append({"bits": bits, "elements": ids(stream), "packed": pack(stream, bits)})
    zero = {"bits": 13, "elements": ids([0] * 5), "packed": bytes(9)}
    return {"packings": [*out, zero]}


def encodings() -> dict[str, object]:
    exact = FixedPoint(2.0, 2)
    tie = [0.125, 0.375, 0.625, -0.125, -0.375, -0.625, 1.125, 1.375, -1.875, 0.1249999999]
    plain = Parameters(4, 3, 1, exact, 2**16)
    small = 5e-324
    cases = [
        ("ties to even", plain, tie, None),
        ("clip", plain,
         [2.0, -2.0, 2.0000000000000004, 7.25, -7.25, 1e308, -1e308, 1.99], None),
        ("zeros and denormals", plain, [0.0, -0.0, small, -small, 2.0**-1022], None),
        ("clip that is no binary fraction",
         plain.but(encoding=FixedPoint(0.1, 20), modulus=2**20),
         [0.1, -0.1, 0.05, 0.2, 1 / 3, -0.09999999], None),
        ("no fractional bits", plain.but(encoding=FixedPoint(100.0, 0)),
         [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 99.5, 100.5], None),
        ("52 fractional bits", plain.but(encoding=FixedPoint(1.0, 52), modulus=2**58),
         [1.0, -1.0, 2.0**-52, 2.0**-53, 3 * 2.0**-53, -(2.0**-53), 0.7], None),
        ("clip 2^58, beyond binary64's integers",
         plain.but(encoding=FixedPoint(2.0**58, 0), modulus=2**61 + 1),
         [2.0**58, 2.0**53 + 2, -(2.0**53) - 2, -(2.0**58), 1.5], None),
        ("prime modulus", plain.but(modulus=65521), [*tie, 1.0, -1.0, -2.0], None),
        ("64 bits", plain.but(modulus=2**64), [1.0, -1.0, -0.25, -2.0, 2.0], None),
        ("weighted", plain.but(max_weight=10), [0.25, -0.25, 2.0, -2.0, 0.125], 7),
        ("largest weight", plain.but(max_weight=10), [2.0, -2.0], 10),
        ("weight 0", plain.but(max_weight=10), [0.25, -0.25], 0),
        ("weighted, prime modulus", plain.but(max_weight=10, modulus=65521), [2.0, -2.0], 9),
    ]  # fmt: skip
    whole = plain.but(encoding=Integers(1000), modulus=4099)
    cases += [
        ("integers", whole, [0, 1, 999, 1000], None),
        ("integers, weighted", whole.but(max_weight=3, modulus=2**32), [0, 1, 1000], 3),
        ("integers, large", whole.but(encoding=Integers(2**60), modulus=2**63),
         [0, 2**60], None),
    ]  # fmt: skip
    out = []
    for name, base, vector, weight in cases:
        params = base.but(length=len(vector))
        elements = params.elements(vector, weight, None)
        out.append({"name": name, "parameters": described(params), "vector": vector,
                    "weight": weight, "elements": ids(elements),
                    "packed": pack(elements, params.b)})  # fmt: skip
    return {
        "nearest": out,
        "stochastic": _stochastic(),
        "decoding": _decoding(),
        "refused": [
            {"name": name, "parameters": described((plain if signed else whole).but(length=2)),
             "f64le": struct.pack("<2d", *x)}
            for name, signed, x in (
                ("NaN", True, (0.0, float("nan"))),
                ("infinity", True, (float("inf"), 0.0)),
                ("minus infinity", True, (0.0, float("-inf"))),
                ("above max", False, (0.0, 1001.0)),
                ("negative integer", False, (-1.0, 0.0)),
                ("no integer", False, (0.5, 0.0)),
            )
        ],
    }  # fmt: skip


def _stochastic() -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for f in (0, 4, 20):
        key = draw(f"stochastic {f}", 16)
        words = prg(draw(f"stochastic vector {f}", 16), 40, 2**64)
        vector = [(word / 2**63 - 1) * 3 for word in words] + [1.0, -1.0, 2.5, -2.5, 0.0]
        params = Parameters(4, 3, len(vector), FixedPoint(2.5, f), 2**32)
        elements = params.elements(vector, None, key)
        out.append({"parameters": described(params), "key": key, "vector": vector,
                    "elements": ids(elements)})  # fmt: skip
    return out


def _decoding() -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for modulus in (2**16, 65521, 2**61 - 1, 2**64):
        params = Parameters(3, 2, 6, FixedPoint(1.0, 3), modulus)
        half = (modulus - 1) // 2
        total = [0, 1, half, half + 1, modulus - 1, modulus - 8]
        signed = params.decode(total, params.n)
        out.append({"parameters": described(params), "elements": ids(total), "integers": signed,
                    "values": [x * 2.0**-3 for x in signed]})  # fmt: skip
    return out
