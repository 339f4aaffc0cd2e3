"""A round as rounds.json has it."""

from params import described
from whole_round import Round


def describe(r: Round) -> dict[str, object]:
    """The round as JSON has it."""
    clients = [{
        "id": u, "vector": p.vector, "weight": p.weight, "rounding": p.rounding,
        "kept_seal_seed": p.kept, "draws": p.entropy, "hedged": p.hedged,
        "values": r.clients[u].values,
        "coins": [{"id": v, "coins": coins} for v, coins in r.clients[u].coins.items()],
        "identity_seed": p.identity, "drops_at": p.drop, "lies_at": p.lies_at,
    } for u, p in r.parties.items()]  # fmt: skip
    phases = [
        {"phase": phase, "sent": listed(r.sent[phase]), "answers": listed(r.answers[phase])}
        for phase in r.phases()
    ]
    return {
        "name": r.name, "parameters": described(r.params),
        "parameters_digest": r.params.digest(), "session": r.session,
        "server_draws": r.server_draws, "clients": clients, "phases": phases,
        "result": None if r.error else result(r), "error": error(r),
    }  # fmt: skip


def result(r: Round) -> dict[str, object]:
    return {"survivors": r.u3, "total": r.total, "integers": r.integers,
            "weight": r.weight, "clipped": r.clipped, "values": r.values,
            "clipped_vectors": r.clipped_vectors, "disputes": r.recovery.disputes,
            "verdicts": verdicts(r)}  # fmt: skip


def error(r: Round) -> dict[str, object] | None:
    """Return the error of a round that ended without a sum."""
    if r.error is None:
        return None
    return {"error": r.error.error, "check": r.error.check, "sender": r.error.sender,
            "needed": r.error.needed, "survivors": r.error.survivors,
            "disputes": r.error.disputes, "verdicts": verdicts(r)}  # fmt: skip


def verdicts(r: Round) -> list[dict[str, object]]:
    return [{"client": client, "kind": kind} for client, kind in r.recovery.verdicts]


def listed(messages: dict[int, bytes]) -> list[dict[str, object]]:
    return [{"id": u, "bytes": data} for u, data in messages.items()]
