"""Signatures as the source writes them, and links from every public name of an object."""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from typing import Any

from sphinx.ext.autodoc.mock import mock

PACKAGES = ("secagg.", "fedmf.")


def write_signature(
    app: Any, what: str, name: str, found: Any, options: Any, arguments: str, returns: str
) -> tuple[str, str] | None:
    """Return a signature with the annotations of the source, `Vector` and not its expansion."""
    if what == "class" and (issubclass(found, Exception) or hasattr(found, "__members__")):
        return "", ""
    if getattr(found, "_is_protocol", False):
        return "", ""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return None
    parts: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        after_star = "*" in parts or parameter.VAR_POSITIONAL in kinds
        if parameter.kind is parameter.KEYWORD_ONLY and not after_star:
            parts.append("*")
        parts.append(_parameter(parameter))
    result = signature.return_annotation
    shown = "" if what == "class" or result is signature.empty else _annotation(result)
    return f"({', '.join(parts)})", shown


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    typed = parameter.annotation is not parameter.empty
    if typed:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = "os.urandom" if parameter.default is os.urandom else repr(parameter.default)
        text += f" = {default}" if typed else f"={default}"
    return text


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def escape_bars(
    app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """Escape the bars of an absolute value, which would begin a substitution."""
    for number, line in enumerate(lines):
        code = line.split("``")
        code[::2] = [text.replace("|", "\\|") for text in code[::2]]
        lines[number] = "``".join(code)


def link_other_names(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Link a short name, or another public name, to where the object is documented.

    A name that exists and has no page, such as a private base class, stays plain text. One
    that does not exist is left to Sphinx, which warns.
    """
    if node.get("refdomain") != "py":
        return None
    target, domain = str(node["reftarget"]), env.domains["py"]

    def link(name: str) -> Any:
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)

    if "." not in target:
        if not target[0].isupper():  # a parameter or a function, of which there are thousands
            return content
        names = [n for n in domain.objects if n.endswith(f".{target}") and n.count(".") <= 2]
        return link(names[0]) if names else content
    if not target.startswith(PACKAGES):
        return None
    mocked = env.config.autodoc_mock_imports
    found = _find(target, mocked)
    if found is None:
        return None
    end = f".{target.rpartition('.')[2]}"
    names = [n for n in domain.objects if n.endswith(end) and n != target]
    same = next((n for n in names if _find(n, mocked) is found), None)
    return (link(same) if same else None) or content


def _find(path: str, mocked: list[str]) -> Any:
    module, _, name = path.rpartition(".")
    try:
        with mock(mocked):
            return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return None


def setup(app: Any) -> dict[str, bool]:
    """Connect the three to Sphinx."""
    app.connect("autodoc-process-signature", write_signature)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("missing-reference", link_other_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
