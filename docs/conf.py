"""Sphinx settings of the documentation; `make docs` builds it without the network."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("SECAGG_PURE", "1")  # no page depends on the compiled kernels
sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]

from secagg import __version__  # noqa: E402 -- found by the path above

project = "secagg"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "accessible",  # this and the next four are in _ext
    "reference",
    "results",
    "smaller",
    "state_diagram",
]
exclude_patterns = ["_build"]
highlight_language = "default"
default_role = "py:obj"  # docstrings write `name` for objects, modules and parameters alike

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4

autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseException, StrEnum, str, int, Protocol, Mapping, tuple",
    "member-order": "bysource",
}
# large packages, of which the reference shows a few names only
autodoc_mock_imports = [name for name in ("flwr", "nvflare") if find_spec(name) is None]
autosummary_generate = False
numpydoc_show_class_members = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

nitpick_ignore_regex = [
    ("py:obj", r".*"),  # a name in backticks need not have a page
    # no inventories from the network
    (
        "py:class",
        r"(asyncio|np|numpy|os|ssl|st|hypothesis|collections|fractions|flwr|msgspec|nvflare)\..*",
    ),
]

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"secagg {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_use_index = False  # the search finds all names
html_domain_indices = False
html_show_sphinx = False
