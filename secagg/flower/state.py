"""State and trust of a node: the suspended client, and what the node's configuration demands.

The client's state is in Flower's Context, encrypted, and the one-time key in the node's folder.
Flower sends a reply before Flower stores the Context. After a crash in between the old Context
is back, but the key is gone. The folder also has the number of the last sum, and the bounds of
the node's inputs, which are the same in all runs. Both outlive the SuperNode.

The demands on a sum are the strictest of the application and of the node's configuration. The
submitter of a run chooses the run's configuration, which has no part in identity and demands.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flwr.app import ConfigRecord, Context, UserConfig

from secagg import Client, ClientPolicy, Vault
from secagg._secrets import without_frames
from secagg.errors import LocalProtocolError, ParameterError, VaultError
from secagg.flower.wire import RECORD, Plan, is_computed, violation
from secagg.oneshot import OneShotPolicy
from secagg.oneshot.helper_files import helpers_from_json
from secagg.protocol import Bounds, Identity, Phase, Registry
from secagg.protocol.shape import Shape
from secagg.vault.files import fix_bounds, spend

if TYPE_CHECKING:
    from secagg.privacy import PrivacyLedger

FOLDER_KEY = "secagg-state-dir"
"""Key of the folder in the configuration of a node."""
EPSILON_KEY, DELTA_KEY = "secagg-epsilon", "secagg-delta"
"""Keys of the budget in the configuration of a node."""
LEDGER = "privacy.json"
"""Name of the ledger in a node's folder: one for all nodes with this folder.

The server can give a node another id, and must not give it another budget by that.
"""
IDENTITY_KEY, REGISTRY_KEY = "secagg-identity", "secagg-registry"
"""Keys of the paths of a private key and of a registry in the configuration of a node."""

_SMALLEST = {
    "secagg-min-clients": "min_clients",
    "secagg-min-cohort": "min_cohort",
    "secagg-min-threshold": "min_threshold",
}
_HELPER_THRESHOLD = "secagg-min-helper-threshold"
_ACTIVE, _HYBRID = "secagg-require-active", "secagg-require-hybrid"
_HELPERS = "secagg-helpers"
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys((*_SMALLEST, _HELPER_THRESHOLD), (int, "an integer")),
    **dict.fromkeys((EPSILON_KEY, DELTA_KEY), ((int, float), "a number")),
    **dict.fromkeys((_ACTIVE, _HYBRID), (bool, "true or false")),
    _HELPERS: (str, "the path of a file"),
    # read and validated elsewhere
    **dict.fromkeys((FOLDER_KEY, IDENTITY_KEY, REGISTRY_KEY), (object, "")),
}


class NodeIdentity(NamedTuple):
    """Identity of a node, the registry of all clients, and the node's id in the registry."""

    client_id: int
    identity: Identity
    registry: Registry


@without_frames
def node_identity(config: UserConfig) -> NodeIdentity | None:
    """Return the identity in a node's configuration, or None if there is no identity.

    Parameters
    ----------
    config : mapping
        Configuration of the node: ``secagg-identity``, the path of a key file of ``secagg
        identity keygen``, and ``secagg-registry``, the path of a file of ``secagg identity
        register``. Both or none.

    Raises
    ------
    ParameterError
        A path is missing, or not the path of such a file, or the registry does not have the
        identity's public key.
    """
    given = {key: config.get(key) for key in (IDENTITY_KEY, REGISTRY_KEY)}
    if set(given.values()) == {None}:
        return None
    for key, path in given.items():
        if not isinstance(path, str):
            raise ParameterError(
                f"{key} is {path!r} in the node's configuration; set it to the path of a file, "
                f"as {IDENTITY_KEY} and {REGISTRY_KEY} are needed together"
            )
    identity = Identity.from_pem(_read(config, IDENTITY_KEY))
    registry = Registry.from_json(_read(config, REGISTRY_KEY))
    # the key decides, in the node's own registry: the server has no say in the id
    for client_id, public in registry.items():
        if public == identity.public:
            return NodeIdentity(client_id, identity, registry)
    raise ParameterError(
        f"{given[REGISTRY_KEY]} does not have the key of {given[IDENTITY_KEY]}; add "
        f"{identity.public.hex()} with secagg identity register"
    )


def no_identity() -> ParameterError:
    """Return the error of a node without an identity, in a sum that needs an identity."""
    return ParameterError(
        f"security is 'active', and the node's configuration has no {IDENTITY_KEY}; set it to "
        f"a key file of secagg identity keygen, and {REGISTRY_KEY} to the registry of all nodes"
    )


def strictest(policy: ClientPolicy, config: UserConfig) -> ClientPolicy:
    """Return a policy that satisfies an application's policy and the node's configuration.

    Parameters
    ----------
    policy : ClientPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-threshold``, int, ``secagg-require-active`` and ``secagg-require-hybrid``,
        bool. With ``secagg-identity`` the node is in active sums only.

    Raises
    ------
    ParameterError
        A key that begins with ``secagg-`` is unknown, or has a value of a wrong type or range.
    """
    _check_keys(config)
    stricter: dict[str, int | bool] = {}
    for key, name in _SMALLEST.items():
        if key in config:
            value, own = int(config[key]), getattr(policy, name)
            stricter[name] = value if own is None else max(own, value)
    stricter["require_active"] = _active(policy, config)
    stricter["require_hybrid"] = _hybrid(policy, config)
    return replace(policy, **stricter)  # type: ignore[arg-type]


def strictest_one_shot(policy: OneShotPolicy, config: UserConfig) -> OneShotPolicy:
    """Return a policy for one-shot sums that satisfies application and node.

    Parameters
    ----------
    policy : OneShotPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-helper-threshold``, int, ``secagg-require-active`` and
        ``secagg-require-hybrid``, bool, and ``secagg-helpers``, the path of a file of helpers.

    Raises
    ------
    ParameterError
        See `strictest`. Or neither application nor node names the trusted helpers.
    """
    _check_keys(config)
    helpers = policy.helpers
    if _HELPERS in config:
        # the server relays the parameters, and could have chosen the helpers' keys
        listed = frozenset(one.ed25519 for one in helpers_from_json(_read(config, _HELPERS)))
        helpers = listed if helpers is None else helpers & listed
    if helpers is None:
        raise ParameterError(
            f"this node trusts no helpers; set {_HELPERS} to a file of them, or pass "
            "OneShotMod(OneShotPolicy(helpers={the Ed25519 key of each}))"
        )
    # the list of a one-shot sum is its cohort, so both keys are demands on min_clients
    keys = [key for key in ("secagg-min-clients", "secagg-min-cohort") if key in config]
    return replace(
        policy,
        min_threshold=max(policy.min_threshold, int(config.get(_HELPER_THRESHOLD, 1))),
        min_clients=max(policy.min_clients, *(int(config[key]) for key in keys), 2),
        require_active=_active(policy, config),
        require_hybrid=_hybrid(policy, config),
        helpers=helpers,
    )


def _active(policy: ClientPolicy | OneShotPolicy, config: UserConfig) -> bool:
    """Return True if a node is in active sums only."""
    # a semi-honest sum of signing nodes would be a way around what their keys are for
    return policy.require_active or IDENTITY_KEY in config or bool(config.get(_ACTIVE, False))


def _hybrid(policy: ClientPolicy | OneShotPolicy, config: UserConfig) -> bool:
    """Return True if a node is in sums of suite hybrid only."""
    return policy.require_hybrid or bool(config.get(_HYBRID, False))


def _check_keys(config: UserConfig) -> None:
    """Raise `ParameterError` for an unknown key of this package, or a value of another type."""
    for key, value in config.items():
        if not key.startswith("secagg-"):
            continue
        if key not in _KINDS:
            raise ParameterError(
                f"the node's configuration has the unknown key {key!r}; take one of "
                f"{', '.join(_KINDS)}"
            )
        kind, name = _KINDS[key]
        # a bool is an int, too
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ParameterError(f"{key} is {value!r} in the node's configuration, not {name}")


def _read(config: UserConfig, key: str) -> bytes:
    """Return the content of a file that the node's configuration names."""
    path = Path(str(config[key]))
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"cannot read {path}: {error.strerror}; set {key} to a file that the node can read"
        ) from None


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
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
