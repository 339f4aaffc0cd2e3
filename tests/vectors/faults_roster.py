"""Faults of a Roster that a client rejects (docs/protocol.md §8.2): one in each."""

from collections.abc import Callable

from derivations import LOW_ORDER, NOT_CANONICAL
from draws import draw
from faults_params import other_parameters
from faults_server import flip
from kinds import but, get
from parties import Entry, Round, roster

from independent_keys import signed_keys
from independent_primitives import curve_key, ids, sign

Add = Callable[..., None]


def entry(r: Round, u: int, keys: tuple[bytes, bytes], identity: bytes) -> Entry:
    """An entry of a roster that this identity has signed."""
    return *keys, sign(identity, signed_keys(r.params.digest(), u, *keys))


def roster_faults(add: Add, rounds: dict[str, Round]) -> None:
    r = rounds["complete-nobody-drops"]
    u = 7
    good = r.answers["advertise_keys"][u]
    p = {v: r.entry(v) for v in r.u1}
    first, second, (c, s, _) = p.values()
    seal, mask = get(good, "seal_keys"), get(good, "mask_keys")

    def with_(name: str, check: str, **changes: int | bytes) -> None:
        add(r, name, check, u, but(good, **changes))

    for name, check, other in other_parameters(r.params):
        with_(name, check, parameters=other)
    with_("ids descend", "ids", ids=ids([9, 8, 7]))
    with_("an id twice", "ids", ids=ids([7, 8, 8]))
    with_("ids not whole", "ids", ids=ids([7, 8, 9])[:-1])
    with_("ids big-endian and so descending", "ids",
          ids=b"".join((x << 56).to_bytes(8, "little") for x in (9, 8, 7)))  # fmt: skip
    with_("a sealing key short", "length", seal_keys=seal[:-32])
    with_("sealing keys a byte short", "length", seal_keys=seal[:-1])
    with_("a masking key too many", "length", mask_keys=mask + mask[:32])
    with_("masking keys missing", "length", mask_keys=b"")
    with_("signatures where nobody signs", "length", signatures=bytes(64))
    with_("another client's id for its own", "own keys", ids=ids([8, 9, 10]))
    with_("its sealing key altered", "own keys", seal_keys=flip(good, "seal_keys"))
    with_("its masking key altered", "own keys", mask_keys=flip(good, "mask_keys"))
    with_("sealing and masking keys swapped", "own keys", seal_keys=mask, mask_keys=seal)
    with_("nobody", "own keys", ids=b"", seal_keys=b"", mask_keys=b"")
    with_("size below the ids", "cohort", size=2)
    with_("size above n", "cohort", size=4)
    with_("size -1", "cohort", size=-1)
    with_("size 0", "cohort", size=0)
    with_("size 2^64 - 1", "cohort", size=2**64 - 1)
    with_("one bit of the digest", "digest", digest=flip(good, "digest"))

    def last(name: str, check: str, *keys: bytes) -> None:
        """The last entry has other keys than its client's."""
        add(r, name, check, u, roster(r.params, p | {9: (*keys, b"")}))

    last("two with one sealing key", "duplicate key", second[0], s)
    last("two with one masking key", "duplicate key", c, second[1])
    last("another with its sealing key", "duplicate key", first[0], s)
    last("another seals with its masking key", "duplicate key", first[1], s)
    last("another with one key twice", "duplicate key", s, s)
    two = {7: first, 8: second}
    add(r, "one client is left out", "neighbours", u, roster(r.params, two, size=3))
    add(r, "only two came", "size", u, roster(r.params, two))
    add(r, "alone", "size", u, roster(r.params, {7: first}))
    for key in (*LOW_ORDER, *NOT_CANONICAL):
        last("a sealing key that is not usable", "public key", key, s)
        last("a masking key that is not usable", "public key", c, key)

    r = rounds["graph"]
    u = r.u1[1]
    p = {v: r.entry(v) for v in r.holders[u]}
    good = r.answers["advertise_keys"][u]
    others = [v for v in p if v != u]
    p.pop(others[-1] if u != max(p) else others[0])
    fewer = roster(r.params, p, digest=get(good, "digest"))
    add(r, "a neighbour is left out", "neighbours", u, but(fewer, size=len(r.u1)))
    add(r, "only holders came, one is left out", "neighbours", u, but(fewer, size=len(p) + 1))
    add(r, "size below the neighbours", "cohort", u, but(good, size=len(p)))
    add(r, "it sees all, and another digest", "digest", u, but(good, size=len(p) + 1))


def signed_roster_faults(add: Add, rounds: dict[str, Round]) -> None:
    r = rounds["active-prime"]
    u = 1
    good = r.answers["advertise_keys"][u]
    p = {v: r.entry(v) for v in r.u1}
    signatures = get(good, "signatures")
    one, two, three = signatures[:64], signatures[64:128], signatures[128:]

    def with_(name: str, check: str, value: bytes) -> None:
        add(r, name, check, u, but(good, signatures=value))

    with_("no signatures", "length", b"")
    with_("signatures a byte short", "length", signatures[:-1])
    with_("a signature missing", "length", signatures[:128])
    with_("a signature of zeros", "signature", one + two + bytes(64))
    with_("one bit of a signature", "signature", one + two + bytes([three[0] ^ 1]) + three[1:])
    with_("one bit of its own signature", "signature", bytes([one[0] ^ 1]) + signatures[1:])
    with_("two signatures swapped", "signature", one + three + two)

    def third(name: str, check: str, v: int, of: Entry) -> None:
        entries = {w: p[w] for w in (1, 2)} | {v: of}
        add(r, name, check, u, roster(r.params, entries))

    c, s, _ = p[3]
    fresh = curve_key(draw("stranger 0", 32)), curve_key(draw("stranger 1", 32))
    stranger, own = draw("s", 32), r.parties[3].identity or b""
    third("a client of no registry", "unknown client", 9, entry(r, 9, fresh, stranger))
    third("keys signed by another identity", "signature", 3, entry(r, 3, fresh, stranger))
    replayed = entry(rounds["active"], 3, fresh, own)
    third("keys signed for another round", "signature", 3, replayed)
    third("keys signed the other way round", "signature", 3, (s, c, three))
    unusable = entry(r, 3, (LOW_ORDER[2], s), own)
    third("a sealing key that is not usable, signed", "public key", 3, unusable)
