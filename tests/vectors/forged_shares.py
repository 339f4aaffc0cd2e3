"""Verdicts on dealers that name nobody, and bytes that are no verdicts."""

from collections.abc import Iterator

from faults import flip
from signing import Redealt
from verdict_parts import (
    Parts,
    dealt,
    dealt_again,
    held,
    of_contribution,
    of_shares,
    opened_again,
    share,
    share_again,
    verdict,
)
from whole_round import Round

import independent_dealing as dealing
from independent_primitives import split, u8, u32le, u64le


def bytes_(rounds: dict[str, Round]) -> Iterator[tuple]:
    """The head of a verdict, and its lengths."""
    r = rounds["blame-off-polynomial"]
    parts = of_shares(r, 2, [1, 2, 3, 4], 0)
    whole, p = verdict(r, "shares", 2, parts), r.params.encode()
    at = 4 + len(p)

    def head(
        name: str, check: str, kind: int = 1, params: bytes = p,
        roster: bytes = r.roster_digest, client: int = 2, **judge: object,
    ) -> tuple:  # fmt: skip
        start = u8(4) + u8(kind) + len(params).to_bytes(2, "little") + params
        data = start + roster + u64le(client) + whole[at + 40 :]
        return name, r, data, [check], judge

    for version in (0, 3, 5, 255):
        yield f"version {version}", r, u8(version) + whole[1:], ["version"]
    yield "nothing", r, b"", ["length"]
    for size in (1, 2, 3, 4, at - 1, at + 31, at + 39, at + 41, at + 44, len(whole) - 1):
        # a cut P is no P, or the bytes end: what is read first
        yield f"the first {size} bytes", r, whole[:size], ["length", "parameters"]
    yield "a byte more", r, whole + b"\0", ["length"]
    yield "an empty part more", r, whole + u32le(0), ["length"]
    yield "no parts", r, whole[: at + 40], ["length"]
    endless = whole[: at + 40] + u32le(2**32 - 1) + whole[at + 44 :]
    yield "a part of 2^32 - 1 bytes by its length", r, endless, ["length"]
    for kind in (0, 6, 255):
        yield head(f"kind {kind}", "kind", kind=kind)
    semi = r.params.but(security="semi-honest")
    yield head("semi-honest parameters", "parameters", params=semi.encode())
    yield head("no parameters", "parameters", params=b"")
    yield head("a digest for the parameters", "parameters", params=r.params.digest())
    yield head("parameters of version 3", "parameters", params=u8(3) + p[1:])
    yield head("parameters of another round", "signature",
               params=r.params.but(session=b"another").encode())  # fmt: skip
    yield head("parameters of the other suite", "signature",
               params=r.params.but(suite="hybrid").encode())  # fmt: skip
    yield head("parameters of a longer vector", "signature",
               params=r.params.but(length=3).encode())  # fmt: skip
    yield head("another roster", "signature", roster=flip(r.roster_digest))
    yield head("another client", "signature", client=3)
    yield head("a stranger", "unknown client", client=99)
    yield head("the client is not in the registry", "unknown client", left_out=[2])
    yield head("a holder is not in the registry", "unknown client", left_out=[4])
    policy = {"colluders": 3}
    yield "a policy that rejects the parameters", r, whole, [], policy


def shares(rounds: dict[str, Round]) -> Iterator[tuple]:
    r = rounds["blame-off-polynomial"]
    good = of_shares(r, 2, [1, 2, 3, 4], 0)
    first, kind, a, b, c, d = good

    def of(name: str, check: str, *parts: bytes, client: int = 2) -> tuple:
        return name, r, verdict(r, "shares", client, parts), [check]

    yield of("t - 1 shares", "length", first, kind, b, c, d)
    yield of("t + 1 shares", "length", *good, share(r, 2, 5, 0))
    yield of("a share twice", "ids", first, kind, a, b, d, d)
    yield of("holders descend", "ids", first, kind, b, a, c, d)
    yield of("shares of both kinds", "root", first, kind, a, b, c, share(r, 2, 4, 1))
    yield of("the other kind", "root", first, u8(1), a, b, c, d)
    yield of("kind 2", "kind", first, u8(2), a, b, c, d)
    yield of("kind of two bytes", "length", first, u8(0) + u8(0), a, b, c, d)
    yield of(
        "a dealer that did nothing", "innocent", *of_shares(r, 3, [1, 2, 4, 5], 0), client=3
    )
    yield of("its other secret is right", "innocent", *of_shares(r, 2, [1, 2, 3, 4], 1))
    yield of("the shares that are on the polynomial", "innocent",
             *of_shares(r, 2, [1, 2, 3, 5], 0))  # fmt: skip
    other = share(r, 3, 4, 0)
    yield of("a share of another dealer", "root", first, kind, a, b, c, other)
    yield of("what another dealer signed", "signature", dealt(r, 3), kind, a, b, c, d)
    for name, at in (("commitment", 0), ("masking key", 32), ("root", 64), ("signature", 96)):
        yield of(f"one bit of the {name}", "signature", flip(first, at), kind, a, b, c, d)
    yield of("what is signed a byte short", "length", first[:-1], kind, a, b, c, d)
    for name, at in (
        ("X", 8), ("the share", 12), ("the other hash", 52), ("the check", 84),
        ("the box's digest", 116), ("the path", 148), ("the path's end", -1),
    ):  # fmt: skip
        bent = flip(d, at, 1 if at == 8 else 0)
        yield (
            name,
            r,
            verdict(r, "shares", 2, [*good[:-1], bent]),
            (["root", "ids"] if at == 8 else ["root"]),
        )
    yield of("another holder's id", "root", first, kind, a, b, c, u64le(5) + d[8:])
    for x in (0, 9, 2**32 - 1):
        moved = d[:8] + u32le(x) + d[12:]
        yield of(f"the point {x}", "ids", first, kind, a, b, c, moved)
    yield of("a path a node short", "length", first, kind, a, b, c, d[:-32])
    yield of("a path a node long", "length", first, kind, a, b, c, d + bytes(32))
    yield of("a path a byte short", "length", first, kind, a, b, c, d[:-1])
    long = [part + bytes(32) for part in (a, b, c, d)]
    yield of("all paths a node long", "length", first, kind, *long)
    # the shares of an honest dealer at other points are on no polynomial
    honest = of_shares(r, 3, [1, 2, 4, 5], 0)
    moved = [*honest[:3], honest[3][:8] + u32le(3) + honest[3][12:], *honest[4:]]
    yield of("an honest dealer's share at another point", "root", *moved, client=3)
    large = rounds["blame-too-large"]
    parts = of_shares(large, 5, [2, 3, 4, 5], 0)
    box = split(large.content(5, 1), 40)
    opening = large.openings(5)[1]
    rest = opening.check + opening.sealed + dealing.path(large.leaves(5), 0)
    with_p = u64le(1) + u32le(1) + box[1] + opening.hashes[:32] + rest
    seeds = of_shares(large, 5, [2, 3, 4], 1)
    data = verdict(large, "shares", 5, [seeds[0], u8(1), with_p, *seeds[2:]])
    yield "a share with the integer p", large, data, ["share"]
    assert len(parts) == 6
    yield from _other_rounds(rounds)


def _other_rounds(rounds: dict[str, Round]) -> Iterator[tuple]:
    """Shares of a round with a higher threshold under the parameters of another round."""
    r, other = rounds["blame-complaints"], rounds["blame-noise-dropped"]
    v = 2
    parts = of_shares(r, v, [1, 3, 5, 6, 7], 0)
    name = "five shares of an honest dealer of a round with t = 7, of a round with t = 5"
    yield name, other, verdict(other, "shares", v, parts), ["signature"]


def contribution(rounds: dict[str, Round]) -> Iterator[tuple]:
    r = rounds["blame-contribution"]
    good = of_contribution(r, 4, [1, 2, 3], 2)

    def of(name: str, checks: list[str], parts: Parts, r: Round = r, v: int = 4) -> tuple:
        return name, r, verdict(r, "contribution", v, parts), checks

    yield of("a check that fits", ["innocent"], of_contribution(r, 4, [1, 2, 3], 1))
    yield of("its own leaf", ["ids"], of_contribution(r, 4, [1, 2, 3], 4))
    yield of("t - 1 shares", ["length"], [*good[:3], good[-1]])
    yield of("t + 1 shares", ["length"], [*good[:-1], share(r, 4, 4, 1), good[-1]])
    yield of("nothing opened", ["length"], good[:-1])
    yield of("two leaves", ["length"], [*good, good[-1]])
    bent = good[-1][:76] + bytes(32) + good[-1][108:]
    yield of("another check", ["root"], [*good[:-1], bent])
    yield of("shares of b", ["root", "kind"],
             [good[0], *(share(r, 4, u, 0) for u in (1, 2, 3)), good[-1]])  # fmt: skip
    yield of("a holder twice", ["ids"], [*good[:2], good[2], good[2], good[-1]])
    yield of("what another dealt", ["signature"], [dealt(r, 3), *good[1:]])
    path = good[-1][:-1] + bytes([good[-1][-1] ^ 1])
    yield of("one bit of the path", ["root"], [*good[:-1], path])
    # of shares that give another seed: a verdict `shares`
    bent = flip(held(r, 4, 1, 1))
    hash_ = dealing.share_hash(r.session, 1, 4, 1, bent)
    other = Redealt(r, 4, {1: {"hashes": r.openings(4)[1].hashes[:32] + hash_}})
    seeds = [share_again(other, 1, 1, bent)]
    seeds += [share_again(other, u, 1, held(r, 4, u, 1)) for u in (2, 3)]
    again = [dealt_again(other), *seeds, opened_again(other, 2)]
    yield of("shares off the polynomial", ["kind"], again)
    honest = rounds["hybrid-active-masked-input"]  # 2 drops out, honest
    holders = honest.u3
    parts = of_contribution(honest, 2, holders, holders[0])
    yield of("a client that dropped out", ["innocent"], parts, honest, 2)
    parts = of_contribution(honest, 2, holders, 2)
    yield of("the own leaf of a client that dropped out", ["ids"], parts, honest, 2)
    plain = rounds["annex-a-active"]  # 300 drops out, honest
    parts = of_contribution(plain, 300, [1, 2, 3], 1)
    yield of("a client that dropped out in suite x25519", ["kind"], parts, plain, 300)
    parts = of_contribution(rounds["blame-hybrid"], 1, [2, 3, 4, 5, 6], 3)
    yield of("a dealer of noise, whose contribution is right", ["innocent", "share", "root"],
             parts, rounds["blame-hybrid"], 1)  # fmt: skip
