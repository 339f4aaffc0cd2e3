"""http.json: signatures of requests, from docs/http-binding.md §2 alone."""

import base64

from draws import draw

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


def http() -> dict[str, object]:
    return {
        "requests": [{"name": name} | signed(*of) for name, of in REQUESTS.items()],
        "refused": [
            {"name": name, "status": 401, "check": check} | request
            for name, (check, request) in refused().items()
        ],
    }
