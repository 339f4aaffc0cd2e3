"""Site of a study: a table, a policy, and answers to the steps of an agreed plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg._secrets import without_frames
from secagg.errors import BudgetSpent, ParameterError
from secagg.kit.sources import Source
from secagg.oneshot import OneShotParams
from secagg.privacy import Loss, PrivacyLedger
from secagg.protocol import RoundParams
from secagg.session.wire import read_name
from secagg.statistics.ledger import Ledger, refusal
from secagg.statistics.noise import NoisedStep, Privacy, check_noise
from secagg.statistics.plan import Plan
from secagg.statistics.records import Records
from secagg.statistics.study import Study

Params: TypeAlias = RoundParams | OneShotParams


@dataclass(frozen=True, kw_only=True)
class SitePolicy:
    """Demands of a site on every plan.

    Parameters
    ----------
    min_count, min_sites, records_per_parameter : int
        Least values of the plan's fields of these names, ≥ 1.

    Raises
    ------
    ParameterError
        A number is invalid.
    """

    min_count: int = 5
    min_sites: int = 3
    records_per_parameter: int = 5

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_integer(name, value, 1, 10**6)

    def check(self, plan: Plan) -> None:
        """Raise `ParameterError` if a plan demands less than this policy."""
        for name, least in vars(self).items():
            if getattr(plan, name) < least:
                raise ParameterError(
                    f"the plan has {name} = {getattr(plan, name)}, and this site demands "
                    f"{least}; agree on another plan, or pass SitePolicy({name}=…)"
                )


class Site:
    """Site of a study, the `train` of `secagg.session.take_part`.

    The whole table is read and judged first, before anything is sent: text or an infinite
    number in a column of numbers raises, and so do more records than the plan's `max_records`.
    So the absence of a site can say that the table does not fit. The site answers the steps of
    the agreed plan only, and computes what a step asks for from the sums before. Whether the
    site answers a step depends on plan and message alone, never on the table.

    Parameters
    ----------
    table : DataFrame, table of Arrow, path of a CSV or Parquet file, or mapping
        See `Records.read`.
    plan : Plan
        The plan that this site agreed to.
    policy : SitePolicy, optional
        Demands on the plan.
    ledger : Ledger, optional
        Plans and answers of this table. Without a ledger a restarted site cannot go on.
    spending : PrivacyLedger, optional
        Account of the privacy that all studies over this table spend. The account's unit is
        "record" for plans of this `unit`, and "client" for plans of the unit "site". A study
        without noise is then refused. Against a server that lies the account holds if the sums
        are active.

    Raises
    ------
    ParameterError
        The table does not fit the plan, the policy or the ledger rejects the plan, or
        `spending` has another unit.
    """

    each_attempt: ClassVar[bool] = True
    """A member asks again at each attempt, since another attempt has another noise."""

    @without_frames
    def __init__(
        self,
        table: Source,
        plan: Plan,
        *,
        policy: SitePolicy | None = None,
        ledger: Ledger | None = None,
        spending: PrivacyLedger | None = None,
    ) -> None:
        (policy or SitePolicy()).check(plan)
        if spending is not None and plan.privacy is not None:
            _check_unit(plan.privacy, spending)
        self.plan, self.records = plan, Records.read(table, plan.columns)
        if plan.privacy is not None and self.records.size > plan.privacy.max_records:
            raise ParameterError(
                f"the table exceeds max_records, {plan.privacy.max_records:,}; plan for more"
            )
        self._ledger = Ledger() if ledger is None else ledger
        self._ledger.check(plan)
        self._spending = spending

    def __repr__(self) -> str:
        return f"<Site: {self.plan.name!r}, {self.records.size:,} records>"

    @without_frames
    def __call__(self, message: bytes, params: Params | None = None) -> NDArray[np.int64]:
        """Return the vector for the step that a message asks for.

        Parameters
        ----------
        message : bytes
        params : RoundParams or OneShotParams, optional
            Parameters of the sum. None: the caller adds the vectors without a protocol.

        Raises
        ------
        RemoteProtocolError
            "plan": the message has another plan. "step": the message is of no step, or does not
            follow the steps that this site answered. "noise": the sum lacks the plan's noise.
            "repeated": this site answered the step in another session, or in another attempt
            if the sites add noise and the server may lie. "encoding", "sites": the parameters
            are of another sum, or of a sum over fewer sites than the plan's least. "budget":
            the sum is beyond `spending`.
        """
        try:
            study = Study.of(message)
        except ParameterError as error:
            raise refusal(str(error), "step") from None
        if study.plan.digest != self.plan.digest:
            raise refusal("the server runs another plan than this site agreed to", "plan")
        if study.ended:
            raise refusal("the study has ended, and the server asks for another step", "step")
        sites, run = self.plan.min_sites, b""
        if isinstance(params, OneShotParams):
            sites, run = params.min_clients, params.digest
        elif params is not None:
            name = read_name(params.session)
            sites, run = params.min_survivors, name.run if name else b""
            if params.noise is not None and params.active:
                # two answers have two noises, and a server can use a name again
                run = os.urandom(16)
        if params is not None and params.encoding != study.step.encoding:
            raise refusal("the sum has another encoding than the step", "encoding")
        fits = params is None or (params.length, params.max_weight) == (study.step.length, None)
        if not fits or sites < self.plan.min_sites:
            raise refusal("the sum is not over this step, or over too few sites", "sites")
        try:
            check_noise(self.plan.privacy, params)
        except ParameterError as error:
            raise refusal(f"the sum lacks the noise of the plan: {error}", "noise") from None
        with _within_budget():
            if self._spending is not None:  # a step that is refused here is not answered
                self._spending.check(_loss(study, params))
            self._ledger.answer(study, run)
            if self._spending is not None:
                self._spending.spend(_loss(study, params))
        return study.vector(self.records)


def _check_unit(privacy: Privacy, spending: PrivacyLedger) -> None:
    """Raise `ParameterError` unless a ledger adds up the losses of a plan's unit."""
    if spending.unit != privacy.ledger_unit:
        raise ParameterError(
            f"the privacy ledger adds up the losses of each {spending.unit}, and the plan has "
            f"noise for each {privacy.unit}; pass another PrivacyLedger, with "
            f"unit={privacy.ledger_unit!r}"
        )


def _loss(study: Study, params: Params | None) -> Loss:
    """Return what a step's sum spends of a unit's privacy."""
    step = study.step
    if isinstance(step, NoisedStep) and params is not None:
        return step.loss(params)
    return Loss.unbounded()


@contextmanager
def _within_budget() -> Iterator[None]:
    """Turn `BudgetSpent` into a refusal, which follows from plan and parameters alone."""
    try:
        yield
    except BudgetSpent as error:
        raise refusal(str(error), "budget") from None
