"""http.json: docs/http-binding.md §2, signatures of requests, and §5, a collection."""

import base64
from collections.abc import Iterator

from draws import draw
from faults import flip
from oneshot import Client, sessions

from independent_primitives import identity_key, sha256, sign

CREATED = 1795842438
SUM = sha256(b"a sum").hex()
REQUESTS = {
    "poll without a task": (1, "GET", "/v1/sessions/wards/task?after=", b""),
    "poll after a task": (2**64 - 1, "GET", f"/v1/sessions/a%2Fb/task?after={'0f' * 16}", b""),
    "answer": (7, "POST", "/v1/sessions/wards/answer", b"\x01\x93\x02"),
    "name of the session": (0, "GET", "/v1/session", b""),
    "call of a helper": (0, "POST", f"/v1/sums/{SUM}/check", bytes(range(256))),
}  # fmt: skip


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def signed(
    u: int, method: str, target: str, body: bytes, created: int = CREATED, after: int = 300,
    tag: str = "secagg-http/1", **changes: str,
) -> dict[str, object]:  # fmt: skip
    """The headers of a request. `changes` are of headers, after the signature."""
    path, _, query = target.partition("?")
    digest = f"sha-256=:{_base64(sha256(body))}:"
    parameters = (
        f'("@method" "@path" "@query" "content-digest");created={created};keyid="{u}"'
        f';alg="ed25519";expires={created + after};tag="{tag}"'
    )
    base = (
        f'"@method": {method}\n"@path": {path}\n"@query": ?{query}\n'
        f'"content-digest": {digest}\n"@signature-params": {parameters}'
    )
    seed = draw(f"http identity {u}", 32)
    headers = {
        "content-digest": digest,
        "signature-input": f"secagg={parameters}",
        "signature": f"secagg=:{_base64(sign(seed, base.encode()))}:",
    }
    return {
        "client": u, "identity_seed": seed, "identity_key": identity_key(seed), "now": CREATED,
        "method": method, "target": target, "body": body, "base": base,
        "headers": headers | changes,
    }  # fmt: skip


def refused() -> dict[str, tuple[str, dict[str, object]]]:
    """Requests with a fault, and the check that each fails."""
    u, method, target, body = REQUESTS["answer"]
    first = u, method, target, body
    other = signed(u, method, target, b"another body")["headers"]
    assert isinstance(other, dict)
    digest = {"content-digest": other["content-digest"]}
    return {
        "expired": ("clock", signed(*first, created=CREATED - 361)),
        "of the future": ("clock", signed(*first, created=CREATED + 61)),
        "another digest": ("signature", signed(*first, **digest)),
        "another signature": ("signature", signed(*first, signature=other["signature"])),
        "another path": ("signature", signed(*first) | {"target": target + "/"}),
        "another method": ("signature", signed(*first) | {"method": "GET"}),
        "another tag": ("signature", signed(*first, tag="secagg-http/2")),
        "method in lower case": ("signature", signed(u, "post", target, body)),
        "a character outside the targets": ("signature", signed(u, method, "/v1/a+b", body)),
        "an escape in the query": ("signature", signed(u, "GET", "/v1/a?after=%30", b"")),
    }  # fmt: skip


def exchange(
    name: str, target: str, status: int, check: str = "", body: bytes | None = None,
    content: dict[str, object] | None = None, headers: tuple[str, ...] = (),
) -> dict[str, object]:  # fmt: skip
    return {
        "name": name, "method": "GET" if body is None else "POST", "target": target,
        "body": body or b"", "status": status, "check": check or None, "content": content,
        "headers": headers,
    }  # fmt: skip


def collection() -> dict[str, object]:
    """§5: requests to a collection in their order, before and after its batch is closed."""
    batch = sessions()["example"]
    p, known = batch.p, [1, 2, 3, 4, 300]
    assert p.n_clients == 4
    endorsements = [sign(seed, p.endorsement()) for _, seed in batch.secrets]
    path = f"/v1/parameters/{p.digest.hex()}"
    offer = {
        "digest": p.digest.hex(), "parameters": _base64(p.encode()),
        "endorsements": [_base64(one) for one in endorsements],
    }  # fmt: skip

    def report(
        name: str, status: int, body: bytes, check: str = "", *headers: str
    ) -> dict[str, object]:
        return exchange(name, f"{path}/reports", status, check, body, headers=headers)

    def of(u: int) -> bytes:
        return Client(p, u, [0.0, 0.0, 0.0], 0).encode()

    def faults(good: bytes, end: int) -> Iterator[tuple[str, int, str, bytes]]:
        yield "no bytes", 422, "length", b""
        yield "a byte missing", 422, "length", good[:-1]
        yield "a byte more", 413, "length", good + b"\0"
        yield "version 2", 422, "version", b"\2" + good[1:]
        yield "kind 2", 422, "encoding", good[:1] + b"\2" + good[2:]
        yield "another session", 422, "parameters", flip(good, 2)
        yield "a signature altered", 422, "signature", flip(good, end - 1)
        yield "a client not in the registry", 422, "signature", of(77)
        yield "a padding bit", 422, "range", good[:-1] + bytes([good[-1] | 0x80])

    good = [client.encode() for client in batch.clients]
    faulty = [
        report(name, status, body, check)
        for name, status, check, body in faults(good[0], len(good[0]) - p.packed)
    ]
    return {
        "digest": p.digest, "parameters": p.encode(), "endorsements": endorsements,
        "registry": [
            {"id": u, "identity_key": identity_key(draw(f"one-shot identity {u}", 32))}
            for u in known
        ],
        "open": [
            exchange("the newest parameters", "/v1/parameters", 200, content=offer),
            exchange("parameters by digest", path, 200, content=offer),
            exchange("another digest", f"/v1/parameters/{'0' * 64}", 404, "parameters"),
            exchange("no digest", "/v1/parameters/x", 404, "parameters"),
            *faulty,
            *(report("a report", 204, one) for one in good),
            report("the same bytes again", 204, good[0]),
            report("another report of the client", 409, of(1), "id"),
            report("the last report", 204, of(3)),
            report("a report more than n", 503, of(4), "full", "retry-after"),
            report("the same bytes, in a full batch", 204, good[1]),
        ],
        "closed": [
            exchange("no session is open", "/v1/parameters", 404, "parameters"),
            exchange("parameters of a closed session", path, 200, content=offer),
            report("the same bytes, after the end", 204, good[1]),
            report("another report, after the end", 409, of(1), "id"),
            report("a new report", 410, of(4), "closed", "link"),
        ],
    }  # fmt: skip


def http() -> dict[str, object]:
    return {
        "collection": collection(),
        "requests": [{"name": name} | signed(*of) for name, of in REQUESTS.items()],
        "refused": [
            {"name": name, "status": 401, "check": check} | request
            for name, (check, request) in refused().items()
        ],
    }
