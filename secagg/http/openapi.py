"""Descriptions of the interfaces of members and of helpers by OpenAPI 3.1."""

from __future__ import annotations

from secagg import __version__
from secagg.http.problems import MEDIA_TYPE
from secagg.http.signatures import COVERED

Document = dict[str, object]

_PROBLEM: Document = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "check"],
    "additionalProperties": False,
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "check": {"type": "string", "description": "Short stable name of the failed check."},
    },
}
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_SIGNED = (
    "HTTP Message Signature (RFC 9421) by the Ed25519 identity of the client, over "
    f"{', '.join(COVERED)} in order, with created, expires, keyid (the client's id) and tag."
)
_WHY = {
    400: "The request is malformed, or its body is not that of Content-Digest.",
    401: "Unsigned, of an unknown client, with a wrong signature or from a wrong clock.",
    403: "The client is no member of the session, or not of this round.",
    404: "Another session runs here.",
    405: "The path has other methods.",
    408: "The body took too long, or was too slow while others waited.",
    409: "The answer is late, or of another task. Nothing has changed.",
    410: "The session has ended.",
    411: "The body has no Content-Length.",
    413: "The body is larger than any answer that is due.",
    422: "The answer failed a check of the protocol.",
    503: "The server is at a limit; Retry-After states when to try again.",
}


def members() -> Document:
    """Return the description of the members' application."""
    name = _parameter("session", "path", "Name of the session, percent-encoded.", minLength=1)
    why = "Id of the last task that the member has, 16 bytes in hexadecimal."
    after = _parameter("after", "query", why, pattern="^([0-9a-f]{32})?$")
    task: Document = {
        "200": {"description": "Task.", "content": _BYTES},
        "204": {"description": "No task yet; ask again."},
    }
    accepted: Document = {"204": {"description": "Accepted."}}
    session: Document = {"200": _json("Name of the session.", "Session")}
    return _described(
        "Members of a session of secagg",
        "Tasks and answers are the frames of docs/sessions.md.",
        {
            "/v1/session": _get("session", session | _errors(413)),
            "/v1/sessions/{session}/task": _get(
                "task",
                task | _errors(400, 401, 403, 404, 410, 413, 503),
                summary="Wait for the member's next task.",
                parameters=[name, *_signed(), after],
            ),
            "/v1/sessions/{session}/answer": _post(
                "answer",
                "Answer a task. The same bytes again change nothing.",
                [name, *_signed()],
                accepted | _errors(400, 401, 403, 404, 408, 409, 410, 411, 413, 422, 503),
            ),
        },
        Session=_object(session={"type": "string"}),
    )


def helper() -> Document:
    """Return the description of a helper's application."""
    name = _parameter("sum", "path", "SHA-256 of the parameters, in hexadecimal.", minLength=1)
    named, refused = [name, *_signed()], _errors(400, 401, 404, 408, 411, 413, 422, 503)
    good: Document = {"200": {"description": "Answer of the helper.", "content": _BYTES}}
    rejected: Document = {"200": _json("Clients to drop.", "Rejected")}
    answer = good | refused
    return _described(
        "Helper of one-shot sums of secagg",
        "Messages are those of docs/oneshot.md.",
        {
            "/v1/sums": _post("begin", "Send the parameters of a sum.", _signed(), answer),
            "/v1/sums/{sum}/check": _post("check", "Check boxes.", named, rejected | refused),
            "/v1/sums/{sum}/reserve": _post("reserve", "Reserve.", named, answer),
            "/v1/sums/{sum}/open": _post("open", "Open.", named, answer),
        },
        Rejected=_object(rejected={"type": "array", "items": {"type": "integer"}}),
    )


def _described(title: str, about: str, paths: Document, **schemas: Document) -> Document:
    """Return the description of an application with these paths, and with /health."""
    health = _get("health", {"200": _json("The server runs.", "Health")} | _errors(413))
    known = {"Problem": _PROBLEM, "Health": _object(status={"const": "ok"})}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": about},
        "paths": {"/health": health} | paths,
        "components": {"schemas": known | schemas},
    }


def _get(step: str, responses: Document, **more: object) -> Document:
    return {"get": {"operationId": step, "responses": responses, **more}}


def _post(step: str, what: str, parameters: list[Document], responses: Document) -> Document:
    return {
        "post": {
            "operationId": step,
            "summary": what,
            "parameters": parameters,
            "requestBody": {"required": True, "content": _BYTES},
            "responses": responses,
        }
    }


def _parameter(name: str, place: str, why: str, **schema: object) -> Document:
    found: Document = {"name": name, "in": place, "description": why}
    required = {} if place == "query" else {"required": True}
    return found | required | {"schema": {"type": "string", **schema}}


def _signed() -> list[Document]:
    """Return the headers that sign a request."""
    why = {"Content-Digest": "RFC 9530.", "Signature-Input": _SIGNED, "Signature": _SIGNED}
    return [_parameter(name, "header", text, maxLength=512) for name, text in why.items()]


def _json(why: str, schema: str, media: str = "application/json") -> Document:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"description": why, "content": {media: {"schema": reference}}}


def _errors(*statuses: int) -> Document:
    return {str(status): _json(_WHY[status], "Problem", MEDIA_TYPE) for status in statuses}


def _object(**properties: Document) -> Document:
    required = {"type": "object", "required": list(properties)}
    return required | {"additionalProperties": False, "properties": properties}
