/** Too little to tell: one rule for all results (Python: `results.verdict`). */

export const TWO_SIDED_95 = 1.959963984540054;
const TRUTH_AS_LARGE_AS_NOISE = 2;

export type Verdict = "clear" | "weak" | "mostly noise";

export interface Judgement {
  /** How many times larger than its noise what is shown is; infinite without noise. */
  readonly signal: number;
  readonly verdict: Verdict;
  readonly verdicts: readonly Verdict[];
  /** Of each, whether its band excludes 0 when all hold together. */
  readonly certain: readonly boolean[];
}

/** The rule, for numbers measured from 0 with their bands; `widening` makes all of them hold together. */
export function judge(values: Float64Array, lower: Float64Array, upper: Float64Array, widening: number): Judgement {
  const middles = lower.map((low, k) => Math.abs(low / 2 + upper[k] / 2));
  const halves = lower.map((low, k) => upper[k] / 2 - low / 2);
  const sizes = values.map(Math.abs);
  const largest = Math.max(...sizes, ...halves) || 1;
  const others = middleOfOthers(sizes);
  const noise = sumOfSquares(halves.map((half) => half / largest / TWO_SIDED_95));
  const energy = sumOfSquares(sizes.map((size) => size / largest));
  const certain = Array.from(middles, (middle, k) => middle > widening * halves[k]);
  const verdicts = Array.from(middles, (middle, k): Verdict => {
    if (middle - widening * halves[k] > others[k]) return "clear";
    return middle > halves[k] ? "weak" : "mostly noise";
  });
  const ratio = noise > 0 ? energy / noise : Infinity;
  const reasons = Number(certain.includes(true)) + Number(ratio >= TRUTH_AS_LARGE_AS_NOISE);
  return { signal: Math.sqrt(ratio), verdict: (["mostly noise", "weak", "clear"] as const)[reasons], verdicts, certain };
}

/** The plain sentence for columns that are mostly noise. */
export function tooLittle(judgement: Judgement): string {
  return (
    `There is too little data to tell at this price: what is shown is ${general(judgement.signal, 2)} times as large as its ` +
    "noise, and no column stands out of it, so nothing is ranked."
  );
}

/** A number as Python's format "g" writes it, with so many digits. */
export function general(number: number, digits: number): string {
  if (number === 0 || !Number.isFinite(number)) return number === Infinity ? "inf" : String(number);
  const [mantissa, exponent] = number.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const plain = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < digits) return plain(number.toFixed(digits - 1 - power));
  return `${plain(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** For each item the middle one of nothing and the sizes of the others; of two middle ones the smaller. */
function middleOfOthers(sizes: Float64Array): Float64Array {
  const order = Float64Array.from([0, ...sizes]).sort();
  const middle = Math.floor((sizes.length - 1) / 2);
  return sizes.map((size) => (size <= order[middle] ? order[Math.min(middle + 1, sizes.length)] : order[middle]));
}

function sumOfSquares(numbers: Float64Array): number {
  return numbers.reduce((sum, number) => sum + number ** 2, 0);
}
