"""Bounds of a client's input: the encoding, weight, metrics and noise that a client accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Self

from secagg._check import check_integer, check_kind, is_real
from secagg._printable import in_short
from secagg.encoding import Encoding
from secagg.errors import ParameterError
from secagg.protocol.noise import Noise
from secagg.protocol.shape import Shape, check_encoding

MAX_METRICS = 1024
"""Largest number of metrics in the bounds of a client: a server could name metrics for ever."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of a client's input. A client takes no part in a sum with other bounds.

    The bounds are fixed, because a server that varies the bounds learns where an input is
    clipped: the sums with two bounds differ by the numbers beyond the lower bound.

    Parameters
    ----------
    encoding : FixedPoint or Integers
        Encoding of the vectors, with its clip and fractional bits.
    max_weight : int, optional
        The largest weight, 1 to 2^53. None: the sums are unweighted.
    metrics : mapping of str to float
        Largest absolute value of each metric that may be in a vector, > 0. Metrics are numbers
        that a door of this package, such as `secagg.flower`, appends to the vector.
    weight : str, optional
        Name of the weight among the metrics of a node of Flower. None: ``num-examples``.
    noise : Noise, optional
        Noise of the sums: less noise would say more of an input. None: any noise, or none.
    min_survivors : int, optional
        Smallest number of inputs of a sum, on which each client's share of the noise depends.
        None: any number.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    encoding: Encoding
    max_weight: int | None = None
    _: KW_ONLY
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    weight: str | None = None
    noise: Noise | None = None
    min_survivors: int | None = None

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.noise is not None:
            check_kind("noise", self.noise, Noise, "a secagg.Noise")
        if self.min_survivors is not None:
            check_integer("min_survivors", self.min_survivors, 2, 1 << 20)
            object.__setattr__(self, "min_survivors", int(self.min_survivors))
        if self.max_weight is not None:
            check_integer("max_weight", self.max_weight, 1, 1 << 53)
            object.__setattr__(self, "max_weight", int(self.max_weight))
        check_integer("the number of metrics", len(self.metrics), 0, MAX_METRICS)
        for name, bound in self.metrics.items():
            if not is_real(bound) or not 0 < bound < inf:
                raise ParameterError(
                    f"metrics has the bound {in_short(bound)} for {name!r}; pass its largest "
                    "size"
                )
        # a copy, since the caller's mapping may change later
        object.__setattr__(self, "metrics", dict(self.metrics))

    @classmethod
    def of(
        cls,
        params: Shape,
        metrics: Mapping[str, float] | None = None,
        weight: str | None = None,
    ) -> Self:
        """Return the bounds of the parameters of a sum, and of the metrics in the vectors."""
        return cls(
            params.encoding,
            params.max_weight,
            metrics=metrics or {},
            weight=weight,
            noise=params.noise,
            min_survivors=params.noised_survivors,
        )

    def objection(self, wanted: Bounds) -> str | None:
        """Return the difference to the bounds of a sum, or None if the bounds agree.

        A sum may have a part of the metrics. Weights are compared only if both have a name, and
        noise only if this client's is known.
        """
        if wanted.encoding.canonical() != self.encoding.canonical():
            return f"the encoding is {wanted.encoding}, and this client's is {self.encoding}"
        if wanted.max_weight != self.max_weight:
            return f"max_weight is {wanted.max_weight}, and this client's is {self.max_weight}"
        if self.noise is not None and wanted.noise != self.noise:
            return f"the noise is {wanted.noise}, and this client's is {self.noise}"
        if self.min_survivors is not None and wanted.min_survivors != self.min_survivors:
            return (
                f"min_survivors is {wanted.min_survivors}, and this client's is "
                f"{self.min_survivors}"
            )
        # as a weight, a metric that is 0 in all clients but one would single out that client
        if None not in (self.weight, wanted.weight) and wanted.weight != self.weight:
            return f"the weight is {wanted.weight!r}, and this client's is {self.weight!r}"
        for name, bound in wanted.metrics.items():
            own = self.metrics.get(name)
            if own != bound:
                return (
                    f"the bound of the metric {name!r} is {bound}, and this client's is {own}"
                )
        return None

    def check(
        self,
        params: Shape,
        metrics: Mapping[str, float] | None = None,
        weight: str | None = None,
    ) -> None:
        """Raise `ParameterError` unless a sum has these bounds."""
        why = self.objection(Bounds.of(params, metrics, weight))
        if why is not None:
            raise ParameterError(
                f"{why}; take this client's bounds at the server, or state others in the "
                "client's policy: bounds=secagg.Bounds(encoding, max_weight)"
            )
