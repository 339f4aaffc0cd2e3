"""Study in one process, by each way to sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.kit.sources import Source
from secagg.paillier import Packing, generate_keypair
from secagg.simulate import simulate_one_shot, simulate_round, temporary_journals
from secagg.statistics.noise import check_noise
from secagg.statistics.plan import Plan
from secagg.statistics.result import Result
from secagg.statistics.sessions import one_shot_params, round_params
from secagg.statistics.site import Site, SitePolicy
from secagg.statistics.study import Study

Way: TypeAlias = Literal["plain", "secagg", "one-shot", "paillier"]
Digits: TypeAlias = NDArray[np.int64]


@without_frames
def simulate(
    plan: Plan,
    tables: Mapping[str, Source] | Sequence[Source],
    *,
    way: Way = "secagg",
    policy: SitePolicy | None = None,
    earlier: Sequence[Study] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Run a study in one process and return the result.

    Parameters
    ----------
    plan : Plan
    tables : mapping of site to table, or sequence of tables
    way : "plain", "secagg", "one-shot" or "paillier"
        Way to sum; all ways give the same integers. "plain" adds without protection.
    policy : SitePolicy, optional
        Policy of all sites.
    earlier : sequence of Study, optional
        Published studies over the same records; see `Result.of`.
    progress : callable, optional
        Function called as ``progress(step, elements)`` before each step.

    Raises
    ------
    ParameterError
        A table does not fit the plan, the policy rejects the plan, or the way is unknown.
    MissingExtra
        A table, "paillier" or disclosure control needs a package that is not installed.
    """
    if way not in get_args(Way):
        raise ParameterError(f"way is {way!r}; take one of {get_args(Way)}")
    given = tables if isinstance(tables, Mapping) else dict(enumerate(tables))
    sites = dict[object, Site]()
    for name, table in given.items():
        try:
            sites[name] = Site(table, plan, policy=policy)
        except ParameterError as error:
            raise ParameterError(f"site {name}: {error}") from None
    study = Study(plan)
    while not study.ended:
        if progress is not None:
            progress(study.number, study.step.length)
        vectors = [study.vector(site.records) for site in sites.values()]
        study = study.then(_sum(vectors, way, study))
    return Result.of(study, earlier)


def _sum(vectors: Sequence[Digits], way: Way, study: Study) -> Digits:
    """Return the sum of the sites' vectors for the next step."""
    n, step = len(vectors), study.step
    if way == "secagg":
        params = round_params(study, n, b"study", security="semi-honest")
        return simulate_round(vectors, params).integers
    if way != "one-shot":
        check_noise(study.plan.privacy, None)
    if way == "plain":
        return np.asarray(np.sum(vectors, axis=0), np.int64)
    if way == "paillier":
        private = generate_keypair()
        packing = Packing(encoding=step.encoding, length=step.length, summands=n)
        encrypted = [private.public_key.encrypt_vector(vector, packing) for vector in vectors]
        return np.asarray(private.decrypt_vector(sum(encrypted[1:], encrypted[0])).integers)
    with temporary_journals(3) as journals:
        keys = [journal.public for journal in journals]
        asked = one_shot_params(study, n, b"study", keys, security="active", every=False)
        return simulate_one_shot(vectors, asked, journals).integers
