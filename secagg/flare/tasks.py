"""Tasks of FLARE that bring the sites into a session: the controller's side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.shareable import Shareable

from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.flare import names
from secagg.flare.identities import Authority, Roster
from secagg.protocol import Registry

_FEWEST = 3


def configuration(
    controller: Any, sites: Collection[str], timeout: float, name: str = names.TASK
) -> bytes:
    """Return the digest of the job's configuration that most sites report in time.

    Parameters
    ----------
    controller : Controller
    sites : collection of str
    timeout : float
        Seconds.
    name : str
        Name of the task that sites perform.
    """
    step, field = names.CONFIGURE, names.CONFIGURATION
    given = _ask(controller, step, {}, sites, timeout, field, name)
    # the majority's, so that a single odd site does not stop the job
    found = Counter(given.values()).most_common(1)
    most = found[0][0] if found else b""
    if others := sorted(site for site, one in given.items() if one != most):
        controller.warning(
            f"{others} have another configuration of this job than most sites, and will take "
            "part in no sum; give all sites the same arguments, and name a site by {SITE_NAME}"
        )
    return most


def enrol(
    controller: Any, sites: Collection[str], timeout: float
) -> tuple[Roster, dict[str, bytes]]:
    """Return the roster of a session and the sites' valid signatures of the roster.

    Sites that do not answer within `timeout` seconds, or not validly, are left out.

    Raises
    ------
    TooFewSurvivors
        Fewer than 3 sites are left.
    """
    job = controller.fl_ctx.get_job_id()
    kit = Path(controller.engine.get_workspace().get_startup_kit_dir())
    # FLARE's simulator has no certificates at the server; sites verify in any case
    authority = Authority(kit) if (kit / "rootCA.pem").exists() else None
    given = _ask(controller, names.IDENTIFY, {}, sites, timeout, names.KEY)
    sites_of = Counter(given.values())  # no registry takes the key of two sites
    keys = {u: key for u, key in given.items() if sites_of[key] == 1 and _is_key(key)}
    roster = Roster(job, keys)
    signed: dict[str, bytes] = {}
    if len(keys) >= _FEWEST:  # FLARE sends a task without targets to all sites
        signed = _ask(
            controller, names.SIGN, {names.KEYS: keys}, keys, timeout, names.SIGNATURE
        )
    valid: dict[str, bytes] = {}
    for site, signature in signed.items():
        try:
            roster.verify(site, signature, authority)
        except RemoteProtocolError as error:
            controller.warning(f"left out {site}, check {error.check}: {error}")
        else:
            valid[site] = signature
    if len(valid) < _FEWEST:
        raise TooFewSurvivors(
            f"{len(valid)} of {len(sites)} sites signed their keys, and a sum takes {_FEWEST}; "
            f"start the others, or wait longer than exchange_timeout={timeout:g} seconds",
            phase=names.IDENTIFY,
            survivors=len(valid),
            needed=_FEWEST,
        )
    return roster, valid


def _is_key(key: bytes) -> bool:
    """Return whether a registry accepts a key; a rejected key would end the job."""
    try:
        Registry({0: key})
    except ParameterError:
        return False
    return True


def _ask(
    controller: Any,
    step: str,
    data: Mapping[str, object],
    sites: Collection[str],
    timeout: float,
    field: str,
    name: str = names.TASK,
) -> dict[str, bytes]:
    """Return a field of bytes of each site that answers in time."""
    found: dict[str, bytes] = {}

    def receive(client_task: ClientTask, fl_ctx: object) -> None:
        value = client_task.result.get(field)
        if isinstance(value, bytes):
            found[client_task.client.name] = value

    controller.broadcast_and_wait(
        Task(
            name,
            Shareable({names.STEP: step, **data}),
            timeout=max(1, round(timeout)),
            result_received_cb=receive,
        ),
        controller.fl_ctx,
        list(sites),
        min_responses=len(sites),
        abort_signal=controller.abort_signal,
    )
    return dict(found)
