"""Demands of a site's operator, which no job can weaken."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from nvflare.apis.fl_component import FLComponent

from secagg._check import check_flag, check_integer, check_kind
from secagg.encoding import FixedPoint
from secagg.errors import ParameterError
from secagg.flare import names
from secagg.flare.configuration import fix_job
from secagg.graph.graph import CORRUPT
from secagg.oneshot import OneShotPolicy
from secagg.privacy import Budget
from secagg.protocol import Bounds, ClientPolicy


class SitePolicy(FLComponent):
    """Demands of a site, which the operator enters in ``local/privacy.json``, "components".

    FLARE rejects a job that brings a component of the same id, `secagg_policy`. Without a
    policy of the operator, the job's own policy or the default is in force.

    Parameters
    ----------
    min_clients, min_threshold : int
        See `secagg.ClientPolicy`, and for one-shot sums `secagg.oneshot.OneShotPolicy`.
    require_active : bool
        Reject all sums with another `security` than "active".
    corrupt : float
        See `secagg.ClientPolicy` and `secagg.oneshot.OneShotPolicy`.
    sites : collection of str, optional
        Names of all sites that may be in a sum of four exchanges. All of these sums must then
        be active, since only there a site verifies names. None: all sites with a certificate
        of the project.
    helpers : collection of str, optional
        Ed25519 keys, in hex, of the helpers that this site trusts not to collude. None: the
        site reports to no helpers.
    identity : str, optional
        File with this site's Ed25519 key in PEM, for one-shot sums with ``security="active"``.
        ``secagg identity keygen`` makes the file. A site with a key takes part in active sums
        only.
    kit : str, optional
        Folder of the site's certificate, by default "startup" of the site's kit.
    clip : float, optional
        The clip that all sums must have, > 0. In any case the first sum fixes clip, fractional
        bits and largest weight for all later sums and jobs, in a file of this site's workspace.
    fractional_bits : int
        Fractional bits that all sums must have, if there is a clip.
    max_weight : int, optional
        Largest weight that all sums must have, if there is a clip. None: sums are unweighted.
    epsilon, delta : float, optional
        Budget of this site's data in all sums of all jobs. The site takes no part in a sum
        without noise, or beyond the budget, which holds against the parties that
        `secagg.privacy.against` names for each sum. What is spent is in a file of this site's
        workspace. Needs ``pip install "secagg[privacy]"``.
    require_hybrid : bool
        Reject all sums of suite "x25519", which a later quantum computer opens.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    def __init__(
        self,
        min_clients: int = 3,
        min_threshold: int = 2,
        require_active: bool = False,
        corrupt: float = CORRUPT,
        sites: Collection[str] | None = None,
        helpers: Collection[str] | None = None,
        identity: str | None = None,
        kit: str | None = None,
        clip: float | None = None,
        fractional_bits: int = 16,
        max_weight: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        require_hybrid: bool = False,
    ) -> None:
        super().__init__()
        check_flag("require_active", require_active)
        check_flag("require_hybrid", require_hybrid)
        check_integer("fractional_bits", fractional_bits, 0, 52)
        # FLARE's job API reads arguments from attributes of the same names
        self.min_clients, self.min_threshold = min_clients, min_threshold
        self.require_active, self.corrupt = require_active, corrupt
        self.require_hybrid = require_hybrid
        self.sites = None if sites is None else list(sites)
        self.helpers = None if helpers is None else list(helpers)
        self.identity, self.kit = identity, kit
        self.clip, self.fractional_bits, self.max_weight = clip, fractional_bits, max_weight
        self.epsilon, self.delta = epsilon, delta
        if (epsilon is None) != (delta is None):
            raise ParameterError(
                f"epsilon is {epsilon} and delta {delta}; a budget has both, such as 2 and 1e-6"
            )
        if clip is None and max_weight is not None:
            raise ParameterError(
                f"max_weight is {max_weight} and clip is missing; state both, or leave both out"
            )
        _ = self.rounds, self.one_shot, self.budget  # validates the values

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Fix the job at the start; see ``FLComponent.handle_event`` of FLARE."""
        fix_job(event_type, fl_ctx)

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of this site's input, if the operator states them."""
        if self.clip is None:
            return None
        encoding = FixedPoint(clip=self.clip, fractional_bits=self.fractional_bits)
        return Bounds(encoding=encoding, max_weight=self.max_weight)

    @property
    def budget(self) -> Budget | None:
        """Budget of this site's data, if the operator states a budget."""
        if self.epsilon is None or self.delta is None:
            return None
        return Budget(self.epsilon, self.delta)

    @property
    def rounds(self) -> ClientPolicy:
        """The demands on rounds of four exchanges."""
        return ClientPolicy(
            min_clients=self.min_clients,
            min_threshold=self.min_threshold,
            # semi-honest rounds have no certificates, so no names to compare with `sites`
            require_active=self._active or self.sites is not None,
            require_hybrid=self.require_hybrid,
            corrupt=self.corrupt,
            bounds=self.bounds,
        )

    @property
    def _active(self) -> bool:
        """True if all sums must be active: a site with a key is in no other sums."""
        return self.require_active or self.identity is not None

    @property
    def one_shot(self) -> OneShotPolicy | None:
        """The demands on one-shot sums; None if no helpers are trusted."""
        if self.helpers is None:
            return None
        try:
            keys = frozenset(bytes.fromhex(key) for key in self.helpers)
        except ValueError:
            raise ParameterError(
                "helpers has an entry that is not hex; pass the Ed25519 key of each helper as "
                "64 hex digits"
            ) from None
        return OneShotPolicy(
            min_threshold=self.min_threshold,
            min_clients=self.min_clients,
            require_active=self._active,
            require_hybrid=self.require_hybrid,
            corrupt=self.corrupt,
            helpers=keys,
            bounds=self.bounds,
        )


def policy_of(fl_ctx: Any) -> SitePolicy:
    """Return the policy of this site, or the default policy.

    Raises
    ------
    ParameterError
        The component of the policy's id is of another class.
    """
    policy = fl_ctx.get_engine().get_component(names.POLICY) or SitePolicy()
    check_kind("component secagg_policy", policy, SitePolicy, "a secagg.flare.SitePolicy")
    return policy
