"""malformed.json: messages to reject, spellings to accept, closings with too few clients."""

from faults_client import client_faults
from faults_server import closings, server_faults
from kinds import FROM_CLIENTS, broken, odd_spellings
from parties import Round

from independent_messages import KINDS, limit

# The smallest rounds, so that the file stays small.
HOME = dict.fromkeys(range(1, 8), "complete-nobody-drops") | {
    8: "active-prime",
    9: "active-prime",
}


def answer_in(r: Round, phase: str, u: int) -> bytes:
    """The message that a client answers in this phase."""
    phases = r.phases()
    return r.answers[phases[phases.index(phase) - 1]][u]


def malformed(rounds: dict[str, Round]) -> dict[str, object]:
    framing: list[dict[str, object]] = []
    accepted: list[dict[str, object]] = []
    for tag, (kind, phase, _) in KINDS.items():
        r = rounds[HOME[tag]]
        u = sorted(r.parties)[0]
        good = r.sent[phase][u] if tag in FROM_CLIENTS else answer_in(r, phase, u)
        where: dict[str, object]
        if tag in FROM_CLIENTS:
            where = {"side": "server", "round": r.name, "phase": phase, "accepted": [],
                     "from": u, "kind": kind}  # fmt: skip
        else:
            where = {"side": "client", "round": r.name, "phase": phase, "client": u,
                     "before": None, "kind": kind}  # fmt: skip
        for name, check, data in broken(good, limit(r.params, tag)):
            framing.append(where | {"name": f"{kind}: {name}", "bytes": data, "check": check,
                                    "error": "RemoteProtocolError"})  # fmt: skip
        for name, data in odd_spellings(good):
            accepted.append(where | {"name": f"{kind}: {name}", "bytes": data, "as": good})
    return {
        "refused": [*framing, *server_faults(rounds), *client_faults(rounds)],
        "accepted": accepted,
        "closings": closings(rounds),
    }
