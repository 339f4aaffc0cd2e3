from __future__ import annotations

import logging
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("flwr") else ["test_*.py"]
logging.getLogger("flwr.secagg").setLevel(logging.CRITICAL)  # nodes drop out on purpose
