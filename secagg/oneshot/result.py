"""Result for one-shot sums: the helpers' votes on the masks, and the sum without masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secagg.encoding import Lanes
from secagg.errors import ParameterError
from secagg.oneshot import messages, replies
from secagg.oneshot.messages import Kind, violation
from secagg.oneshot.params import OneShotParams
from secagg.server.result import RoundResult, decode_sum

Masks = dict[int, dict[int, bytes]]
"""The packed masks M_S of each helper, by the helper's number and the index of S."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OneShotResult(RoundResult):
    """Sum of the vectors of a batch.

    With ``params.noise`` every element of the sum, and the weight, has the noise of all
    C(ℓ, t − 1) seeds. The weight can then be negative.

    Attributes
    ----------
    outvoted : tuple of int, ascending
        Numbers of the helpers with another mask than the mask that t helpers agree on.
    """

    outvoted: tuple[int, ...] = ()


def add_answer(masks: Masks, data: bytes, params: OneShotParams, digest: bytes) -> None:
    """Add the masks of an answer to other helpers' masks; `digest` is D of the list.

    Raises
    ------
    RemoteProtocolError
        The answer is malformed, of another list, or differs from the same helper's answer
        before.
    """
    j, content = replies.read(data, Kind.ANSWER, params, digest, "open")
    size = params.layout.packed
    held = params.held_by(j)
    answer = {
        i: bytes(content[size * place : size * (place + 1)]) for place, i in enumerate(held)
    }
    # a helper must not vote twice, and neither of two answers is the right one to keep
    if masks.setdefault(j, answer) != answer:
        raise violation("open", "holders", f"helper {j} gave two answers", helpers=[j])


def unmask(
    total: Lanes, masks: Mapping[int, Mapping[int, bytes]], params: OneShotParams
) -> tuple[Lanes, tuple[int, ...]]:
    """Return the total minus all masks modulo R, and the numbers of outvoted helpers.

    Raises
    ------
    ParameterError
        The answers are of fewer than t helpers.
    RemoteProtocolError
        "holders" or "range": helpers contradict each other, or a mask is not in [0, R).
    """
    if len(masks) < params.threshold:
        raise ParameterError(
            f"answers of {len(masks)} helpers, and the sum takes {params.threshold}; pass the "
            "answers of more"
        )
    ring, opened = params.ring, total.copy()
    ring.reduce(opened)
    outvoted: set[int] = set()
    for i in range(1, params.seeds + 1):
        votes: dict[bytes, list[int]] = {}
        for j, answer in masks.items():
            if i in answer:
                votes.setdefault(answer[i], []).append(j)
        chosen = _elect(votes, params.threshold)
        outvoted.update(j for mask, js in votes.items() if mask != chosen for j in js)
        values = messages.unpack(memoryview(chosen), params)
        if values is None:
            why = "an element of a mask is not below R"
            raise violation("open", "range", why, helpers=votes[chosen])
        ring.subtract_from(opened, values)
    ring.reduce(opened)
    return opened, tuple(sorted(outvoted))


def decode(
    total: Lanes, ids: tuple[int, ...], outvoted: tuple[int, ...], params: OneShotParams
) -> OneShotResult:
    """Return an unmasked total in the caller's units; see `secagg.server.result.decode_sum`."""
    return OneShotResult(**vars(decode_sum(total, ids, (), params)), outvoted=outvoted)


def _elect(votes: dict[bytes, list[int]], threshold: int) -> bytes:
    """Return the mask on which all holders agree, or else the only mask with t votes."""
    # one of t helpers is honest, so two masks with t votes each cannot be
    most = [mask for mask, js in votes.items() if len(js) >= threshold]
    if len(votes) == 1 or len(most) == 1:
        return most[0] if most else next(iter(votes))
    holders = sorted(j for js in votes.values() for j in js)
    raise violation(
        "open",
        "holders",
        f"helpers {', '.join(map(str, holders))} contradict each other on a mask, and no mask "
        f"has {threshold} of them; pass the answers of more helpers, or leave out the liar's",
        helpers=holders,
    )
