"""Names of the task, the messages and their fields, which docs/flare-messages.md defines."""

from __future__ import annotations

from typing import Final

TASK: Final = "secagg"
"""Name of the only task of FLARE that a site performs; all other tasks are rejected."""
POLICY: Final = "secagg_policy"
"""Id of a site's `SitePolicy` among the site's components."""

# fields of the task and of a site's answer
STEP: Final = "step"
CONFIGURE: Final = "configure"
IDENTIFY: Final = "identify"
SIGN: Final = "sign"
TAKE_PART: Final = "take_part"
CONFIGURATION: Final = "configuration"
KEY: Final = "key"
KEYS: Final = "keys"
SIGNATURE: Final = "signature"
SIGNATURES: Final = "signatures"
TOPIC: Final = "topic"
TOKEN: Final = "token"  # noqa: S105, a field's name

# fields of a site's requests in a session, and of the replies
AFTER: Final = "after"
ANSWER: Final = "answer"
SESSION_TASK: Final = "task"
ENDED: Final = "ended"
CHECK: Final = "check"
DETAIL: Final = "detail"
