// Reports of one-shot sums from a web page: docs/oneshot.md (O) and docs/protocol.md (P).
// Suite "x25519" only, by WebCrypto, in a page of HTTPS or of localhost.

const POLICY = { requireActive: false, minThreshold: 2, minClients: 3, corrupt: 0.2,
  colluders: null, maxLength: 2 ** 28, helpers: null, bounds: null };  // O §3.6
const PARAMETERS = "/v1/parameters";  // docs/http-binding.md

/** An error whose `check` is a name of O §12, "policy", "input" or a check of the server. */
export class ReportError extends Error {
  constructor(check, message) {
    super(message);
    this.check = check;
  }
}

const demand = (condition, check, message) => { if (!condition) throw new ReportError(check, message); };

// Bytes (P §1). Typed arrays have the byte order of the machine.
demand(new Uint8Array(Uint16Array.of(1).buffer)[0], "input", "the machine is big-endian");
export const hex = (data) => Array.from(data, (x) => x.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (x) => parseInt(x, 16));
const ascii = (text) => new TextEncoder().encode(text);
const zeros = (size) => new Uint8Array(size), same = (a, b) => hex(a) === hex(b);
function joined(...parts) {
  const out = zeros(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (out.set(part, at), at + part.length), 0);
  return out;
}

const number = (data) => data.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
const little = (value, size) =>
  Uint8Array.from({ length: size }, (_, i) => Number((BigInt(value) >> BigInt(8 * i)) & 255n));

// Keys of low order (P §5.1, §3.4), as numbers.
const P25519 = 2n ** 255n - 19n;
const low = (...keys) => [0n, 1n, P25519 - 1n, ...keys.map((key) => number(unhex(key)))];
const LOW_X25519 = low("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157");
const LOW_ED25519 = low("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a");

// Primitives. The platform's generator is the only source of entropy.
const sha256 = async (...parts) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));

async function hmac(key, ...parts) {
  const raw = key.length ? key : zeros(32), use = { name: "HMAC", hash: "SHA-256" };
  const made = await crypto.subtle.importKey("raw", raw, use, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, joined(...parts)));
}

async function expand(key, info, size) {
  let last = zeros(0), out = zeros(0);
  for (let i = 1; out.length < size; i++) {
    last = await hmac(key, last, info, Uint8Array.of(i));
    out = joined(out, last);
  }
  return out.slice(0, size);
}

async function encrypt(algorithm, key, data) {
  const made = await crypto.subtle.importKey("raw", key, algorithm.name, false, ["encrypt"]);
  return crypto.subtle.encrypt(algorithm, made, data);
}

// HPKE of RFC 9180 in base mode, for a single message and without aad (O §4.4).
async function seal(publicKey, info, content) {
  const pair = await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const peer = await crypto.subtle.importKey("raw", publicKey, "X25519", false, []);
  const agreement = crypto.subtle.deriveBits({ name: "X25519", public: peer }, pair.privateKey, 256);
  const [version, kem, suite] = ["HPKE-v1", "KEM\0\x20", "HPKE\0\x20\0\x01\0\x01"].map(ascii);
  const labelledExtract = (id, salt, label, data) => hmac(salt, version, id, ascii(label), data);
  const labelledExpand = (id, key, label, context, size) =>
    expand(key, joined(Uint8Array.of(0, size), version, id, ascii(label), context), size);
  const eae = await labelledExtract(kem, zeros(0), "eae_prk", new Uint8Array(await agreement));
  const shared = await labelledExpand(kem, eae, "shared_secret", joined(enc, publicKey), 32);
  const idHash = await labelledExtract(suite, zeros(0), "psk_id_hash", zeros(0));
  const context = joined(zeros(1), idHash, await labelledExtract(suite, zeros(0), "info_hash", info));
  const secret = await labelledExtract(suite, shared, "secret", zeros(0));
  const key = await labelledExpand(suite, secret, "key", context, 16);
  const iv = await labelledExpand(suite, secret, "base_nonce", context, 12);
  return joined(enc, new Uint8Array(await encrypt({ name: "AES-GCM", iv }, key, content)));
}

/** Parameters from their bytes (O §3.3); ReportError "version", "length" or "parameters". */
export async function decode(bytes) {
  const wrong = (condition, what) => demand(!condition, "parameters", `wrong parameters: ${what}`);
  let at = 0;
  function take(size) {
    demand(at + size <= bytes.length, "length", "the parameters are too short");
    at += size;
    return bytes.slice(at - size, at);
  }
  const integer = (size) => number(take(size));
  demand(take(1)[0] === 1, "version", "the version is not 1");
  const security = take(1)[0], suite = take(1)[0], t = take(1)[0], ell = take(1)[0];
  const n = Number(integer(4)), least = Number(integer(4)), d = integer(8), W = integer(8);
  const R = integer(8) + 1n, encoding = encodingOf(take(take(1)[0])), session = take(take(1)[0]);
  wrong(security > 1 || suite > 1, "security or suite is unknown");
  const keyOf = () => ({ hpke: take(suite ? 32 : 1216), ed25519: take(32) });
  const helpers = Array.from({ length: ell }, keyOf), places = helpers.map((_, j) => j + 1);
  const noise = at === bytes.length ? null : integer(8);
  demand(at === bytes.length, "length", "the parameters are too long");
  wrong(suite === 0, "the suite is hybrid, and WebCrypto has x25519 only");

  const active = security === 1, bits = BigInt((R - 1n).toString(2).length);
  const powerOfTwo = R === 1n << bits, e = d + (W ? 1n : 0n);
  wrong(n < 2 || n > 2 ** 20 || least < 2 || least > n, "n_clients or min_clients");
  wrong(d < 1n || d > 2n ** 31n || (e * bits + 7n) / 8n >= 2n ** 32n, "length");
  wrong(W > 2n ** 53n || session.length > 64 || (active && !session.length), "max_weight or session");
  wrong(R < 2n || (!powerOfTwo && R > 2n ** 62n), "modulus");
  wrong(encoding.most < 1n || encoding.most > 2n ** (encoding.signed ? 61n : 62n), "encoding");
  wrong(ell < 1 || ell > 16 || t < 1 || t > ell, "helpers or threshold");
  wrong(noise !== null && (noise < 1n || noise > 2n ** 48n), "noise");
  const seeds = subsets(places, t - 1);
  wrong(seeds.length > 256, "too many subsets of helpers");
  const held = places.map((j) => [...seeds.keys()].filter((i) => !seeds[i].includes(j)));
  const X = BigInt(n) * encoding.most * (W || 1n), p = noise ?? 0n;
  let nu = BigInt(Math.max(0, Math.floor(Number(p) * Math.sqrt(seeds.length) * 10 / 256) - 1));  // O §8.1
  while ((256n * nu) ** 2n < 100n * BigInt(seeds.length) * p * p) nu++;
  wrong(R < (encoding.signed ? 2n : 1n) * X + 2n * nu + 1n || X + nu >= 2n ** 63n, "modulus: no headroom");
  const unusable = (key, low) => key >= P25519 || low.includes(key);
  for (const { hpke, ed25519 } of helpers) {  // O §3.4
    wrong(unusable(number(hpke), LOW_X25519), "an HPKE key is not usable");
    wrong(unusable(number(ed25519) & (2n ** 255n - 1n), LOW_ED25519), "an Ed25519 key is not usable");
  }
  for (const kind of ["hpke", "ed25519"])
    wrong(new Set(helpers.map((one) => hex(one[kind]))).size < ell, "two helpers share a key");
  const digest = await sha256(ascii("secagg/1 one-shot parameters"), bytes);
  return { active, threshold: t, clients: n, minClients: least, length: Number(d), elements: Number(e),
    maxWeight: W || null, modulus: R, bits: Number(bits), powerOfTwo, encoding, session, helpers, noise,
    seeds: seeds.length, held, digest, bytes };
}

function encodingOf(bytes) {  // P §3.3
  const is = (name, size) => bytes.length === size && same(bytes.slice(0, name.length), ascii(name));
  if (is("integers", 16)) return { bytes, most: number(bytes.slice(8)), signed: false };
  demand(is("fixed point", 27), "parameters", "wrong parameters: the encoding is unknown");
  const clip = new DataView(bytes.buffer).getFloat64(11, true), f = Number(number(bytes.slice(19)));
  const largest = f <= 52 && clip <= 2 ** 61 ? clip * 2 ** f : 0;  // 0, an error, for NaN, too
  return { bytes, most: largest < 1 ? 0n : BigInt(Math.ceil(largest)), signed: true, clip, scale: 2 ** f };
}

const subsets = (all, size) =>  // in lexicographic order
  (size ? all.flatMap((j, at) => subsets(all.slice(at + 1), size - 1).map((rest) => [j, ...rest])) : [[]]);

async function checkPolicy(params, policy, endorsements) {  // O §3.6; a missing number meets no rule
  const need = (condition, why) => demand(condition, "policy", `the policy rejects this sum: ${why}`);
  const rule = { ...POLICY, ...policy };
  for (const [name, value] of Object.entries(rule)) need(name in POLICY && value !== undefined, name);
  need(params.active || rule.requireActive === false, "it is not active");
  need(params.threshold >= rule.minThreshold, `threshold ${params.threshold}`);
  need(params.minClients >= rule.minClients, `min_clients ${params.minClients}`);
  need(params.length <= rule.maxLength, `length ${params.length}`);
  const decimal = /^(\d)(?:\.(\d+))?(?:e(-\d+))?$/.exec(rule.corrupt);
  need(decimal && rule.corrupt < 1, `corrupt ${rule.corrupt}`);
  const [, whole, part = "", exponent = "0"] = decimal, unit = 10n ** BigInt(part.length - exponent);
  const corrupt = (BigInt(whole + part) * BigInt(params.clients) + unit - 1n) / unit;  // exact
  const colluders = rule.colluders ?? Number(corrupt);
  need(params.minClients >= colluders + 2, `${colluders} colluders, and min_clients ${params.minClients}`);
  const bounds = rule.bounds ?? { encoding: params.encoding.bytes, maxWeight: params.maxWeight };
  need(same(bounds.encoding, params.encoding.bytes), "its encoding");
  need(BigInt(bounds.maxWeight ?? 0) === (params.maxWeight ?? 0n), `max_weight ${params.maxWeight}`);
  need(Boolean(endorsements) === Boolean(rule.helpers), "endorsements come with known helpers");
  if (!rule.helpers) return;
  const statement = joined(ascii("secagg/1 one-shot endorsed"), params.digest);
  need(endorsements.length === params.helpers.length, "an endorsement of each helper is missing");
  for (const [j, { ed25519 }] of params.helpers.entries()) {
    need(rule.helpers.some((known) => same(known, ed25519)), `helper ${j + 1} is unknown`);
    const key = await crypto.subtle.importKey("raw", ed25519, "Ed25519", false, ["verify"]);
    const valid = await crypto.subtle.verify("Ed25519", key, endorsements[j], statement);
    need(valid, `helper ${j + 1} does not endorse it`);
  }
}

async function encoded(vector, weight, params, rounding) {  // P §4
  const { encoding, modulus, maxWeight, length, elements } = params;
  const input = (condition, why) => demand(condition, "input", why);
  input(vector.length === length, `the vector has ${vector.length} elements, not ${length}`);
  input((weight == null) === (maxWeight === null), "a weight is missing, or there is none in this sum");
  const natural = (x, most, what) => {
    const integer = typeof x === "bigint" || Number.isSafeInteger(x);
    input(integer && x >= 0 && x <= most, `${what} is not in range`);
    return BigInt(x);
  };
  const factor = natural(weight > maxWeight ? maxWeight : weight ?? 1, maxWeight ?? 1, "the weight");
  let quantise = (x) => natural(x, encoding.most, "an element");
  if (encoding.signed) {
    const { clip, scale } = encoding, tiny = vector instanceof Float32Array ? 2 ** -126 : 2 ** -1022;
    input(["nearest", "stochastic"].includes(rounding), "rounding is nearest or stochastic");
    const key = rounding === "stochastic" && crypto.getRandomValues(zeros(16));
    const words = key && new BigUint64Array(await stream(key, 0, 8 * length));
    quantise = (x, i) => {
      input(Number.isFinite(x), "an element is not finite");
      const y = Math.min(Math.max(Math.abs(x) < tiny ? 0 : x, -clip), clip) * scale;
      if (words) return BigInt(Math.floor(y) + (Number(words[i] >> 11n) < (y - Math.floor(y)) * 2 ** 53));
      const up = Math.round(y);  // ties go up
      return BigInt(up - y === 0.5 && up % 2 !== 0 ? up - 1 : up);
    };
  }
  return BigUint64Array.from({ length: elements }, (_, i) => {
    const value = (i < length ? factor * quantise(vector[i], i) : factor) % modulus;
    return value < 0n ? value + modulus : value;
  });
}

const counter = (domain) => joined(little(domain, 8).reverse(), zeros(8));
const stream = (key, domain, size) =>  // P §5.7
  encrypt({ name: "AES-CTR", counter: counter(domain), length: 64 }, key, zeros(size));

async function addMask(y, key, { modulus, bits, powerOfTwo }) {  // P §5.7
  const Words = powerOfTwo && bits <= 32 ? Uint32Array : BigUint64Array, least = 2n ** 64n % modulus;
  for (let domain = 0, left = [...y.keys()]; left.length; domain++) {
    const words = new Words(await stream(key, domain, Words.BYTES_PER_ELEMENT * y.length));
    left = left.filter((i) => {
      const word = BigInt(words[i]), product = word * modulus;
      if (!powerOfTwo && BigInt.asUintN(64, product) < least) return true;
      y[i] = (y[i] + (powerOfTwo ? word : product >> 64n)) % modulus;
      return false;
    });
  }
}

function packed(y, bits) {  // P §5.9
  const out = zeros(Math.ceil(y.length * bits / 8)), words = new Uint32Array(y.buffer);
  for (let i = 0, at = 0; i < y.length; i++)
    for (let j = 0; j < bits; j++, at++)
      out[Math.floor(at / 8)] |= (words[2 * i + (j >> 5)] >>> (j & 31) & 1) << (at % 8);
  return out;
}

/** The id of a client with a name (P §5.12). */
export async function clientId(name) {
  demand(name && name.isWellFormed(), "input", "the name is empty or not Unicode");
  return number((await sha256(ascii("secagg/2 client id"), ascii(name.normalize("NFC")))).slice(0, 8));
}

/** The report of a client (O §6.1): parameters from `decode`, `identity` an Ed25519 CryptoKeyPair.
 *  Zeros, and an `error`, take the place of numbers that the sum does not take. */
export async function report(vector, params, id, options = {}) {
  const { weight, identity, policy = {}, endorsements, rounding = "stochastic" } = options;
  demand(Array.isArray(vector) || ArrayBuffer.isView(vector), "input", "the vector is no array");
  demand(id >= 0 && id < 2n ** 64n, "input", "the id is not in [0, 2^64)");
  demand(Boolean(identity) === params.active, "input", "an identity is missing, or this sum takes none");
  await checkPolicy(params, policy, endorsements);
  const sign = async (data) =>
    new Uint8Array(identity ? await crypto.subtle.sign("Ed25519", identity.privateKey, data) : 0);
  const u = little(id, 8), fresh = crypto.getRandomValues(zeros(32)), seeds = [], commitments = [];
  const secret = identity ? await sha256(await sign(ascii("secagg/2 hedged identity"))) : zeros(0);
  const about = await sha256(ascii("secagg/1 one-shot seeds"), params.digest, u);  // O §4.1
  const drawn = await expand(await hmac(secret, fresh), joined(about, zeros(8)), 16 * params.seeds);
  let error;  // told later: whether a client reports must not depend on its numbers
  const y = await encoded(vector, weight, params, rounding).catch(({ message }) => {
    error = new ReportError("input", `${message}; zeros are in the report`);
    return encoded(zeros(params.length), params.maxWeight && 0, params, rounding);
  });
  for (let i = 1; i <= params.seeds; i++) {  // O §4.2
    const seed = drawn.slice(16 * i - 16, 16 * i), place = joined(u, little(i, 2));
    const info = joined(ascii("secagg/1 one-shot mask"), place);
    await addMask(y, await expand(await hmac(params.digest, seed), info, 16), params);
    commitments.push(await sha256(ascii("secagg/1 one-shot seed"), params.digest, place, seed));
    seeds.push(seed);
  }
  const content = joined(u, ...commitments), boxes = [];
  const head = joined(ascii("secagg/1 one-shot report"), params.digest, content);
  for (const [j, { hpke }] of params.helpers.entries()) {
    const info = joined(ascii("secagg/1 one-shot box"), await sha256(head, little(j + 1, 2)));
    boxes.push(await seal(hpke, info, joined(...params.held[j].map((i) => seeds[i]))));
  }
  const start = joined(Uint8Array.of(1, 1), params.digest, content);
  return Object.assign(joined(start, ...boxes, await sign(head), packed(y, params.bits)), { error });
}

/** The parameters that a collection offers, and the endorsements of their helpers. */
export async function offer(url) {
  const found = await (await request(`${url}${PARAMETERS}`)).json();
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return { params: await decode(bytes(found.parameters)), endorsements: found.endorsements.map(bytes) };
}

/** Send a report, the same bytes until the collection has stored them; then throw its `error`. */
export async function send(url, params, data) {
  await request(`${url}${PARAMETERS}/${hex(params.digest)}/reports`, { method: "POST", body: data });
  if (data.error) throw data.error;
}

async function request(address, options) {
  for (let pause = 0.1, end = Date.now() + 600_000; ; pause = Math.min(2 * pause, 10)) {
    const common = { credentials: "omit", redirect: "error", signal: AbortSignal.timeout(60_000) };
    const response = await fetch(address, { ...common, ...options }).catch(() => null);
    if (response?.ok) return response;
    const problem = await response?.json().catch(() => null);
    const again = !response || [408, 429, 500, 502, 503, 504].includes(response.status);
    const { check, detail } = problem ?? { check: "network", detail: `${address} does not answer` };
    demand(again && Date.now() < end, check, detail);
    const seconds = Number(response?.headers.get("retry-after") ?? 0) + pause * (1 + Math.random()) / 2;
    await new Promise((done) => setTimeout(done, 1000 * seconds));
  }
}
