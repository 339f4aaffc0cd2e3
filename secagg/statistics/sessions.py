"""Studies over sessions: rounds or one-shot sums of the same sites, a sum for each step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeAlias

from secagg.errors import ParameterError, TooFewSurvivors
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.protocol import RoundParams
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName
from secagg.server import RoundResult
from secagg.session import HelperLink, Session, bind
from secagg.statistics.noise import check_noise
from secagg.statistics.plan import Plan
from secagg.statistics.study import Study

Summed: TypeAlias = RoundResult | OneShotResult
Ask: TypeAlias = Callable[[Study, Collection[int] | None], Awaitable[Summed]]
"""Function of a study and the sites that takes the sum of the next step. None: all sites."""
Helpers: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Public keys of helpers."""
Reached: TypeAlias = AbstractAsyncContextManager[tuple[Sequence[HelperLink], Sequence[bytes]]]
Reach: TypeAlias = Callable[[OneShotParams], Reached]
"""Function of parameters that gives links to the helpers, and the helpers' endorsements."""


async def collect(
    plan: Plan, ask: Ask, *, progress: Callable[[int, int], None] | None = None
) -> Study:
    """Run all steps of a study, and return the study with all sums.

    In a session with a folder the same call goes on after a kill.

    Parameters
    ----------
    plan : Plan
    ask : callable
        Way to a sum, such as `rounds` or `one_shot`.
    progress : callable, optional
        Function called as ``progress(step, elements)`` before each step.

    Raises
    ------
    TooFewSurvivors
        Too few sites took part in a step, or a site left after the first step.
    Exception
        An error of `Session.round` or `Session.one_shot`.
    """
    study, sites = Study(plan), None
    while not study.ended:
        if progress is not None:
            progress(study.number, study.step.length)
        result = await ask(study, sites)
        missing = sites is not None and set(sites) != set(result.survivors)
        try:
            if missing and plan.privacy is not None:
                raise ParameterError("a site of the step before is missing; run another plan")
            study = study.then(result.integers)
        except ParameterError as error:
            phase, found = f"step {study.number}", len(result.survivors)
            needed = found if sites is None else len(sites)
            raise TooFewSurvivors(
                str(error), phase=phase, survivors=found, needed=needed
            ) from None
        sites = result.survivors
    return study


def rounds(
    session: Session,
    n: int,
    *,
    security: Security = "semi-honest",
    suite: SuiteName | None = None,
) -> Ask:
    """Return the way to sums by the four exchanges.

    Parameters
    ----------
    session : Session
        Session whose members are the sites; each takes part with a `Site` as `train`.
    n : int
        Largest number of sites, ≥ 3.
    security : "semi-honest" or "active"
        See `RoundParams`.
    suite : "hybrid" or "x25519", optional
        See `RoundParams`; None: the default of each step's parameters.
    """

    async def ask(study: Study, sites: Collection[int] | None) -> RoundResult:
        here, name = None if sites is None else len(sites), session.name.encode()
        params = round_params(study, n, name, security=security, suite=suite, sites=here)
        return await session.round(params, study.message(), cohort=sites)

    return ask


def round_params(
    study: Study,
    n: int,
    name: bytes,
    *,
    security: Security,
    suite: SuiteName | None = None,
    sites: int | None = None,
) -> RoundParams:
    """Return the parameters of the next step's sum by the four exchanges.

    Parameters
    ----------
    study : Study
    n : int
        Largest number of sites.
    name : bytes
        Name of the session.
    security : "semi-honest" or "active"
        See `RoundParams`.
    suite : "hybrid" or "x25519", optional
        See `RoundParams`.
    sites : int, optional
        Number of sites in the steps before. None: there was no step.
    """
    step, privacy, most = study.step, study.plan.privacy, n if sites is None else sites
    suggest = partial(RoundParams.suggest, security=security, suite=suite, session=name)
    if privacy is None and sites is None:
        return suggest(most, step.length, step.encoding)
    if privacy is None or privacy.by_helpers:
        # a step without a site is useless: better another attempt than such a sum
        params = suggest(most, step.length, step.encoding, neighbours=None, threshold=sites)
    else:
        all_pairs = partial(
            suggest, length=step.length, encoding=step.encoding, neighbours=None
        )

        def masked(size: int) -> RoundParams:
            """Return exact sums whose masks the noise's colluders cannot rebuild."""
            least = max(all_pairs(size).threshold, privacy.threshold(size, security))
            return all_pairs(size, threshold=min(size, least))

        # the same in all steps, as a session demands
        least = max(privacy.least(n), study.plan.min_sites, masked(n).min_survivors)
        params = all_pairs(
            most,
            noise=privacy.noise,
            min_survivors=min(n, least),
            threshold=masked(most).threshold,
        )
    check_noise(privacy, params)
    return params


def one_shot(
    session: Session,
    n: int,
    name: bytes,
    helpers: Helpers,
    reach: Reach,
    *,
    security: Security = "active",
) -> Ask:
    """Return the way to one-shot sums.

    Parameters
    ----------
    session, n
        See `rounds`.
    name : bytes
        Name of the study's run, new for each run, at most 32 bytes.
    helpers : iterable of pairs of bytes
        Public keys of the helpers; see `OneShotParams`.
    reach : callable
        Function of a step's parameters that gives a context with the links to the helpers, and
        the endorsements of all helpers.
    security : "semi-honest" or "active"
        See `OneShotParams`.
    """
    keys = tuple(helpers)

    async def ask(study: Study, sites: Collection[int] | None) -> OneShotResult:
        every, most = sites is not None, n if sites is None else len(sites)
        params = one_shot_params(study, most, name, keys, security=security, every=every)
        async with reach(params) as (links, endorsements):
            return await session.one_shot(
                params, links, study.message(), endorsements=endorsements, cohort=sites
            )

    return ask


def one_shot_params(
    study: Study, n: int, name: bytes, helpers: Helpers, *, security: Security, every: bool
) -> OneShotParams:
    """Return the parameters of the next step's one-shot sum.

    Parameters
    ----------
    study : Study
    n : int
        Largest number of sites.
    name, helpers, security
        See `one_shot`.
    every : bool
        True: the sum needs all sites.
    """
    suggest = partial(OneShotParams.suggest, helpers=tuple(helpers), security=security)
    step, least = study.step, n if every else None
    privacy = study.plan.privacy
    noise = None if privacy is None else privacy.noise
    run = bind(name + b" %d" % study.number, study.message())
    params = suggest(n, step.length, step.encoding, min_clients=least, noise=noise, session=run)
    check_noise(privacy, params)
    return params
