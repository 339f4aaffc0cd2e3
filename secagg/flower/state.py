"""State of a node: the suspended client, the last sum, the bounds and the ledger.

The client's state is in Flower's Context, encrypted, and the one-time key in the node's folder.
Flower sends a reply before Flower stores the Context. After a crash in between the old Context
is back, but the key is gone. The folder also has the number of the last sum, and the bounds of
the node's inputs, which are the same in all runs. Both outlive the SuperNode.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.app import ConfigRecord, Context

from secagg import Client, Vault
from secagg._files import private_folder
from secagg.errors import LocalProtocolError, ParameterError, VaultError
from secagg.flower.config import DELTA_KEY, EPSILON_KEY, FOLDER_KEY
from secagg.flower.wire import RECORD, Plan, is_computed, violation
from secagg.protocol import Bounds, Phase
from secagg.protocol.shape import Shape
from secagg.vault.files import fix_bounds, spend

if TYPE_CHECKING:
    from secagg.privacy import PrivacyLedger

LEDGER = "privacy.json"
"""Name of the ledger in a node's folder: one for all nodes with this folder.

The server can give a node another id, and must not give it another budget by that.
"""
_WEIGHT = "num-examples"
"""Key of the weight, unless the bounds of the node's policy name another key."""


class NodeState:
    """State of one node in one run, between two messages.

    The node's configuration names the folder; the default is ``secagg`` in Flower's folder.
    Nodes may share the folder, on a local disk. Never copy or restore the folder.

    Parameters
    ----------
    context : Context
    client_id : int, optional
        Id by which the folder knows the node; by default Flower's id, which a node does not
        keep for ever.

    Raises
    ------
    ParameterError
        The folder in the node's configuration is not a str.
    VaultError
        The folder cannot be made.
    """

    def __init__(self, context: Context, client_id: int | None = None) -> None:
        self._context = context
        given = context.node_config.get(FOLDER_KEY)
        if given is not None and not isinstance(given, str):
            raise ParameterError(f"{FOLDER_KEY} is {given!r}; it must be the path of a folder")
        home = os.environ.get("FLWR_HOME") or Path.home() / ".flwr"
        folder = Path(given or Path(home) / "secagg")
        try:
            private_folder(folder)
        except OSError as error:
            raise VaultError(
                f"{folder}: {error.strerror or error}; set {FOLDER_KEY} to a folder on a local "
                "disk that the node can write",
                check="file",
            ) from None
        owner = context.node_id if client_id is None else client_id
        self._run = f"{owner}-{context.run_id}"
        self._vault = Vault(folder / f"{self._run}.key")
        self._folder = folder
        self._bounds = folder / f"{owner}.bounds"  # not of a run: the server chooses runs

    def ledger(self) -> PrivacyLedger | None:
        """Return the ledger of the node's budget, or None if the configuration has no budget.

        Raises
        ------
        ParameterError
            The configuration has only one of ε and δ, or a value out of range. Or the ledger
            has another budget.
        JournalError
            The file cannot be read or written, was altered, cut short or copied.
        MissingExtra
            dp-accounting is not installed: ``pip install "secagg[privacy]"``.
        """
        config = self._context.node_config
        given = [key for key in (EPSILON_KEY, DELTA_KEY) if key in config]
        if not given:
            return None
        if len(given) == 1:
            raise ParameterError(
                f"the node's configuration has {given[0]} alone; a budget is {EPSILON_KEY} and "
                f"{DELTA_KEY}, such as 2 and 1e-6"
            )
        from secagg.privacy import Budget, PrivacyLedger  # nodes without a budget start faster

        budget = Budget(*(float(config[key]) for key in given))
        return PrivacyLedger(self._folder / LEDGER, budget)

    def fix(self, params: Shape, own: Bounds | None, plan: Plan | None = None) -> None:
        """Raise `ParameterError` if the bounds of a sum are not the node's bounds.

        The first sum fixes the bounds. `own` are the bounds of the node's policy, which then
        count alone. A plan also has the bounds of the metrics.
        """
        metrics, weight = {}, None
        if plan is not None:
            metrics = {name: bound for name, bound in plan.metrics if not is_computed(name)}
            weight = plan.weight
        if own is None:
            fix_bounds(self._bounds, params, metrics, weight)
        else:
            replace(own, weight=own.weight or _WEIGHT).check(params, metrics, weight)

    def begin(self, number: int, phase: str = Phase.ADVERTISE_KEYS) -> None:
        """Store the number of the sum that begins, durably.

        RemoteProtocolError ("session") is raised unless the number is above all numbers before:
        a second vector in one round could be summed in another cohort.
        """
        last = spend(self._folder, self._run, number)
        if last is not None:
            why = (
                f"this node was in sum {last} of run {self._context.run_id} before, "
                f"and this is sum {number}; start a new run, or in a test pass "
                f"LocalGrid another run_id, or an empty folder as {FOLDER_KEY}"
            )
            raise violation(phase, "session", why)

    def suspend(self, client: Client) -> None:
        """Suspend a client into the Context, or drop a finished client's state."""
        if client.phase is Phase.FINISHED:
            self._context.state.pop(RECORD, None)
        else:
            phase, state = str(client.phase), client.suspend(self._vault)
            self._context.state[RECORD] = ConfigRecord({"phase": phase, "state": state})

    def check(self, phase: str) -> None:
        """Raise an error unless a suspended client is due for a phase; take no key.

        Without a client, the error is a `LocalProtocolError`. If another phase is due, as after
        a message that comes twice, the error is a `RemoteProtocolError` ("phase").
        """
        record = self._context.state.config_records.get(RECORD)
        if record is None or not isinstance(record.get("state"), bytes):
            raise LocalProtocolError(
                "this node has no client in a sum, because the SuperNode was restarted or the "
                "sum began without it; it is in the next one"
            )
        if (due := record.get("phase")) != phase:
            raise violation(phase, "phase", f"{due!r} is due")

    def restore(self, client: Client) -> None:
        """Continue the suspended client in `client`; see `Client.restore` for the errors."""
        state = self._context.state.config_records[RECORD]["state"]
        assert isinstance(state, bytes), "see `check`"  # noqa: S101
        client.restore(state, self._vault)
