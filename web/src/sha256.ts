/**
 * SHA-256 where the browser gives none: over plain http, and in the Worker of a sandboxed frame, `crypto.subtle` is missing.
 *
 * FIPS 180-4. The constants are the first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the
 * square roots of the first 8; they are computed once, exactly, from whole numbers.
 */

/** Gives `crypto.subtle.digest` for SHA-256 where there is none; where there is one, it stays. */
export function ensureDigest(): void {
  if (crypto.subtle !== undefined) return;
  const digest = (_: string, content: Uint8Array): Promise<ArrayBuffer> => Promise.resolve(sha256(content));
  Object.defineProperty(crypto, "subtle", { value: { digest } });
}

export function sha256(content: Uint8Array): ArrayBuffer {
  const length = content.length;
  const padded = new Uint8Array(((length + 8) >> 6) * 64 + 64);
  padded.set(content);
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(padded.length - 4, (length << 3) >>> 0);
  const hash = Uint32Array.from(SQUARE_ROOTS);
  const words = new Uint32Array(64);
  for (let start = 0; start < padded.length; start += 64) block(view, start, words, hash);
  const made = new DataView(new ArrayBuffer(32));
  hash.forEach((word, k) => made.setUint32(4 * k, word));
  return made.buffer;
}

function block(view: DataView, start: number, words: Uint32Array, hash: Uint32Array): void {
  for (let t = 0; t < 16; t++) words[t] = view.getUint32(start + 4 * t);
  for (let t = 16; t < 64; t++) {
    const [x, y] = [words[t - 15], words[t - 2]];
    const small = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
    words[t] = words[t - 16] + small + words[t - 7] + (turned(y, 17) ^ turned(y, 19) ^ (y >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = hash;
  for (let t = 0; t < 64; t++) {
    const first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + CUBE_ROOTS[t] + words[t]) | 0;
    const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, k) => (hash[k] += word));
}

function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

/** The whole part of the n-th root of p * 2^(32 n), without its own whole part: 32 bits of the fraction of the root. */
function rootBits(prime: number, n: 2n | 3n): number {
  const target = BigInt(prime) << (32n * n);
  let [low, high] = [0n, 1n << 40n];
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** n <= target) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

const PRIMES: number[] = [];
for (let k = 2; PRIMES.length < 64; k++) if (PRIMES.every((prime) => k % prime)) PRIMES.push(k);
const CUBE_ROOTS = Uint32Array.from(PRIMES, (prime) => rootBits(prime, 3n));
const SQUARE_ROOTS = Uint32Array.from(PRIMES.slice(0, 8), (prime) => rootBits(prime, 2n));
