"""Digest of a job's configuration at a site, which is equal at all sites of a sum.

A job names components with arguments for each site. A server that lies could give a single site
another step size, and the sum would be the vector of that site. So a site digests everything
that FLARE built the site's components from, and trains only for a model that names this digest.
The digest is taken at the start of the job, since the server can deploy other files later.

The server's events do not reach the components. FLARE fires these events at the sites that the
server names, past all filters. The events could inform the trainer of a single site, or stop
all other trainers, so that the sum would be one vector.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, JobConstants, ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.fuel.utils.config_factory import ConfigFactory
from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.widgets.widget import WidgetID

from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.log import logger
from secagg.flare.model import Model

_LABEL = b"secagg/1 flare configuration"
_SIGNED = frozenset({NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE})
_POLICIES = frozenset({"secagg.flare.policy.SitePolicy", "secagg.flare.SitePolicy"})


def fix_job(event_type: str, fl_ctx: Any) -> None:
    """Digest a job's configuration, and withhold the server's events for the rest of the job.

    Call this function for each local event. The function acts on the last event before FLARE
    begins to receive the server's events.
    """
    if event_type == EventType.ABOUT_TO_START_RUN:
        with suppress(ParameterError):  # raised again when the server asks for the digest
            digest_configuration(fl_ctx)
        receiver = fl_ctx.get_engine().widgets[WidgetID.FED_EVENT_RUNNER]
        # replaced now, before FLARE registers the method as the handler of messages
        receiver._receive = _ignore


def _ignore(topic: str, request: Shareable, fl_ctx: object) -> Shareable:
    logger.warning("ignored an event of the server, since all sites get the model only")
    return make_reply(ReturnCode.OK)


def digest_configuration(fl_ctx: Any) -> bytes:
    """Return the digest of this site's configuration of a job, 32 bytes.

    The digest covers the job's configuration of clients as read by FLARE, without a
    `SitePolicy`. The digest also covers all other files in the folders "config" and "custom" of
    the job's app but for FLARE's signatures. The result is empty if FLARE has deployed no app
    in the context.

    Raises
    ------
    ParameterError
        The configuration cannot be read.
    """
    app = fl_ctx.get_prop(FLContextKey.APP_ROOT)
    if app is None:
        return b""
    arguments = fl_ctx.get_prop(FLContextKey.ARGS)
    file = getattr(arguments, "client_config", f"config/{JobConstants.CLIENT_JOB_CONFIG}")
    return _digest(Path(app), file)


def check_configuration(model: Model, own: bytes) -> None:
    """Raise `RemoteProtocolError` unless a model is for this site's configuration of the job.

    The failed check is "configuration".
    """
    if model.configuration != own:
        raise RemoteProtocolError(
            "the model is for another configuration of this job than this site has; give all "
            "sites the same components, arguments and files, and name a site by {SITE_NAME}",
            sender=None,
            phase="model",
            check="configuration",
        )


@lru_cache  # a trainer writes files later, and FLARE has read them by now
def _digest(app: Path, file: str) -> bytes:
    try:
        found = hashlib.sha256(_LABEL)
        main, settings = _settings(app / file)
        parts = [(file, settings)]
        parts += [(name, path.read_bytes()) for name, path in _files(app) if path != main]
        for name, content in parts:
            # with lengths, or bytes could move from a content to the next name
            for part in (name.encode(), content):
                found.update(struct.pack("<Q", len(part)) + part)
        return found.digest()
    except Exception as error:  # of three parsers
        raise ParameterError(
            f"cannot read the job's configuration {app / file} ({type(error).__name__}), by "
            "which sites agree on their arguments; let FLARE deploy a job with a configuration "
            "in JSON, and without bytecode, to a local folder"
        ) from None


def _settings(file: Path) -> tuple[Path, bytes]:
    """Return the file that FLARE reads for a name without suffix, and the file's settings."""
    _, found = ConfigFactory.search_config_format(str(file))
    config = ConfigFactory.load_config(str(file))
    if found is None or config is None:
        raise FileNotFoundError
    if not str(found).endswith(".json"):  # HOCON can read other text at each time
        raise ValueError
    settings = dict(config.to_dict())
    # each operator states a policy, so policies may differ between sites
    if isinstance(components := settings.get("components"), list):
        settings["components"] = [one for one in components if not _is_policy(one)]
    return Path(found), json.dumps(settings).encode()


def _is_policy(component: object) -> bool:
    """Return whether a component is a policy, which no training reads, with plain arguments."""
    if not isinstance(component, dict) or component.get("id") != names.POLICY:
        return False
    args = component.get("args", {})
    # strict, since a part of the configuration outside the digest may differ from site to site
    return (
        component.keys() <= {"id", "path", "args"}
        and component.get("path") in _POLICIES
        and isinstance(args, dict)
        and "{" not in json.dumps(list(args.values()))  # of no other component
    )


def _files(app: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a job's app by ascending name, without signatures and bytecode."""
    found = (path for folder in ("config", "custom") for path in (app / folder).rglob("*"))
    # sorted, since file systems list the same files in different orders
    for path in sorted(found):
        if path.suffix == ".pyc" and _is_unchecked(path):
            raise ValueError
        skipped = path.name in _SIGNED or "__pycache__" in path.relative_to(app).parts
        if path.is_file() and not skipped:
            yield path.relative_to(app).as_posix(), path


def _is_unchecked(bytecode: Path) -> bool:
    """Return whether Python would run bytecode without a look at the source (PEP 552)."""
    with bytecode.open("rb") as file:
        flags = int.from_bytes(file.read(8)[4:], "little")
    return flags == 1  # hash-based, and not checked
