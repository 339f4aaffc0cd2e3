"""Description of the members' interface by OpenAPI 3.1."""

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
_ACCEPTED: Document = {"204": {"description": "Accepted."}}
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
    name: Document = {
        "name": "session",
        "in": "path",
        "required": True,
        "description": "Name of the session, percent-encoded.",
        "schema": {"type": "string", "minLength": 1},
    }
    signed = [name, *map(_header, ("Content-Digest", "Signature-Input", "Signature"))]
    after: Document = {
        "name": "after",
        "in": "query",
        "description": "Id of the last task that the member has, 16 bytes in hexadecimal.",
        "schema": {"type": "string", "pattern": "^([0-9a-f]{32})?$"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Members of a session of secagg",
            "version": __version__,
            "description": "Tasks and answers are the frames of docs/sessions.md.",
        },
        "paths": {
            "/health": _HEALTH,
            "/v1/session": {
                "get": {
                    "operationId": "session",
                    "responses": {"200": _json("Name of the session.", "Session")}
                    | _errors(413),
                }
            },
            "/v1/sessions/{session}/task": {
                "get": {
                    "operationId": "task",
                    "summary": "Wait for the member's next task.",
                    "parameters": [*signed, after],
                    "responses": {
                        "200": {"description": "Task.", "content": _BYTES},
                        "204": {"description": "No task yet; ask again."},
                    }
                    | _errors(400, 401, 403, 404, 410, 413, 503),
                }
            },
            "/v1/sessions/{session}/answer": {
                "post": {
                    "operationId": "answer",
                    "summary": "Answer a task. The same bytes again change nothing.",
                    "parameters": signed,
                    "requestBody": {"required": True, "content": _BYTES},
                    "responses": _ACCEPTED
                    | _errors(400, 401, 403, 404, 408, 409, 410, 411, 413, 422, 503),
                }
            },
        },
        "components": {
            "schemas": {
                "Problem": _PROBLEM,
                "Health": _object(status={"const": "ok"}),
                "Session": _object(session={"type": "string"}),
            }
        },
    }


def helper() -> Document:
    """Return the description of a helper's application."""
    name: Document = {
        "name": "sum",
        "in": "path",
        "required": True,
        "description": "SHA-256 of the parameters, in hexadecimal.",
        "schema": {"type": "string", "minLength": 1},
    }
    signed = [*map(_header, ("Content-Digest", "Signature-Input", "Signature"))]
    answer: Document = {"200": {"description": "Answer of the helper.", "content": _BYTES}}
    refused = _errors(400, 401, 404, 408, 411, 413, 422, 503)

    def post(step: str, what: str, parameters: list[Document], good: Document) -> Document:
        return {
            "post": {
                "operationId": step,
                "summary": what,
                "parameters": parameters,
                "requestBody": {"required": True, "content": _BYTES},
                "responses": good | refused,
            }
        }

    rejected: Document = {"200": _json("Clients to drop.", "Rejected")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Helper of one-shot sums of secagg",
            "version": __version__,
            "description": "Messages are those of docs/oneshot.md.",
        },
        "paths": {
            "/health": _HEALTH,
            "/v1/sums": post("begin", "Send the parameters of a sum.", signed, answer),
            "/v1/sums/{sum}/check": post("check", "Check boxes.", [name, *signed], rejected),
            "/v1/sums/{sum}/reserve": post("reserve", "Reserve.", [name, *signed], answer),
            "/v1/sums/{sum}/open": post("open", "Open.", [name, *signed], answer),
        },
        "components": {
            "schemas": {
                "Problem": _PROBLEM,
                "Health": _object(status={"const": "ok"}),
                "Rejected": _object(rejected={"type": "array", "items": {"type": "integer"}}),
            }
        },
    }


def _header(name: str) -> Document:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": "RFC 9530." if name == "Content-Digest" else _SIGNED,
        "schema": {"type": "string", "maxLength": 512},
    }


def _json(why: str, schema: str) -> Document:
    return {
        "description": why,
        "content": {"application/json": {"schema": _reference(schema)}},
    }


def _errors(*statuses: int) -> Document:
    content = {MEDIA_TYPE: {"schema": _reference("Problem")}}
    return {
        str(status): {"description": _WHY[status], "content": content} for status in statuses
    }


def _reference(schema: str) -> Document:
    return {"$ref": f"#/components/schemas/{schema}"}


def _object(**properties: Document) -> Document:
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


_HEALTH: Document = {
    "get": {
        "operationId": "health",
        "responses": {"200": _json("The server runs.", "Health")} | _errors(413),
    }
}
