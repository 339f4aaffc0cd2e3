// Driver of examples/browser/report.js in Node: a job in JSON on stdin, its result on stdout.
// Draws of a job take the place of the platform's generators, which the module always calls.

import { readFileSync } from "node:fs";

const { clientId, decode, hex, report, unhex } = await import(process.argv[2]);
const PRIVATE = { Ed25519: "302e020100300506032b657004220420", X25519: "302e020100300506032b656e04220420" };

async function pairOf(algorithm, secret, uses) {
  const data = unhex(PRIVATE[algorithm] + secret);
  const privateKey = await crypto.subtle.importKey("pkcs8", data, algorithm, true, uses);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  const raw = Buffer.from(x, "base64url");
  return { privateKey, publicKey: await crypto.subtle.importKey("raw", raw, algorithm, true, []) };
}

function feed({ draws, ephemerals }) {
  crypto.getRandomValues = (out) => {
    const drawn = unhex(draws.shift());
    if (drawn.length !== out.length) throw new Error(`${out.length} bytes are drawn, not ${drawn.length}`);
    return (out.set(drawn), out);
  };
  crypto.subtle.generateKey = (algorithm) => pairOf(algorithm, ephemerals.shift(), ["deriveBits"]);
}

const vectorOf = ({ vector, array }) => {
  const numbers = vector.map((x) => (typeof x === "string" ? BigInt(x) : x));
  if (array === "none") return numbers.join();
  return array === "f32" ? Float32Array.from(numbers) : numbers;
};

async function run(job) {
  if (job.name !== undefined) return String(await clientId(job.name));
  if (job.draws) feed(job);
  const params = await decode(unhex(job.params));
  if (job.vector === undefined) return hex(params.digest);
  const options = { weight: job.weight, rounding: job.rounding, policy: { ...job.policy } };
  if (job.identity) options.identity = await pairOf("Ed25519", job.identity, ["sign"]);
  if (job.helpers) options.policy.helpers = job.helpers.map(unhex);
  if (job.unset) options.policy[job.unset] = undefined;
  if (job.bounds) options.policy.bounds = { ...job.bounds, encoding: unhex(job.bounds.encoding) };
  if (job.endorsements) options.endorsements = job.endorsements.map(unhex);
  return report(vectorOf(job), params, BigInt(job.id), options);
}

const found = [];
for (const job of JSON.parse(readFileSync(0, "utf8")))
  found.push(await run(job).then(
    (made) => ({ value: typeof made === "string" ? made : hex(made), check: made.error?.check }),
    (error) => ({ check: error.check, why: String(error) })));
console.log(JSON.stringify(found));
