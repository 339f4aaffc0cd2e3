from __future__ import annotations

import logging
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("flwr") else ["test_*.py"]
# rounds with faults log their errors with tracebacks, a quarter of the processor time here
logging.getLogger("flwr.secagg").setLevel(logging.CRITICAL)
