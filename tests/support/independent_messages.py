"""The nine messages of docs/protocol.md §6, as bytes and as lists of fields."""

from __future__ import annotations

from independent_dealing import depth
from independent_params import Parameters
from independent_primitives import integers, require, valid

Field = int | bytes
KINDS: dict[int, tuple[str, str, dict[str, str]]] = {  # §6.2: name, phase, fields
    1: ("AdvertiseKeys", "advertise_keys",
        {"sender": "int", "parameters": "par", "seal_key": "b32", "mask_key": "b32",
         "kem_key": "kem", "signature": "sig"}),
    2: ("Roster", "share_keys",
        {"parameters": "par", "size": "int", "digest": "b32", "ids": "bin",
         "seal_keys": "bin", "mask_keys": "bin", "kem_keys": "bin", "signatures": "bin"}),
    3: ("ShareKeys", "share_keys",
        {"sender": "int", "session": "b32", "commitment": "b32", "sealed": "bin",
         "checks": "bin", "hashes": "bin", "dealt": "sig"}),
    4: ("Shares", "masked_input",
        {"session": "b32", "senders": "bin", "sealed": "bin", "checks": "bin",
         "commitments": "bin", "dealt": "bin", "points": "bin", "hashes": "bin",
         "paths": "bin"}),
    5: ("MaskedInput", "masked_input",
        {"sender": "int", "session": "b32", "deposits": "bin", "complaints": "bin",
         "disclosed": "bin", "accepted": "sig", "values": "bin"}),
    6: ("UnmaskRequest", "unmasking",
        {"session": "b32", "survivors": "bin", "dropped": "bin", "signers": "bin",
         "signatures": "bin"}),
    7: ("UnmaskShares", "unmasking",
        {"sender": "int", "session": "b32", "shares": "bin", "answer": "sig"}),
    8: ("ConsistencyRequest", "consistency_check", {"session": "b32", "survivors": "bin"}),
    9: ("ConsistencySignature", "consistency_check",
        {"sender": "int", "session": "b32", "signature": "sig"}),
}  # fmt: skip
MOST = {"par": 379, "kem": 1184, "sig": 64, "b32": 32}
UNSIGNED = {0xCC + i: 2**i for i in range(4)}  # §6.1: uint 8 ... 64
SIGNED = {0xD0 + i: 2**i for i in range(4)}
BINS = {0xC4 + i: 2**i for i in range(3)}  # the bytes of the length


def limit(p: Parameters, tag: int) -> int:
    """The most bytes of a message."""
    kem, check, active = 1184 * p.hybrid, 32 * p.hybrid, int(p.active)
    more = {
        1: 379 + kem,
        2: 379 + p.h * (72 + p.sigma + kem),
        3: p.h * (p.box + check + 64 * active),
        4: p.h * (8 + p.box + check + (164 + 32 * depth(p.h)) * active),
        5: p.packed + p.h * (check + (9 + 3 * check) * active),
        6: p.h * (80 if p.active else 8),
        7: 40 * p.h,
        8: 8 * p.h,
    }
    return 256 + more.get(tag, 0)


def encode_field(field: Field) -> bytes:
    """§6.1, in the shortest format."""
    if isinstance(field, bytes):
        head, size = next((h, w) for h, w in BINS.items() if len(field) < 256**w)
        return bytes([head]) + len(field).to_bytes(size, "big") + field
    if -0x20 <= field < 0x80:
        return bytes([field % 256])
    if field < 0:
        head, size = next((h, w) for h, w in SIGNED.items() if -field <= 256**w // 2)
    else:
        head, size = next((h, w) for h, w in UNSIGNED.items() if field < 256**w)
    return bytes([head]) + field.to_bytes(size, "big", signed=field < 0)


def encode(tag: int, *fields: Field) -> bytes:
    body = b"".join(map(encode_field, (tag, *fields)))
    return b"\x04" + bytes([0x91 + len(fields)]) + body


def decode(data: bytes, tag: int, most: int) -> list:
    """§6.1: the fields of the one message that is due, which has at most so many bytes."""
    valid(isinstance(data, bytes | bytearray | memoryview), "data: not bytes")
    data, at = bytes(data), 2
    require(len(data) > 0, "encoding")
    require(data[0] == 4, "version")
    require(len(data) <= most, "size")

    def take(size: int) -> bytes:
        nonlocal at
        require(size <= len(data) - at, "encoding")
        at += size
        return data[at - size : at]

    def item() -> Field:
        head = take(1)[0]
        if head < 0x80 or head >= 0xE0:  # positive, negative fixint
            return head if head < 0x80 else head - 0x100
        if head in UNSIGNED | SIGNED:
            size = (UNSIGNED | SIGNED)[head]
            return int.from_bytes(take(size), "big", signed=head in SIGNED)
        require(head in BINS, "encoding")
        return take(int.from_bytes(take(BINS[head]), "big"))

    head = data[1] if len(data) > 1 else 0  # fixarray, array 16 or array 32
    require(0x90 <= head <= 0x9F or head in (0xDC, 0xDD), "encoding")
    count = head - 0x90 if head <= 0x9F else int.from_bytes(take(2 * (head - 0xDB)), "big")
    kinds = KINDS[tag][2].values()
    require(count == 1 + len(kinds) and item() == tag, "encoding")
    fields = []
    for kind in kinds:
        fields.append(item())
        require(isinstance(fields[-1], int if kind == "int" else bytes), "encoding")
        require(kind != "b32" or len(fields[-1]) == 32, "encoding")
        require(kind not in MOST or len(fields[-1]) <= MOST[kind], "encoding")
    require(at == len(data), "encoding")
    return fields


def ascending(data: bytes) -> list[int]:
    """§8, strictly ascending ids."""
    require(len(data) % 8 == 0, "ids")
    found = integers(data)
    require(found == sorted(set(found)), "ids")
    return found
