"""NVIDIA FLARE: federated averaging with a server that sees sums only.

`SecAggFedAvg` replaces FLARE's `FedAvg` in a job, and `SecAggExecutor` wraps the executor that
trains at a site. One process for each site takes part in a `secagg.session.Session` of the
server over FLARE's messages. Where helpers exist, `OneShotFedAvg` takes one message from each
site in a round. `SecAggFilter` makes this message of the result of any executor. `SitePolicy`
has the demands of a site's operator. For rounds with ``security="active"`` the sites sign their
keys with the certificates of FLARE's provisioning. docs/flare-messages.md has the messages,
docs/flare.md the checks of a site and the server's view.
"""

from __future__ import annotations

from secagg.errors import needing

with needing("secagg.flare", "'secagg[flare]'", "nvflare"):
    from secagg.flare.controller import SecAggFedAvg
    from secagg.flare.executor import SecAggExecutor
    from secagg.flare.filter import SecAggFilter
    from secagg.flare.oneshot import OneShotFedAvg
    from secagg.flare.policy import SitePolicy

__all__ = ["OneShotFedAvg", "SecAggExecutor", "SecAggFedAvg", "SecAggFilter", "SitePolicy"]
