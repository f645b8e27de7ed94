/** Reasons on sampled rows, held against what real rows say of them on average (Python: `solve.shapley.real_rows`). */
import type { Bands } from "./bands";
import { firstRows, type MeanReasons } from "./rows";
import { columnMeans } from "./shapley";
import { matrix, type Matrix } from "./types";

const BEFOREHAND = 8;
const LEAST = 0.5;
const SURELY = 3;
const HIDDEN = 1.5;
const OF_SPREAD = 0.1;
/** Of their size: outputs that differ by less are the same, on another machine. */
const SAME = 1e-6;

/** Whether a model with these outputs for the first sampled rows is the one that was asked about, or it plus a constant. */
export function isAbout(bought: MeanReasons, outputs: Float64Array): boolean {
  const n = Math.min(outputs.length, bought.outputs.length);
  const apart = bought.outputs.subarray(0, n).map((own, r) => outputs[r] - own);
  const [low, high] = ends(bought.outputs);
  const [least, most] = ends(apart);
  return most - least <= SAME * Math.max(high - low, Math.abs(low), Math.abs(high));
}

/** The same for everybody: what is taken off values, the weights in that, its squared errors, the scale of other errors. */
export class Correction {
  readonly takenOff: Float64Array;
  readonly weights: Float64Array;
  readonly squares: Float64Array;
  readonly scale: number;
  private readonly perRow: Matrix;

  /**
   * @param bands - of as many rows as were kept of what was bought, or as values are means over if those are fewer.
   * @param about - by player the numbers of its columns.
   * @param nRows - how many rows values are means over.
   */
  constructor(
    bought: MeanReasons,
    private readonly bands: Bands,
    private readonly about: readonly (readonly number[])[],
    private readonly nRows: number,
  ) {
    const perRow = firstRows(bought.perRow, Math.min(nRows, bought.perRow.rows));
    this.perRow = perRow;
    const known = nRows === bought.perRow.rows;
    const expected = (known ? bought.expected : bands.standardErrors(perRow, about, nRows)).map((error) => error ** 2);
    const apart = columnMeans(perRow).map((mean, k) => mean - bought.means[k]);
    const noise = bought.stds.map((std) => std ** 2);
    const meanSquares = columnMeans(matrix(perRow.rows, perRow.columns, perRow.data.map((value) => value ** 2)));
    const beyond = (k: number, times: number): number => Math.max(apart[k] ** 2 - times ** 2 * noise[k] - expected[k], 0);
    const hidden = noise.map((square, k) => Math.min(HIDDEN * square, OF_SPREAD ** 2 * meanSquares[k]));
    this.weights = noise.map((square, k) => {
      const seen = expected[k] + beyond(k, SURELY);
      return Math.max(seen / (seen + square), hidden[k] / (hidden[k] + square));
    });
    let held = BEFOREHAND;
    for (let k = 0; k < apart.length; k++) held += apart[k] ** 2 / (expected[k] + noise[k]);
    this.scale = Math.max(held / (BEFOREHAND + apart.length), LEAST);
    const taken = takenByClip(bought, meanSquares);
    this.squares = this.weights.map((a, k) => a ** 2 * noise[k] + (1 - a) ** 2 * (beyond(k, 1) + hidden[k]) + taken[k]);
    this.takenOff = this.weights.map((a, k) => a * apart[k]);
  }

  /** Standard errors of corrected values: means over the rows of (rows, players), less the correction. */
  standardErrors(perRow: Matrix): Float64Array {
    const own = this.perRow;
    const rest = own.data.map((value, at) => perRow.data[at] - this.weights[at % own.columns] * value);
    const errors = this.bands.standardErrors(matrix(own.rows, own.columns, rest), this.about, this.nRows);
    return errors.map((error, k) => Math.sqrt(this.scale * error ** 2 + this.squares[k]));
  }
}

/** Squares of what the clip took from real rows beyond what it took from sampled ones. */
function takenByClip(bought: MeanReasons, meanSquares: Float64Array): Float64Array {
  const squares = meanSquares.map((square, k) => square / bought.sizes[k] ** 2);
  const all = squares.reduce((sum, square) => sum + square, 0);
  const more = Math.max(0, Math.max(0, bought.excess) ** 2 - bought.excessStd ** 2);
  return squares.map((square, k) => (more * bought.sizes[k] ** 2 * square) / Math.max(all, 1e-300));
}

function ends(numbers: Float64Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const number of numbers) {
    low = Math.min(low, number);
    high = Math.max(high, number);
  }
  return [low, high];
}
