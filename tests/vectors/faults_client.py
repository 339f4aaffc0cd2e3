"""Faults that a client rejects (docs/protocol.md §8.2-§8.5): one in each message."""

from faults_roster import Add, roster_faults, signed_roster_faults
from faults_server import flip
from kinds import but, get, tag_of
from parties import Round

from independent_keys import SHAMIR_PRIME, seal, signed_survivors
from independent_messages import KINDS, encode
from independent_primitives import ids, u64le


def client_faults(rounds: dict[str, Round]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []

    def add(
        r: Round,
        name: str,
        check: str,
        u: int,
        message: bytes,
        before: list[bytes] | None = None,
    ) -> None:
        """`before`: what the client is sent earlier instead of the round's own messages."""
        kind, phase, _ = KINDS[tag_of(message)]
        out.append({
            "side": "client", "round": r.name, "phase": phase, "client": u,
            "before": before,
            "kind": kind, "name": f"{kind}: {name}", "bytes": message,
            "error": "RemoteProtocolError", "check": check,
        })  # fmt: skip

    roster_faults(add, rounds)
    signed_roster_faults(add, rounds)
    _shares(add, rounds)
    _consistency(add, rounds)
    _unmask(add, rounds["annex-a-semi-honest"], rounds["active"].session)
    _unmask_active(add, rounds["annex-a-active"], rounds["active-prime"].session)
    return out


def _shares(add: Add, rounds: dict[str, Round]) -> None:
    r = rounds["complete-nobody-drops"]
    u = 7
    good = r.answers["share_keys"][u]
    sealed = get(good, "sealed")
    one, two = sealed[:96], sealed[96:]

    def with_(name: str, check: str, **changes: bytes) -> None:
        add(r, name, check, u, but(good, **changes))

    with_("another session", "session", session=rounds["active"].session)
    with_("one bit of the session", "session", session=flip(good, "session"))
    with_("ids descend", "ids", senders=ids([9, 8]))
    with_("an id twice", "ids", senders=ids([8, 8]))
    with_("ids not whole", "ids", senders=ids([8, 9])[:-4])
    with_("its own among them", "reflection", senders=ids([7, 8, 9]), sealed=one + sealed)
    with_("its own in place of another", "reflection", senders=ids([7, 9]))
    with_("a stranger", "unknown id", senders=ids([8, 10]))
    with_("only one", "size", senders=ids([8]), sealed=one)
    with_("nobody", "size", senders=b"", sealed=b"")
    with_("sealed shares a byte short", "length", sealed=sealed[:-1])
    with_("sealed shares of one missing", "length", sealed=one)
    with_("sealed shares of one too many", "length", sealed=sealed + two)
    for at in (0, 79, 80, 95):
        bent = sealed[:at] + bytes([sealed[at] ^ 0x80]) + sealed[at + 1 :]
        with_(f"bit of byte {at} of the sealed share", "sealed share", sealed=bent)
    with_("two sealed shares swapped", "sealed share", sealed=two + one)
    with_("what it sealed itself handed back", "sealed share", sealed=r.sealed(7, 8) + two)
    with_("sealed for another", "sealed share", sealed=r.sealed(8, 9) + two)
    share, key = r.share(8, 7), r.seal_key(8, 7)
    for name, session, sender, receiver, with_key in (
        ("another session in the AD", rounds["active"].session, 8, 7, key),
        ("another sender in the AD", r.session, 9, 7, key),
        ("another receiver in the AD", r.session, 8, 9, key),
        ("the key of the other direction", r.session, 8, 7, r.seal_key(7, 8)),
    ):
        with_(
            name,
            "sealed share",
            sealed=seal(with_key, share, session, sender, receiver) + two,
        )
    for number in (SHAMIR_PRIME, 2**64 - 1):
        for c in (0, 4, 5, 9):
            bent = share[: 8 * c] + u64le(number) + share[8 * c + 8 :]
            bent_sealed = seal(key, bent, r.session, 8, 7)
            with_(f"{number} as number {c} of a share", "share", sealed=bent_sealed + two)


def _consistency(add: Add, rounds: dict[str, Round]) -> None:
    r = rounds["annex-a-active"]
    good = r.answers["masked_input"][1]

    def with_(name: str, check: str, **changes: bytes) -> None:
        add(r, name, check, 1, but(good, **changes))

    with_("another session", "session", session=rounds["active"].session)
    with_("one bit of the session", "session", session=flip(good, "session"))
    with_("ids descend", "ids", survivors=ids([1, 3, 2]))
    with_("an id twice", "ids", survivors=ids([1, 2, 2]))
    with_("ids not whole", "ids", survivors=ids([1, 2, 3])[:-1])
    with_("a stranger", "unknown id", survivors=ids([1, 2, 4]))
    with_("not itself", "self", survivors=ids([2, 3, 300]))
    with_("too few", "size", survivors=ids([1, 2]))
    with_("it alone", "size", survivors=ids([1]))


def _unmask(add: Add, r: Round, other: bytes) -> None:
    """Client 1 of Annex A: survivors 1, 2, 3; dropped 300."""
    good = r.answers["masked_input"][1]

    def with_(name: str, check: str, **changes: bytes) -> None:
        add(r, name, check, 1, but(good, **changes))

    with_("another session", "session", session=other)
    with_("survivors descend", "ids", survivors=ids([1, 3, 2]))
    with_("a survivor twice", "ids", survivors=ids([1, 2, 3, 3]))
    with_("survivors not whole", "ids", survivors=ids([1, 2, 3])[:-1])
    with_("dropped not whole", "ids", dropped=ids([300])[:-1])
    with_("a dropped one twice", "ids", dropped=ids([300, 300]))
    with_("an id in both", "both shares", dropped=ids([3, 300]))
    with_("itself in both", "both shares", dropped=ids([1, 300]))
    with_(
        "all in both", "both shares", survivors=ids([1, 2, 3, 300]), dropped=ids([1, 2, 3, 300])
    )
    with_("a stranger survives", "unknown id", survivors=ids([1, 2, 3, 4]))
    with_("a stranger dropped", "unknown id", dropped=ids([4, 300]))
    with_("not itself", "self", survivors=ids([2, 3]), dropped=ids([1, 300]))
    with_("it is named nowhere", "self", survivors=ids([2, 3]))
    with_("a client of U2 is named nowhere", "missing id", dropped=b"")
    with_("a survivor is named nowhere", "missing id", survivors=ids([1, 2]))
    with_("too few survivors", "size", survivors=ids([1, 2]), dropped=ids([3, 300]))
    with_("signers where nobody signs", "length", signers=ids([1]))
    with_("signatures where nobody signs", "length", signatures=b"\0")


def _unmask_active(add: Add, r: Round, other: bytes) -> None:
    good = r.answers["consistency_check"][1]
    before = [r.answers[phase][1] for phase in ("advertise_keys", "share_keys")]
    survivors, signatures = get(good, "survivors"), get(good, "signatures")
    one, two, three = signatures[:64], signatures[64:128], signatures[128:]

    def with_(name: str, check: str, **changes: bytes) -> None:
        add(r, name, check, 1, but(good, **changes))

    with_("other survivors than it signed", "consistency",
          survivors=ids([1, 2, 3, 300]), dropped=b"")  # fmt: skip
    add(r, "fewer survivors than it signed", "consistency", 1, good,
        [*before, encode(8, r.session, ids([1, 2, 3, 300]))])  # fmt: skip
    with_("signers descend", "ids", signers=ids([1, 3, 2]))
    with_("signers not whole", "ids", signers=ids([1, 2, 3])[:-1])
    with_("one signs twice", "ids", signers=ids([1, 1, 2]))
    with_("a dropped client signs", "unknown id", signers=ids([1, 2, 300]))
    with_("a stranger signs", "unknown id", signers=ids([1, 2, 4]))
    with_("signatures a byte short", "length", signatures=signatures[:-1])
    with_("a signature missing", "length", signatures=signatures[:128])
    with_("no signatures", "length", signatures=b"")
    with_("fewer signers than t", "size", signers=ids([1, 2]), signatures=one + two)
    with_("nobody signs", "size", signers=b"", signatures=b"")
    with_(
        "one bit of a signature",
        "signature",
        signatures=signatures[:-1] + bytes([three[63] ^ 1]),
    )
    with_(
        "its own signature bent", "signature", signatures=bytes([one[0] ^ 1]) + signatures[1:]
    )
    with_("two signatures swapped", "signature", signatures=one + three + two)

    def signed(name: str, u: int, session: bytes, about: int, what: bytes) -> None:
        forged = r.signature(u, signed_survivors(session, about, what))
        with_(f"signed {name}", "signature", signatures=one + two + forged)

    signed("by another client", 2, r.session, 3, survivors)
    signed("for another client", 3, r.session, 2, survivors)
    signed("in another session", 3, other, 3, survivors)
    signed("other survivors", 3, r.session, 3, ids([1, 2, 3, 300]))
    signed("survivors big-endian", 3, r.session, 3, survivors[::-1])
