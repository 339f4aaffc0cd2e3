"""Faults of a Roster that a client rejects (docs/protocol.md §8.2): one in each."""

from derivations import LOW_ORDER, NOT_CANONICAL
from draws import draw
from faults import Cases, Faults, flip
from faults_params import other_parameters
from kinds import get
from whole_round import Entry, Round, roster

from independent_keys import signed_keys
from independent_primitives import curve_key, ids, sign


def roster_faults(out: Cases, rounds: dict[str, Round]) -> None:
    r = rounds["complete-nobody-drops"]
    to = Faults(out, "client", r, "share_keys", 7)
    p = {v: r.entry(v) for v in r.u1}
    first, second, (c, s, _, _) = p.values()
    seal, mask = get(to.good, "seal_keys"), get(to.good, "mask_keys")
    for name, check, other in other_parameters(r.params):
        to(name, check, parameters=other)
    to("ids descend", "ids", ids=ids([9, 8, 7]))
    to("an id twice", "ids", ids=ids([7, 8, 8]))
    to("ids not whole", "ids", ids=ids([7, 8, 9])[:-1])
    to("ids big-endian and so descending", "ids", ids=ids(x << 56 for x in (9, 8, 7)))
    to("a sealing key short", "length", seal_keys=seal[:-32])
    to("sealing keys a byte short", "length", seal_keys=seal[:-1])
    to("a masking key too many", "length", mask_keys=mask + mask[:32])
    to("masking keys missing", "length", mask_keys=b"")
    to("signatures where nobody signs", "length", signatures=bytes(64))
    to("KEM keys in suite x25519", "length", kem_keys=bytes(96))
    to("another client's id for its own", "own keys", ids=ids([8, 9, 10]))
    to("its sealing key altered", "own keys", seal_keys=flip(seal))
    to("its masking key altered", "own keys", mask_keys=flip(mask))
    to("sealing and masking keys swapped", "own keys", seal_keys=mask, mask_keys=seal)
    to("nobody", "own keys", ids=b"", seal_keys=b"", mask_keys=b"")
    to("size below the ids", "cohort", size=2)
    to("size above n", "cohort", size=4)
    to("size -1", "cohort", size=-1)
    to("size 0", "cohort", size=0)
    to("size 2^64 - 1", "cohort", size=2**64 - 1)
    to("one bit of the digest", "digest", digest=flip(get(to.good, "digest")))

    def last(name: str, check: str, *keys: bytes) -> None:
        """The last entry has other keys than its client's."""
        to(name, check, message=roster(r.params, p | {9: (*keys, b"", b"")}))

    last("two with one sealing key", "duplicate key", second[0], s)
    last("two with one masking key", "duplicate key", c, second[1])
    last("another with its sealing key", "duplicate key", first[0], s)
    last("another seals with its masking key", "duplicate key", first[1], s)
    last("another with one key twice", "duplicate key", s, s)
    two = {7: first, 8: second}
    to("one client is left out", "neighbours", message=roster(r.params, two, size=3))
    to("only two came", "size", message=roster(r.params, two))
    to("alone", "size", message=roster(r.params, {7: first}))
    for key in (*LOW_ORDER, *NOT_CANONICAL):
        last("a sealing key that is not usable", "public key", key, s)
        last("a masking key that is not usable", "public key", c, key)

    r = rounds["min-survivors"]
    some = {v: r.entry(v) for v in r.u1[:3]}  # as many as t
    to = Faults(out, "client", r, "share_keys", 1)
    to("fewer than min_survivors", "size", message=roster(r.params, some))

    r = rounds["graph"]
    u = r.u1[1]
    to, p = Faults(out, "client", r, "share_keys", u), {v: r.entry(v) for v in r.holders[u]}
    size, digest = len(p), get(to.good, "digest")
    others = [v for v in p if v != u]
    p.pop(others[-1] if u != max(p) else others[0])
    for name, many in (
        ("a neighbour is left out", len(r.u1)),
        ("only holders came, one is left out", size),
    ):
        fewer = roster(r.params, p, digest=digest, size=many)
        to(name, "neighbours", message=fewer)
    to("size below the neighbours", "cohort", size=size - 1)
    to("it sees all, and another digest", "digest", size=size)


def signed_roster_faults(out: Cases, rounds: dict[str, Round]) -> None:
    r = rounds["active-prime"]
    to, p = Faults(out, "client", r, "share_keys", 1), {v: r.entry(v) for v in r.u1}
    signatures, (c, s, _, _) = get(to.good, "signatures"), p[3]
    one, two, three = signatures[:64], signatures[64:128], signatures[128:]
    to.each("length", "signatures", {
        "no signatures": b"",
        "signatures a byte short": signatures[:-1],
        "a signature missing": signatures[:128],
    })  # fmt: skip
    to.each("signature", "signatures", {
        "a signature of zeros": one + two + bytes(64),
        "one bit of a signature": one + two + flip(three),
        "one bit of its own signature": flip(signatures),
        "two signatures swapped": one + three + two,
    })  # fmt: skip

    def third(name: str, check: str, entry: Entry, v: int = 3) -> None:
        entries = {w: p[w] for w in (1, 2)} | {v: entry}
        to(name, check, message=roster(r.params, entries))

    def entry(r: Round, u: int, keys: tuple[bytes, bytes], identity: bytes) -> Entry:
        """The entry that this identity has signed."""
        signed = signed_keys(r.params.digest(), u, *keys, b"")
        return *keys, b"", sign(identity, signed)

    fresh = curve_key(draw("stranger 0", 32)), curve_key(draw("stranger 1", 32))
    stranger, own = draw("s", 32), r.parties[3].identity or b""
    third("a client of no registry", "unknown client", entry(r, 9, fresh, stranger), 9)
    third("keys signed by another identity", "signature", entry(r, 3, fresh, stranger))
    replayed = entry(rounds["active"], 3, fresh, own)
    third("keys signed for another round", "signature", replayed)
    third("keys signed the other way round", "signature", (s, c, b"", three))
    unusable = entry(r, 3, (LOW_ORDER[2], s), own)
    third("a sealing key that is not usable, signed", "public key", unusable)
