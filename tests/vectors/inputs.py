"""Parties of a round from its name: their inputs, their entropy, their dropouts."""

import math
from collections.abc import Callable, Mapping, Sequence

from draws import draw
from liars import WrongShare
from parties import Party
from whole_round import Round

from independent_params import Parameters
from independent_streams import prg
from independent_sums import Bounded, Integers

WIDE = [0, 1, 127, 128, 255, 256, 300, 65536, 2**32, 2**53 + 1, 2**63, 2**64 - 1]
ACTIVE = {"security": "active", "session": b"the name of the round takes its place"}


def party(
    name: str, params: Parameters, u: int, drop: str | None = None, *, hedged: bool = True
) -> Party:
    """A client whose entropy and input follow from the names.

    One that is not `hedged` draws its seeds and coefficients as they are.
    """
    at = f"{name} {u} "
    vector: list[float] | list[int]
    words = prg(draw(at + "vector", 16), params.d, 2**64)
    if isinstance(params.encoding, Integers):
        vector = [word % (params.encoding.max + 1) for word in words]
    elif isinstance(params.encoding, Bounded):
        # norms of a third of C to twice C
        norm = params.encoding.norm * (1 / 3 + words[-1] / 2**64 * 5 / 3)
        vector = [(word / 2**63 - 1) * norm * math.sqrt(3 / params.d) for word in words]
    else:
        # A tenth beyond the clip, so that clipping happens.
        vector = [(word / 2**63 - 1) * params.encoding.clip * 1.1 for word in words]
    weight = None if params.max_weight is None else words[0] % (params.max_weight + 1)
    draws = [draw(at + what, 32) for what in ("seal", "mask")]
    if params.hybrid:
        draws.append(draw(at + "kem", 32 if hedged else 64))
    draws.append(draw(at + "b", 32))
    size = 32 if hedged else 80 * (params.t - 1)
    draws.append(draw(at + ("shares" if hedged else "coefficients"), size))
    if isinstance(params.encoding, Bounded):
        draws.append(draw(at + "rounding", 16))
    if params.noise:
        draws.append(draw(at + "noise", 32))
    identity = draw(at + "identity", 32) if params.active else None
    return Party(u, vector, draws, weight, identity, drop, hedged=hedged)


def make(
    name: str,
    params: Parameters,
    among: list[int],
    drops: dict[int, str],
    seed: bytes | None = None,
    *,
    session: bytes = b"",
    first: Round | None = None,
    wrong: Sequence[int] = (),
    liars: Mapping[int, tuple[str, Callable]] | None = None,
) -> Round:
    """A round; clients of `first`, earlier in the session, keep their sealing seeds.

    Those of `wrong` lie when they reveal shares. `liars` has where others lie, and how.
    """
    params = params.but(session=session or name.encode())
    parties = [party(name, params, u, drops.get(u)) for u in among]
    for p in parties:
        if p.u in wrong:
            p.lies_at, p.kind = "unmasking", WrongShare
        if p.u in (liars or {}):
            p.lies_at, p.kind = liars[p.u]
        if first is not None and p.u in first.u1:
            p.sealing, p.entropy = first.clients[p.u]._sealing, p.entropy[1:]
    return Round(name, params, parties, seed)
