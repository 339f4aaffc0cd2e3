"""Result of a finished round: the sum, and the clients that have their vectors in the sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secagg.encoding import Lanes
from secagg.errors import Dispute, ParameterError, RemoteProtocolError, Verdict
from secagg.protocol import Phase
from secagg.protocol.shape import Shape


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RoundResult:
    """Sum of the survivors' vectors.

    Attributes
    ----------
    sum : array, shape (d,)
        int64 for Integers, else float64; weighted if the round is weighted. With the clients'
        noise if the round has `noise`.
    integers : int64 array, shape (d,)
        The exact sum of the encoded vectors, noise included; with `Bounded` the sum of the
        rotated vectors, shape (D,).
    survivors : tuple of ids, ascending
        U3: exactly these clients' vectors are in the sum.
    weight : int or None
        The sum of the survivors' weights, if the round is weighted.
    clipped : int or None
        The number of clipped elements in the survivors' vectors, if the round has
        `count_clipped`. With noise in a noised round.
    clipped_vectors : float or None
        The number of the survivors' vectors that were longer than the norm of `Bounded`, with
        the noise of the sum, if the round has `count_clipped`.
    disputes : tuple of Dispute, ascending
        The wrong shares, each with its dealer and its holder. A secret's wrong shares are found
        if they number at most half of the secret's shares beyond the threshold. The sum is
        right in any case. In the active variant: the complaints that convict nobody.
    verdicts : tuple of Verdict
        In the active variant: proofs against clients. The sum is right in any case.
    """

    sum: NDArray[np.float64] | NDArray[np.int64]
    integers: NDArray[np.int64]
    survivors: tuple[int, ...]
    weight: int | None = None
    clipped: int | None = None
    clipped_vectors: float | None = None
    disputes: tuple[Dispute, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    def __repr__(self) -> str:
        weight = "" if self.weight is None else f", weight {self.weight:,}"
        disputes = f", {len(self.disputes):,} disputes" if self.disputes else ""
        verdicts = f", {len(self.verdicts):,} verdicts" if self.verdicts else ""
        counts = f"{len(self.survivors):,} survivors, {self.sum.size:,} elements"
        return f"<{type(self).__name__}: {counts}{weight}{disputes}{verdicts}>"

    @property
    def mean(self) -> NDArray[np.float64]:
        """The sum divided by the total weight or the number of survivors.

        Raises
        ------
        ParameterError
            The weights add up to 0, or with noise to less than 0.
        """
        total = len(self.survivors) if self.weight is None else self.weight
        if total <= 0:
            raise ParameterError(
                f"the survivors' weights add up to {total}: there is no mean; use the sum, or "
                "look into the clients' logs, since failed trainings have the weight 0"
            )
        return np.asarray(self.sum / total, dtype=np.float64)


def decode_sum(
    total: Lanes,
    survivors: tuple[int, ...],
    disputes: tuple[Dispute, ...],
    params: Shape,
    *,
    verdicts: tuple[Verdict, ...] = (),
) -> RoundResult:
    """Return an unmasked total in the caller's units.

    Parameters
    ----------
    total : uint32 or uint64 array in [0, R)
    survivors : tuple of ids
    disputes : tuple of Dispute
    params : RoundParams or OneShotParams
    verdicts : tuple of Verdict

    Raises
    ------
    RemoteProtocolError
        "sum", "weight" or "clipped": the survivors' vectors cannot add up to the total.
    """
    if params.rotated is not None:
        # any element may wrap, so that there are no bounds
        floats, integers = params.rotated.decode(total, params.ring)
        return RoundResult(
            sum=floats[: params.length],
            integers=integers,
            survivors=survivors,
            clipped_vectors=float(floats[-1]) if params.count_clipped else None,
            disputes=disputes,
            verdicts=verdicts,
        )
    noise = params.noise_bound
    heaviest = len(survivors) * (params.max_weight or 1)
    most = heaviest * params.encoding.max_encoded + noise
    # noise can push a sum of unsigned elements below 0
    least = -most if params.encoding.signed else -noise
    values = total[: params.length]
    if noise and not params.encoding.signed:
        decoded, integers = _decode_signed(values, most, params)
    else:
        decoded, integers = params.encoding.decode(values, params.ring)
    more = iter(total[params.length :].tolist())
    weight = None if params.max_weight is None else next(more)
    # a sum of weights that noise made negative is near R
    if noise and weight is not None and weight > heaviest + noise:
        weight -= params.ring.modulus
    clipped = next(more) if params.count_clipped else None
    elements = len(survivors) * params.length
    if noise and clipped is not None and clipped > elements + noise:
        clipped -= params.ring.modulus
    first = int(((integers < least) | (integers > most)).argmax())  # 0 if no element is outside
    _check_within(
        "clipped", "the number of clipped elements", clipped, -noise, elements + noise
    )
    _check_within("weight", "the sum of the weights", weight, -noise, heaviest + noise)
    _check_within("sum", f"element {first} of the sum", int(integers[first]), least, most)
    return RoundResult(
        sum=decoded,
        integers=integers,
        survivors=survivors,
        weight=weight,
        clipped=clipped,
        disputes=disputes,
        verdicts=verdicts,
    )


def _decode_signed(
    total: Lanes, most: int, params: Shape
) -> tuple[NDArray[np.float64] | NDArray[np.int64], NDArray[np.int64]]:
    """Return `Encoding.decode` of a total; noise made the elements above `most` negative."""
    negative = total > most
    opposite = params.ring.zeros(total.size)
    params.ring.subtract_from(opposite, total)
    params.ring.reduce(opposite)
    decoded, integers = params.encoding.decode(np.where(negative, opposite, total), params.ring)
    sign = np.where(negative, -1, 1)
    return decoded * sign, integers * sign


def _check_within(check: str, what: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise RemoteProtocolError(
            f"{what} is {value}, outside [{low}, {high}]: a client's vector was wrong or "
            "was damaged; begin a new round",
            sender=None,
            phase=Phase.UNMASKING,
            check=check,
        )
