"""The door of a web page: clients that report by examples/browser/report.js, in Node."""

from __future__ import annotations

import json
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from contextlib import suppress
from typing import Any

from lying.collector import CollectorDoor
from report_page import FOLDER, NODE, seed_of

SOURCE = (FOLDER / "report.js").read_text()
"""The module, which mends change."""
_DRIVER = """
import { createInterface } from "node:readline";
import { webcrypto } from "node:crypto";
globalThis.crypto ??= webcrypto;
const texts = (name, x) => typeof x === "bigint" ? String(x) : x;
let js, offered;
const steps = {
  load: async ({ source }) => {
    js = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  },
  offer: async ({ url }) => {
    offered = null;
    offered = await js.offer(url);
    return offered.params;
  },
  report: async ({ url, vector, weight, id, seed, policy }) => {
    const { params, endorsements } = offered, options = { weight, policy, endorsements };
    policy.helpers = policy.helpers.map(js.unhex);
    policy.bounds.encoding = js.unhex(policy.bounds.encoding);
    if (seed) {
      const der = js.unhex(`302e020100300506032b657004220420${seed}`);
      const key = await crypto.subtle.importKey("pkcs8", der, "Ed25519", false, ["sign"]);
      options.identity = { privateKey: key };
    }
    const data = await js.report(vector.map(Number), params, BigInt(id), options);
    await js.send(url, params, data);
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const found = await steps[job.step](job).then(
    (value) => ({ value }), (error) => ({ error: String(error) }));
  console.log(JSON.stringify(found, texts));
}
"""


class PageFailed(Exception):
    """A step of the page has failed."""


class BrowserDoor(CollectorDoor):
    """Clients of a collection, in web pages of their own application.

    Parameters
    ----------
    keyed : bool
        Give the clients identities.
    """

    what = "report.js"
    budgeted = False  # a page has no ledger
    _node: Process | None = None

    async def _run(self, step: str, **job: Any) -> Any:
        """Return the value of a step, with integers as texts."""
        assert self._node is not None
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(json.dumps({"step": step, **job}).encode() + b"\n")
        found = json.loads(await self._node.stdout.readline())
        if "error" in found:
            raise PageFailed(found["error"])
        return found.get("value")

    async def _ask(self, u: int) -> None:
        if self._node is None:
            assert NODE is not None
            program = "--input-type=module", "--eval", _DRIVER
            limit = 1 << 26
            self._node = await create_subprocess_exec(
                NODE, *program, stdin=PIPE, stdout=PIPE, limit=limit
            )
            await self._run("load", source=SOURCE)
        bounds = self._policy.bounds
        assert bounds is not None
        policy = {
            "requireActive": self.keyed,
            "helpers": [key.hex() for key in self.trusted],
            "bounds": {
                "encoding": bounds.encoding.canonical().hex(),
                "maxWeight": bounds.max_weight,
            },
        }
        with suppress(PageFailed):
            params = await self._run("offer", url=self._url)
            private = self.training.train(u, {"params": params})
            await self._run(
                "report",
                url=self._url,
                vector=[repr(float(x)).replace("inf", "Infinity") for x in private.trained],
                weight=private.told_weight,
                id=str(u),
                seed=seed_of(u) if self.keyed else None,
                policy=policy,
            )

    def close(self) -> None:
        if self._node is not None:
            self._runner.run(self._ended(self._node))
        super().close()

    async def _ended(self, node: Process) -> None:
        assert node.stdin is not None
        node.stdin.close()
        await node.wait()
