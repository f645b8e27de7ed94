/**
 * Interventional Shapley values of a point on background rows (Python: `solve.shapley.on_rows`).
 *
 * Every row has an order of the players of its own, and its reverse. With D_s the output after the first s exchanges minus
 * that after all the others, the player at place s is given (D_s - D_{s-1}) / 2, which telescopes: whatever the order, the
 * values of a row add up to f(point) - f(row). A hybrid is known by two 32-bit sums of words, one per player's content, so
 * that along a chain both are running sums; hybrids that are met twice are asked once.
 */
import { matrix, rowOf, type Matrix, type Predict } from "./types";

/** Shapley values of one point, row by row of its background. */
export interface RowValues {
  /** By player the mean over rows; they sum to `output` - `base`. */
  readonly values: Float64Array;
  /** (rows, players): they sum to `output` - the row's output. */
  readonly perRow: Matrix;
  readonly rowOutputs: Float64Array;
  readonly output: number;
  readonly base: number;
  /** How many hybrids the model was asked about. */
  readonly asked: number;
}

/** Background rows with their orders: what of Shapley values is the same for everybody. */
export class Background {
  private readonly words: Uint32Array;
  private outputs: Promise<Float64Array> | null = null;

  /**
   * @param rows - raw, complete.
   * @param players - by player the numbers of its columns.
   * @param orders - (at least as many rows, players): the order of each row.
   */
  constructor(
    readonly rows: Matrix,
    readonly players: readonly (readonly number[])[],
    private readonly orders: Matrix,
    private readonly predict: Predict,
  ) {
    if (orders.rows < rows.rows) throw new Error(`there are orders for ${orders.rows} rows, and ${rows.rows} rows were asked for`);
    this.words = new Uint32Array(rows.rows * 2 * players.length);
    for (let r = 0; r < rows.rows; r++) {
      wordsOf(rowOf(rows, r), players, this.words.subarray(2 * r * players.length, 2 * (r + 1) * players.length));
    }
  }

  /** The model's outputs for the rows; asked once. */
  rowOutputs(): Promise<Float64Array> {
    this.outputs ??= this.predict(this.rows);
    return this.outputs;
  }

  async explain(point: Float64Array): Promise<RowValues> {
    const nRows = this.rows.rows;
    const nPlayers = this.players.length;
    const steps = nPlayers - 1;
    const rowOutputs = await this.rowOutputs();
    const [hybrids, which] = this.hybrids(point);
    // The point itself is asked together with the hybrids: a call has a price of its own.
    const asked = await this.predict(hybrids);
    const output = asked[0];
    const met = (k: number): number => (k <= nRows && k > 0 ? rowOutputs[k - 1] : asked[k === 0 ? 0 : k - nRows]);
    const perRow = matrix(nRows, nPlayers);
    for (let r = 0; r < nRows; r++) {
      const whole = output - rowOutputs[r];
      let before = -whole;
      for (let s = 0; s < nPlayers; s++) {
        const at = 2 * (r * steps + s);
        const after = s < steps ? met(which[at]) - met(which[at + 1]) : whole;
        perRow.data[r * nPlayers + this.orders.data[r * nPlayers + s]] = (after - before) / 2;
        before = after;
      }
    }
    return { values: columnMeans(perRow), perRow, rowOutputs, output, base: mean(rowOutputs), asked: hybrids.rows - 1 };
  }

  /**
   * The point and all hybrids that are neither it nor a row, each once; and for every row and step the numbers of the forward
   * and the reverse hybrid: 0 is the point, 1 to nRows are the rows, then come the hybrids.
   */
  private hybrids(point: Float64Array): [Matrix, Int32Array] {
    const { rows, orders } = this;
    const nRows = rows.rows;
    const nPlayers = this.players.length;
    const steps = nPlayers - 1;
    const pointWords = wordsOf(point, this.players, new Uint32Array(2 * nPlayers));
    const [pointLow, pointHigh] = sumOf(pointWords);
    const known = new Known(1 + nRows + 2 * nRows * steps);
    known.numberOf(pointLow, pointHigh);
    for (let r = 0; r < nRows; r++) known.add(...sumOf(this.words.subarray(2 * r * nPlayers, 2 * (r + 1) * nPlayers)), r + 1);
    known.next = nRows + 1;
    const which = new Int32Array(2 * nRows * steps);
    const made = new Float64Array((1 + 2 * nRows * steps) * rows.columns);
    made.set(point);
    const forward = new Float64Array(rows.columns);
    const reverse = new Float64Array(rows.columns);
    for (let r = 0; r < nRows; r++) {
      const row = rowOf(rows, r);
      const rowWords = this.words.subarray(2 * r * nPlayers, 2 * (r + 1) * nPlayers);
      let [low, high] = sumOf(rowWords);
      let [backLow, backHigh] = [pointLow, pointHigh];
      forward.set(row);
      reverse.set(point);
      for (let s = 0; s < steps; s++) {
        const player = orders.data[r * nPlayers + s];
        const changeLow = pointWords[2 * player] - rowWords[2 * player];
        const changeHigh = pointWords[2 * player + 1] - rowWords[2 * player + 1];
        low = (low + changeLow) >>> 0;
        high = (high + changeHigh) >>> 0;
        backLow = (backLow - changeLow) >>> 0;
        backHigh = (backHigh - changeHigh) >>> 0;
        for (const column of this.players[player]) {
          forward[column] = point[column];
          reverse[column] = row[column];
        }
        const at = 2 * (r * steps + s);
        const before = known.next;
        which[at] = known.numberOf(low, high);
        if (known.next > before) made.set(forward, (which[at] - nRows) * rows.columns);
        const between = known.next;
        which[at + 1] = known.numberOf(backLow, backHigh);
        if (known.next > between) made.set(reverse, (which[at + 1] - nRows) * rows.columns);
      }
    }
    const count = known.next - nRows;
    return [matrix(count, rows.columns, made.subarray(0, count * rows.columns)), which];
  }
}

/** Numbers by a pair of 32-bit words: a hash table with open addresses. */
class Known {
  next = 0;
  private readonly mask: number;
  private readonly lows: Uint32Array;
  private readonly highs: Uint32Array;
  private readonly numbers: Int32Array;

  constructor(most: number) {
    const size = 2 ** Math.ceil(Math.log2(2 * most));
    this.mask = size - 1;
    this.lows = new Uint32Array(size);
    this.highs = new Uint32Array(size);
    this.numbers = new Int32Array(size).fill(-1);
  }

  /** The number of these words; the next one where they are new. */
  numberOf(low: number, high: number): number {
    return this.add(low, high, this.next);
  }

  /** The number of these words; the given one where they are new. */
  add(low: number, high: number, number: number): number {
    let at = (low ^ (high >>> 7)) & this.mask;
    while (this.numbers[at] >= 0) {
      if (this.lows[at] === low && this.highs[at] === high) return this.numbers[at];
      at = (at + 1) & this.mask;
    }
    this.lows[at] = low;
    this.highs[at] = high;
    this.numbers[at] = number;
    this.next = Math.max(this.next, number + 1);
    return number;
  }
}

const bits = new DataView(new ArrayBuffer(8));

/** Two words for what each player has in a row. */
function wordsOf(row: Float64Array, players: readonly (readonly number[])[], out: Uint32Array): Uint32Array {
  for (const [player, columns] of players.entries()) {
    let [low, high] = [0, 0];
    for (const column of columns) {
      bits.setFloat64(0, row[column] + 0); // adding 0 gives -0 the bits of 0
      const [a, b] = [bits.getUint32(0), bits.getUint32(4)];
      low += mixed(mixed(a ^ Math.imul(column + 1, 0x9e3779b9)) ^ b);
      high += mixed(mixed(b ^ Math.imul(column + 1, 0x85ebca77)) + Math.imul(a, 0x27d4eb2f));
    }
    out[2 * player] = low;
    out[2 * player + 1] = high;
  }
  return out;
}

function sumOf(words: Uint32Array): [number, number] {
  let [low, high] = [0, 0];
  for (let k = 0; k < words.length; k += 2) {
    low = (low + words[k]) >>> 0;
    high = (high + words[k + 1]) >>> 0;
  }
  return [low, high];
}

/** The finaliser of MurmurHash3. */
function mixed(word: number): number {
  let made = word ^ (word >>> 16);
  made = Math.imul(made, 0x85ebca6b);
  made = Math.imul(made ^ (made >>> 13), 0xc2b2ae35);
  return (made ^ (made >>> 16)) >>> 0;
}

export function mean(numbers: Float64Array): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum / numbers.length;
}

/** Means over the rows of a matrix. */
export function columnMeans(of: Matrix): Float64Array {
  const sums = new Float64Array(of.columns);
  for (let at = 0; at < of.data.length; ) for (let k = 0; k < of.columns; k++) sums[k] += of.data[at++];
  return sums.map((sum) => sum / of.rows);
}
