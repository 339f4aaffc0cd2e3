"""A table whose module never ends its import."""

import os
from pathlib import Path
from threading import Event

Path(os.environ["FAKE_TRACE"]).touch()
Event().wait()
