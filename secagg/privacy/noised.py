"""Settings of noised sums at the doors of other frameworks, which choose the parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from secagg._check import check_integer, check_kind
from secagg.encoding import Bounded
from secagg.errors import ParameterError
from secagg.privacy.budget import Budget
from secagg.privacy.planned import Plan
from secagg.protocol import Noise, RoundParams
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName


@dataclass(frozen=True)
class Noised:
    """Vectors of bounded norm, and their noise.

    Attributes
    ----------
    encoding : Bounded
    noise : Noise or None
        None: the sums are exact but for rounding.
    min_survivors : int or None
        m; None is the default of `secagg.RoundParams`.
    plan : Plan or None
        Plan of the sums. A plan has a budget, and the numbers of clients and elements.
    """

    encoding: Bounded
    noise: Noise | None
    min_survivors: int | None
    plan: Plan | None = None

    @classmethod
    def of(
        cls,
        noise: Plan | Noise | None,
        norm: float | None,
        min_survivors: int | None,
        fractional_bits: int,
    ) -> Noised:
        """Return the settings.

        Parameters
        ----------
        noise : Plan, Noise or None
        norm, min_survivors : optional
            C and m. A plan has both, so they may only repeat the plan's.
        fractional_bits : int
            f: without a plan, elements are rounded to multiples of about 2^−f.

        Raises
        ------
        ParameterError
            A value is out of range, missing or another than the plan's.
        """
        if isinstance(noise, Plan):
            for name, value in (("norm", norm), ("min_survivors", min_survivors)):
                if value is not None and value != getattr(noise, name):
                    raise ParameterError(
                        f"{name} is {value!r}, and the plan has {getattr(noise, name)!r}; "
                        f"leave {name} out"
                    )
            return cls(noise.encoding, noise.noise, noise.min_survivors, noise)
        kinds = (Noise, type(None))
        check_kind("noise", noise, kinds, "a plan of secagg.privacy.plan, or a secagg.Noise")
        if norm is None:
            raise ParameterError(
                "noise needs a bound of a client's vector; pass norm=…, the largest L2 norm, "
                "or a plan of secagg.privacy.plan as noise"
            )
        if min_survivors is not None:
            check_integer("min_survivors", min_survivors, 2, 1 << 20)
        check_integer("fractional_bits", fractional_bits, 0, 52)
        whole = Bounded(norm, 1).norm  # a number in the encoding's range
        steps = max(1, round(whole * 2**fractional_bits))
        return cls(Bounded(whole, steps), noise, min_survivors)

    @property
    def budget(self) -> Budget | None:
        """Budget of all sums together; None without a plan."""
        return None if self.plan is None else self.plan.budget

    def params(
        self,
        clients: int,
        length: int,
        *,
        threshold: int | None,
        neighbours: int | None,
        security: Security,
        suite: SuiteName | None,
        session: bytes,
    ) -> RoundParams:
        """Return the parameters of a sum of so many clients, with so many elements.

        A threshold without neighbours is of the complete graph. Without a threshold
        `RoundParams.suggest` chooses both.

        Raises
        ------
        ParameterError
            The plan is for fewer clients, or another number of elements, or an argument is out
            of range.
        """
        graph: int | Literal["auto"] | None = "auto" if threshold is None else neighbours
        if self.plan is None:
            return RoundParams.suggest(
                clients,
                length,
                self.encoding,
                security=security,
                neighbours=graph,
                threshold=threshold,
                session=session,
                suite=suite,
                noise=self.noise,
                min_survivors=self.min_survivors,
            )
        for name, found, planned in (
            ("clients", clients, range(self.plan.min_survivors, self.plan.n_clients + 1)),
            ("elements", length, (self.plan.length,)),
        ):
            if found not in planned:
                raise ParameterError(
                    f"the sum has {found} {name}, and the plan is for {planned[-1]}; make "
                    f"another: secagg.privacy.plan({clients}, {length}, …)"
                )
        return replace(self.plan, n_clients=clients).params(
            session=session,
            security=security,
            suite=suite,
            neighbours=graph,
            threshold=threshold,
        )


def check_bounded(clip: float | None, max_weight: int | None) -> None:
    """Raise `ParameterError` for settings that sums of vectors of bounded norm lack."""
    for name, value in (("clip", clip), ("max_weight", max_weight)):
        if value is not None:
            raise ParameterError(
                f"{name} is {value!r}, and a noised mean is unweighted, of updates of bounded "
                f"norm; leave {name} out"
            )
