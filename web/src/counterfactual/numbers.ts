/** What the search takes from NumPy: the same order of additions, the same order of equals. */

/** The sum of numbers, added up as NumPy adds up a row: the last bits decide which of two answers is the nearer. */
export function pairwiseSum(numbers: Float64Array, start = 0, count = numbers.length): number {
  if (count < 8) {
    let sum = 0;
    for (let k = start; k < start + count; k++) sum += numbers[k];
    return sum;
  }
  if (count > 128) {
    let half = count >> 1;
    half -= half % 8;
    return pairwiseSum(numbers, start, half) + pairwiseSum(numbers, start + half, count - half);
  }
  const part = Float64Array.from(numbers.subarray(start, start + 8));
  const whole = count - (count % 8);
  for (let k = 8; k < whole; k++) part[k % 8] += numbers[start + k];
  let sum = part[0] + part[1] + (part[2] + part[3]) + (part[4] + part[5] + (part[6] + part[7]));
  for (let k = whole; k < count; k++) sum += numbers[start + k];
  return sum;
}

/** Indices in the order of their numbers; equals keep theirs (NumPy: argsort, kind="stable"). */
export function stableOrder(among: readonly number[], by: (index: number) => number): number[] {
  const keys = new Map(among.map((index) => [index, by(index)]));
  return [...among].sort((one, other) => keys.get(one)! - keys.get(other)!);
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, k) => k);
}

export function sameNumbers(one: Float64Array, other: Float64Array): boolean {
  for (let k = 0; k < one.length; k++) if (one[k] !== other[k]) return false;
  return true;
}

/** `count` evenly spaced numbers with both ends, as NumPy's linspace computes them. */
export function evenlySpaced(low: number, high: number, count: number): Float64Array {
  const step = (high - low) / (count - 1);
  const made = Float64Array.from({ length: count }, (_, k) => k * step + low);
  made[count - 1] = high;
  return made;
}

/** Uniform draws from [0, 1): mulberry32. Not NumPy's generator. */
export function uniformDraws(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
