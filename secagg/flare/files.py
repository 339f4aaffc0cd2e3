"""Files of a site: files that outlive a job, and keys that a job or a policy names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secagg._files import private_folder
from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.oneshot import OneShotParams
from secagg.privacy import Budget, PrivacyLedger
from secagg.protocol import ClientPolicy, Identity, Registry, RoundParams
from secagg.vault.files import fix_bounds


@without_frames
def read_identity(path: str) -> Identity:
    """Return the identity with the private key of a file in PEM.

    Raises
    ------
    ParameterError
        The file cannot be read, or has no such key.
    """
    return Identity.from_pem(_read(path, "secagg identity keygen"))


def read_registry(path: str) -> Registry:
    """Return the registry of a file; see `read_identity`."""
    return Registry.from_json(_read(path, "secagg identity register"))


def _read(path: str, remedy: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ParameterError(
            f"cannot read {path}: {error.strerror}; make it with {remedy}"
        ) from None


def own_folder(fl_ctx: Any) -> Path:
    """Return the folder of this site for files that outlive a job, made if missing."""
    folder = Path(fl_ctx.get_workspace().get_root_dir()) / "secagg"
    private_folder(folder)
    return folder


def site_ledger(folder: Path, budget: Budget | None) -> PrivacyLedger | None:
    """Return the ledger of a site in all jobs, or None without a budget."""
    return None if budget is None else PrivacyLedger(folder / "privacy.json", budget)


def fix_site_bounds(folder: Path, params: RoundParams | OneShotParams) -> None:
    """Fix the bounds of a site's input in all jobs, at the first sum; see `fix_bounds`."""
    fix_bounds(folder / "bounds.json", params)


def fixing(policy: ClientPolicy, folder: Path) -> ClientPolicy:
    """Return a policy that fixes the bounds of the site at the first round.

    Bounds that the policy states are fixed, too: the policy can come with a job.
    """
    return _Fixing(**vars(policy), folder=folder)


@dataclass(frozen=True, kw_only=True)
class _Fixing(ClientPolicy):
    """Demands of a site that fixes bounds in a folder."""

    folder: Path

    def check(self, params: RoundParams, registered: int = 0) -> None:
        # first: parameters that the site rejects must fix nothing
        super().check(params, registered)
        fix_site_bounds(self.folder, params)
