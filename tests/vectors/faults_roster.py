"""Faults of a Roster that a client rejects (docs/protocol.md §8.2): one in each."""

from collections.abc import Callable

import primitives as pr
from derivations import LOW_ORDER, NOT_CANONICAL
from faults_params import other_parameters
from faults_server import flip
from kinds import but, get
from parties import Party, Round
from primitives import Message, draw, ids

Add = Callable[..., None]


def roster(r: Round, parties: list[Party], **changes: int | bytes) -> Message:
    """A Roster of these parties with their digest; `changes` are its only faults."""
    digest = pr.roster_digest({p.u: p.keys for p in parties})
    message: Message = [
        2, r.params.to_bytes(), len(parties), digest, ids([p.u for p in parties]),
        b"".join(p.seal_key for p in parties), b"".join(p.mask_key for p in parties),
        b"".join(keys_signature(r, p) for p in parties),
    ]  # fmt: skip
    return but(message, **changes)


def keys_signature(r: Round, p: Party) -> bytes:
    if p.identity is None:
        return b""
    return pr.ed25519_sign(p.identity, pr.signed_keys(r.params.digest(), p.u, *p.keys))


class Lying(Party):
    """A party whose public keys are what somebody says."""

    said: tuple[bytes, bytes]

    @property
    def seal_key(self) -> bytes:
        return self.said[0]

    @property
    def mask_key(self) -> bytes:
        return self.said[1]


def lying(p: Party, seal_key: bytes | None = None, mask_key: bytes | None = None) -> Party:
    out = Lying(p.u, p.vector, p.draws, p.weight, p.identity)
    out.said = (seal_key or p.seal_key, mask_key or p.mask_key)
    return out


def roster_faults(add: Add, rounds: dict[str, Round]) -> None:
    r = rounds["complete-nobody-drops"]
    u = 7
    good = r.answers["advertise_keys"][u]
    p = [r.parties[v] for v in sorted(r.parties)]
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
    for name, liar in (
        ("two with one sealing key", lying(p[2], seal_key=p[1].seal_key)),
        ("two with one masking key", lying(p[2], mask_key=p[1].mask_key)),
        ("another with its sealing key", lying(p[2], seal_key=p[0].seal_key)),
        ("another seals with its masking key", lying(p[2], seal_key=p[0].mask_key)),
        ("another with one key twice", lying(p[2], seal_key=p[2].mask_key)),
    ):
        add(r, name, "duplicate key", u, roster(r, [*p[:2], liar]))
    add(r, "one client is left out", "neighbours", u, roster(r, p[:2], size=3))
    add(r, "only two came", "size", u, roster(r, p[:2]))
    add(r, "alone", "size", u, roster(r, p[:1]))
    for key in (*LOW_ORDER, *NOT_CANONICAL):
        message = roster(r, [*p[:2], lying(p[2], seal_key=key)])
        add(r, "a sealing key that is not usable", "public key", u, message)
        message = roster(r, [*p[:2], lying(p[2], mask_key=key)])
        add(r, "a masking key that is not usable", "public key", u, message)

    r = rounds["graph"]
    u = r.u1[1]
    p = [r.parties[v] for v in r.holders[u]]
    good = r.answers["advertise_keys"][u]
    fewer = roster(r, p[:-1] if p[-1].u != u else p[1:], digest=get(good, "digest"))
    add(r, "a neighbour is left out", "neighbours", u, but(fewer, size=len(r.u1)))
    add(r, "only holders came, one is left out", "neighbours", u, but(fewer, size=len(p)))
    add(r, "size below the neighbours", "cohort", u, but(good, size=len(p) - 1))
    add(r, "it sees all, and another digest", "digest", u, but(good, size=len(p)))


def signed_roster_faults(add: Add, rounds: dict[str, Round]) -> None:
    r = rounds["active-prime"]
    u = 1
    good = r.answers["advertise_keys"][u]
    p = [r.parties[v] for v in sorted(r.parties)]
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
    stranger = Party(9, [], [draw(f"stranger {i}", 32) for i in range(3)], None, draw("s", 32))
    add(r, "a client of no registry", "unknown client", u, roster(r, [*p[:2], stranger]))
    invented = Party(3, [], stranger.draws, None, draw("s", 32))
    add(r, "keys signed by another identity", "signature", u, roster(r, [*p[:2], invented]))
    fresh = Party(3, [], stranger.draws, None, p[2].identity)
    other = rounds["active"].params.digest()
    replayed = pr.ed25519_sign(p[2].identity or b"", pr.signed_keys(other, 3, *fresh.keys))
    add(r, "keys signed for another round", "signature", u,
        roster(r, [*p[:2], fresh], signatures=one + two + replayed))  # fmt: skip
    swapped = lying(p[2], p[2].mask_key, p[2].seal_key)
    add(r, "keys signed the other way round", "signature", u,
        roster(r, [*p[:2], swapped], signatures=signatures))  # fmt: skip
    message = roster(r, [*p[:2], lying(p[2], seal_key=LOW_ORDER[2])])
    add(r, "a sealing key that is not usable, signed", "public key", u, message)
