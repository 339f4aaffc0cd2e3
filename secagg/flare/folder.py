"""Folder of this package in the workspace of a site, for files that outlive a job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secagg.oneshot import OneShotParams
from secagg.protocol import ClientPolicy, RoundParams
from secagg.vault.bounds import fix_bounds


def own_folder(fl_ctx: Any) -> Path:
    """Return the folder, which is made if missing."""
    folder = Path(fl_ctx.get_workspace().get_root_dir()) / "secagg"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def fix_site_bounds(folder: Path, params: RoundParams | OneShotParams) -> None:
    """Fix the bounds of a site's input in all jobs, at the first sum; see `fix_bounds`."""
    fix_bounds(folder / "bounds.json", params)


def fixing(policy: ClientPolicy, folder: Path) -> ClientPolicy:
    """Return a policy that fixes the bounds of the site at the first round.

    Bounds that the policy states are fixed, too: the policy can come with a job.
    """
    demands = {name: getattr(policy, name) for name in ClientPolicy.__dataclass_fields__}
    return _Fixing(**demands, folder=folder)


@dataclass(frozen=True, kw_only=True)
class _Fixing(ClientPolicy):
    """Demands of a site that fixes bounds in a folder."""

    folder: Path

    def check(self, params: RoundParams, registered: int = 0) -> None:
        # first: parameters that the site rejects must fix nothing
        super().check(params, registered)
        fix_site_bounds(self.folder, params)
