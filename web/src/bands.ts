/**
 * How far means over sampled rows may be off (Python: `PrivateRows.standard_errors`, `solve.rows.replicates`,
 * `solve.rows.left_out`; the reasons stand there). What does not depend on what is averaged is computed once for a number of
 * rows: strata, the pseudo-inverse of their products, groups, and the order of values inside bins.
 *
 * Two sums are computed otherwise than in Python, and are the same. The squares of all contrasts of a table are the squares
 * of the table less the means of its rows and columns (contrasts are an orthonormal basis of just that). So what linked
 * tables and hidden pairs add needs the sums of cells only, and no matrix over pairs of rows.
 */
import { pseudoInverse } from "./least_squares";
import { binOf, type Prepared, type StoredRows, type Table } from "./rows";
import { columnMeans } from "./shapley";
import { matrix, type Matrix } from "./types";

const MOST_LEVERAGE = 0.95;
const STRETCH = 4;
const STANDS_OUT = 2;
const MOST_STRATA = 16;
const ROWS_PER_STRATUM = 4;
const DRAWN_EVENLY = 256;
const UNEVEN = 0.25;
const STRUCTURE = 0.5;
const MOST_GROUPS = 6;
const DEPENDENCE = 0.15;
const MOST_FACTOR = 3;
const MOST_COLUMNS = 200;

/** A column's strata: by bin the stratum, and which columns of the design it has. */
interface Strata {
  readonly ofBin: Int32Array;
  /** Of each stratum its design column, -1 where it has none: the first that occurs, and those that do not. */
  readonly designColumn: Int32Array;
  /** Strata that no row of the sample is in. */
  readonly unsampled: number;
}

/** Rows in the order of a column's values, where several values share a bin, cut into stretches of bins. */
interface Inside {
  readonly order: Int32Array;
  /** Where each stretch starts in it; one more at the end. */
  readonly starts: Int32Array;
}

/** Two columns' cells: of every row its cell, and what the sum of a cell is divided by. */
interface Cells {
  readonly ofRow: Int32Array;
  readonly rows: number;
  readonly columns: number;
  readonly divisors: Float64Array;
}

export class Bands {
  private readonly bins: Int32Array[];
  private readonly strata: Strata[];
  private readonly design: Int32Array[];
  private readonly inverse: Float64Array;
  private readonly width: number;
  private readonly alone: Float64Array;
  private readonly tilt: Float64Array;
  private readonly linked: Cells[];
  private readonly hidden: Cells[];
  private readonly hiddenDiagonal: Float64Array;
  private readonly inside: Inside[];

  /** @param nRows - of the first stored rows, over how many means are given. */
  constructor(
    private readonly stored: StoredRows,
    private readonly prepared: Prepared,
    readonly nRows: number,
  ) {
    const { sampled, bins } = stored;
    this.bins = bins.map((cut, j) => Int32Array.from({ length: nRows }, (_, r) => binOf(cut, sampled.data[r * sampled.columns + j])));
    const most = Math.min(MOST_STRATA, Math.max(1, Math.floor(nRows / (ROWS_PER_STRATUM * bins.length))));
    let next = 1; // column 0 of the design is the constant
    this.strata = bins.map((cut, j) => {
      const ofBin = groupsOf(prepared.shares[j], cut.edges !== null, most, cut.codes.length);
      const nStrata = Math.max(...ofBin) + 1;
      const occurs = new Array<boolean>(nStrata).fill(false);
      for (const bin of this.bins[j]) occurs[ofBin[bin]] = true;
      const first = occurs.indexOf(true);
      const designColumn = Int32Array.from(occurs, (is, s) => (is && s !== first ? next++ : -1));
      return { ofBin, designColumn, unsampled: occurs.filter((is) => !is).length };
    });
    this.width = next;
    this.design = Array.from({ length: nRows }, (_, r) =>
      Int32Array.from([0, ...this.strata.map((s, j) => s.designColumn[s.ofBin[this.bins[j][r]]]).filter((k) => k >= 0)]),
    );
    this.inverse = pseudoInverse(this.products(), next);
    this.alone = Float64Array.from(this.design, (columns) => {
      let leverage = 0;
      for (const i of columns) for (const j of columns) leverage += this.inverse[i * next + j];
      return 1 - Math.min(leverage, MOST_LEVERAGE);
    });
    this.tilt = this.tiltOfWeights();
    this.linked = prepared.tables.map((table) => this.linkedCells(table));
    [this.hidden, this.hiddenDiagonal] = this.hiddenCells();
    this.inside = bins.flatMap((_, j) => this.insideBins(j));
  }

  /**
   * Standard errors of the means over rows of (rows, numbers).
   *
   * @param about - by number the columns that it is about.
   * @param drawn - how many rows the means are over, where there are more than these.
   */
  standardErrors(perRow: Matrix, about: readonly (readonly number[])[], drawn = perRow.rows): Float64Array {
    if (perRow.rows !== this.nRows) throw new Error(`these bands are of ${this.nRows} rows, and ${perRow.rows} were given`);
    const means = columnMeans(perRow);
    const squares = this.countsAndRows(perRow, about, drawn);
    const centred = matrix(perRow.rows, perRow.columns);
    for (let at = 0; at < centred.data.length; at++) centred.data[at] = perRow.data[at] - means[at % perRow.columns];
    this.addLeftOut(centred, squares);
    this.addLinked(centred, squares);
    this.addHidden(centred, squares);
    for (const inside of this.inside) this.addInside(perRow, inside, squares);
    // Where the noise on one count is half of the rows nothing is known, and a mean is off by all of itself.
    const drowned = this.stored.countsSigma >= this.prepared.total / 2;
    return squares.map((square, k) => (drowned ? Math.max(Math.sqrt(square), Math.abs(means[k])) : Math.sqrt(square)));
  }

  // --- counts, choice of rows, structure (errors_of) -------------------------------------------------------------------------

  private products(): Float64Array {
    const made = new Float64Array(this.width * this.width);
    for (const columns of this.design) for (const i of columns) for (const j of columns) made[i * this.width + j]++;
    return made;
  }

  private countsAndRows(perRow: Matrix, about: readonly (readonly number[])[], drawn: number): Float64Array {
    const { nRows, width } = this;
    const { total } = this.prepared;
    const n = perRow.columns;
    const noise = this.stored.countsSigma / total;
    const effects = this.fitted(perRow);
    const rest = new Float64Array(n);
    let [together, all] = [0, 0];
    for (let r = 0; r < nRows; r++) {
      let sum = 0;
      for (let k = 0; k < n; k++) {
        const value = perRow.data[r * n + k];
        let fit = 0;
        for (const column of this.design[r]) fit += effects[column * n + k];
        rest[k] += ((value - fit) / this.alone[r]) ** 2;
        sum += value;
        all += value ** 2;
      }
      together += sum ** 2;
    }
    const share = 1 / drawn + STRUCTURE / nRows + hiddenShare(this.strata.length, noise) + 1 / total;
    const oneMore = together / nRows / nRows ** 2;
    const swallowed = (noise ** 2 * all) / (nRows * n);
    const squares = rest.map((sum, k) => {
      let unsampled = 0;
      for (const column of about[k]) unsampled += this.strata[column].unsampled;
      return (sum / nRows) * share + oneMore + swallowed * unsampled;
    });
    if (width > 0) for (let j = 0; j < this.strata.length; j++) this.addCounts(j, effects, n, drawn, squares);
    return squares;
  }

  /** Effects (design columns, numbers): least squares of smallest norm. */
  private fitted(perRow: Matrix): Float64Array {
    const { width } = this;
    const n = perRow.columns;
    const sums = new Float64Array(width * n);
    for (let r = 0; r < this.nRows; r++) {
      for (const column of this.design[r]) for (let k = 0; k < n; k++) sums[column * n + k] += perRow.data[r * n + k];
    }
    const effects = new Float64Array(width * n);
    for (let i = 0; i < width; i++) {
      for (let j = 0; j < width; j++) {
        const weight = this.inverse[i * width + j];
        for (let k = 0; k < n; k++) effects[i * n + k] += weight * sums[j * n + k];
      }
    }
    return effects;
  }

  /** What the noise of one column's counts, and the uneven part of its rows, add. */
  private addCounts(j: number, effects: Float64Array, n: number, drawn: number, squares: Float64Array): void {
    const { total } = this.prepared;
    const { ofBin, designColumn } = this.strata[j];
    const shares = this.prepared.shares[j];
    const nStrata = designColumn.length;
    const drawnRows = new Float64Array(nStrata);
    for (const [bin, share] of shares.entries()) drawnRows[ofBin[bin]] += share;
    for (let k = 0; k < n; k++) {
      const effect = Float64Array.from(designColumn, (column) => (column < 0 ? 0 : effects[column * n + k]));
      let middle = 0;
      for (const [bin, share] of shares.entries()) middle += share * effect[ofBin[bin]];
      for (let s = 0; s < nStrata; s++) effect[s] -= middle;
      const [noise, apart] = this.ofCounts(j, effect);
      squares[k] += Math.max(this.stored.countsSigma ** 2 * noise, apart ** 2) / total ** 2;
      let uneven = 0;
      for (let s = 0; s < nStrata; s++) uneven += Math.min(DRAWN_EVENLY * drawnRows[s], UNEVEN) * effect[s] ** 2;
      squares[k] += uneven / (DRAWN_EVENLY * drawn);
    }
  }

  /** Of the sum of counts times an effect: its variance in units of one count's; how far it is from what was fitted. */
  private ofCounts(j: number, effect: Float64Array): [number, number] {
    const { total } = this.prepared;
    const { ofBin } = this.strata[j];
    const shares = this.prepared.shares[j];
    const counts = this.stored.counts[j];
    const blockCounts = this.stored.blockCounts[j];
    let [noise, apart] = [0, 0];
    if (blockCounts.length === 0) {
      for (let bin = 0; bin < shares.length; bin++) {
        noise += effect[ofBin[bin]] ** 2;
        apart += (counts[bin] - total * shares[bin]) * effect[ofBin[bin]];
      }
      return [noise, apart];
    }
    const blocks = this.prepared.blocks[j];
    const [sizes, sums, expected, inBins] = Array.from({ length: 4 }, () => new Float64Array(blockCounts.length));
    for (let bin = 0; bin < shares.length; bin++) {
      sizes[blocks[bin]]++;
      sums[blocks[bin]] += effect[ofBin[bin]];
      expected[blocks[bin]] += total * shares[bin];
      inBins[blocks[bin]] += counts[bin] - total * shares[bin];
    }
    for (let bin = 0; bin < shares.length; bin++) {
      const block = blocks[bin];
      const inside = effect[ofBin[bin]] - sums[block] / sizes[block];
      noise += inside ** 2;
      apart += (counts[bin] - total * shares[bin]) * inside;
    }
    for (let block = 0; block < sizes.length; block++) {
      const [size, middle] = [sizes[block], sums[block] / sizes[block]];
      // A block is counted by itself and by its bins: the mean of both, by their precision.
      const together = (blockCounts[block] - expected[block] + inBins[block] / size) / (1 + 1 / size);
      noise += (size / (1 + size)) * middle ** 2;
      apart += together * middle;
    }
    return [noise, apart];
  }

  // --- pairs of columns (table_squares, left_out) ----------------------------------------------------------------------------

  /** By row how much more than 1 it counts, over the number of rows: what was seen of pairs that are not linked. */
  private tiltOfWeights(): Float64Array {
    const { nRows } = this;
    const scores = new Float64Array(nRows);
    for (const { pair, shape, data } of this.stored.factors) {
      const [first, second] = pair.map((column) => this.stored.coarseGroups[column]);
      const [bins, others] = pair.map((column) => this.bins[column]);
      for (let r = 0; r < nRows; r++) scores[r] += data[first[bins[r]] * shape[1] + second[others[r]]];
    }
    const weights = scores.map((score) => Math.exp(Math.min(Math.max(score, -MOST_FACTOR), MOST_FACTOR)));
    const middle = weights.reduce((sum, weight) => sum + weight, 0) / nRows;
    return weights.map((weight) => (weight / middle - 1) / nRows);
  }

  private addLeftOut(centred: Matrix, squares: Float64Array): void {
    const n = centred.columns;
    for (let k = 0; k < n; k++) {
      let [moved, chance] = [0, 0];
      for (let r = 0; r < this.nRows; r++) {
        const part = this.tilt[r] * centred.data[r * n + k];
        moved += part;
        chance += part ** 2;
      }
      squares[k] += Math.max(moved ** 2 - chance, 0);
    }
  }

  private linkedCells({ pair, shape, data }: Table): Cells {
    const [first, second] = pair.map((column) => this.stored.groups[column]);
    const [bins, others] = pair.map((column) => this.bins[column]);
    return {
      ofRow: Int32Array.from({ length: this.nRows }, (_, r) => first[bins[r]] * shape[1] + second[others[r]]),
      rows: shape[0],
      columns: shape[1],
      divisors: data.map((share) => Math.max(share, 1 / this.nRows) * this.nRows),
    };
  }

  private addLinked(centred: Matrix, squares: Float64Array): void {
    const scale = (this.stored.tablesSigma / this.prepared.total) ** 2;
    const n = centred.columns;
    for (const cells of this.linked) {
      const kept = (1 - 1 / cells.rows) * (1 - 1 / cells.columns);
      for (let k = 0; k < n; k++) {
        let chance = 0;
        for (let r = 0; r < this.nRows; r++) chance += (centred.data[r * n + k] / cells.divisors[cells.ofRow[r]]) ** 2;
        squares[k] += scale * Math.max(contrastSquares(cells, centred, k) - kept * chance, 0);
      }
    }
  }

  /** Pairs that are neither linked nor seen to depend on each other, and what a row makes with itself in all of them. */
  private hiddenCells(): [Cells[], Float64Array] {
    const { nRows } = this;
    const coarse = this.stored.coarseGroups;
    const diagonal = new Float64Array(nRows);
    if (coarse.length === 0 || coarse.length > MOST_COLUMNS) return [[], diagonal];
    const known = new Set([...this.prepared.tables, ...this.stored.factors].map(({ pair }) => pair.join()));
    const least = nRows ** -0.5;
    const divisors = coarse.map((groups, j) => {
      const shares = new Float64Array(Math.max(...groups) + 1);
      for (const [bin, share] of this.prepared.shares[j].entries()) shares[groups[bin]] += share;
      return shares.map((share) => Math.max(share, least));
    });
    const made: Cells[] = [];
    for (let i = 0; i < coarse.length; i++) {
      for (let j = i + 1; j < coarse.length; j++) {
        if (known.has(`${i},${j}`)) continue;
        const [rows, columns] = [divisors[i].length, divisors[j].length];
        const kept = (1 - 1 / rows) * (1 - 1 / columns);
        const ofRow = Int32Array.from({ length: nRows }, (_, r) => coarse[i][this.bins[i][r]] * columns + coarse[j][this.bins[j][r]]);
        const cells = Float64Array.from({ length: rows * columns }, (_, c) => divisors[i][Math.floor(c / columns)] * divisors[j][c % columns] * nRows);
        for (let r = 0; r < nRows; r++) diagonal[r] += kept / cells[ofRow[r]] ** 2;
        made.push({ ofRow, rows, columns, divisors: cells });
      }
    }
    return [made, diagonal];
  }

  private addHidden(centred: Matrix, squares: Float64Array): void {
    const noise = this.stored.coarseSigma / this.prepared.total;
    const n = centred.columns;
    for (let k = 0; k < n; k++) {
      let found = 0;
      for (const cells of this.hidden) found += contrastSquares(cells, centred, k);
      for (let r = 0; r < this.nRows; r++) found -= this.hiddenDiagonal[r] * centred.data[r * n + k] ** 2;
      squares[k] += noise ** 2 * Math.max(found, 0);
    }
  }

  // --- places inside bins ----------------------------------------------------------------------------------------------------

  private insideBins(j: number): Inside[] {
    const cut = this.stored.bins[j];
    const { edges } = cut;
    if (edges === null) return [];
    const whole = edges[edges.length - 1] - edges[0];
    const several = (bin: number): boolean =>
      bin < edges.length - 1 && edges[bin + 1] - edges[bin] > (cut.integer ? 1 : 1e-9 * whole);
    const { sampled } = this.stored;
    const value = (r: number): number => sampled.data[r * sampled.columns + j];
    const order = Int32Array.from({ length: this.nRows }, (_, r) => r)
      .filter((r) => several(this.bins[j][r]))
      .sort((a, b) => value(a) - value(b) || a - b);
    if (order.length === 0) return [];
    const stretch = (at: number): number => Math.floor(this.bins[j][order[at]] / STRETCH);
    const starts = Array.from(order.keys()).filter((at) => at === 0 || stretch(at) !== stretch(at - 1));
    return [{ order, starts: Int32Array.from([...starts, order.length]) }];
  }

  private addInside(perRow: Matrix, { order, starts }: Inside, squares: Float64Array): void {
    const n = perRow.columns;
    for (let k = 0; k < n; k++) {
      let [found, byChance] = [0, 0];
      for (let s = 0; s + 1 < starts.length; s++) {
        const size = starts[s + 1] - starts[s];
        let [sum, steps, apart] = [0, 0, 0];
        for (let at = starts[s]; at < starts[s + 1]; at++) sum += perRow.data[order[at] * n + k];
        const middle = sum / size;
        for (let at = starts[s]; at < starts[s + 1]; at++) {
          const value = perRow.data[order[at] * n + k];
          apart += (value - middle) ** 2;
          if (at > starts[s]) steps += (value - perRow.data[order[at - 1] * n + k]) ** 2 / 2;
        }
        const free = Math.max(size - 1, 1);
        const weight = (size / this.nRows) ** 2 / free;
        found += weight * (apart - steps);
        byChance += weight ** 2 * free * (steps / free) ** 2;
      }
      if (found > STANDS_OUT * Math.sqrt(byChance)) squares[k] += found;
    }
  }
}

const MOST_CELLS = 4096;
const cellSums = new Float64Array(MOST_CELLS);

/** The sum of squares of all contrasts of a table: what its cells have, by their divisors, less means of rows and columns. */
function contrastSquares(cells: Cells, centred: Matrix, k: number): number {
  const { rows, columns, ofRow, divisors } = cells;
  const size = rows * columns;
  const sums = size <= MOST_CELLS ? cellSums.fill(0, 0, size) : new Float64Array(size);
  const n = centred.columns;
  for (let r = 0, at = k; r < ofRow.length; r++, at += n) sums[ofRow[r]] += centred.data[at];
  for (let c = 0; c < size; c++) sums[c] /= divisors[c];
  for (let u = 0; u < rows; u++) {
    let middle = 0;
    for (let v = 0; v < columns; v++) middle += sums[u * columns + v];
    middle /= columns;
    for (let v = 0; v < columns; v++) sums[u * columns + v] -= middle;
  }
  let squares = 0;
  for (let v = 0; v < columns; v++) {
    let middle = 0;
    for (let u = 0; u < rows; u++) middle += sums[u * columns + v];
    middle /= rows;
    for (let u = 0; u < rows; u++) squares += (sums[u * columns + v] - middle) ** 2;
  }
  return squares;
}

/** The squared size of what dependence noise hides, given that on a count as a share of all rows. */
function hiddenShare(nColumns: number, noise: number): number {
  const ofPairs = Math.sqrt(nColumns) * noise;
  let groups = 2;
  for (let k = 3; k <= MOST_GROUPS; k++) if (2 * Math.sqrt(k - 1) * (k - 1) * ofPairs <= DEPENDENCE) groups = k;
  return ((groups - 1) * ofPairs) ** 2;
}

/** The group of every bin: at most `most` groups of about equal mass (Python: `solve.rows.histograms.groups_of`). */
export function groupsOf(shares: Float64Array, ordered: boolean, most: number, codes = 0): Int32Array {
  const count = shares.length;
  if (count <= most) return Int32Array.from({ length: count }, (_, k) => k);
  if (codes > 0) {
    const own = Array.from({ length: codes }, (_, k) => (codes + 2 <= most ? k : 0));
    const numbers = groupsOf(shares.subarray(0, count - codes), ordered, most - 1 - own[codes - 1]);
    const next = Math.max(...numbers) + 1;
    return Int32Array.from([...numbers, ...own.map((k) => next + k)]);
  }
  if (!ordered) {
    const made = new Int32Array(count).fill(most - 1);
    const largest = Array.from(shares.keys()).sort((a, b) => shares[b] - shares[a] || a - b);
    for (const [group, bin] of largest.slice(0, most - 1).entries()) made[bin] = group;
    return made;
  }
  const made = new Int32Array(count);
  let [group, mass, left] = [0, 0, 1];
  for (const [bin, share] of shares.entries()) {
    // Close a group where this bin would carry it past an even share of what is left by more than half of itself.
    if (mass > 0 && group < most - 1 && mass + share / 2 > left / (most - group)) [left, group, mass] = [left - mass, group + 1, 0];
    made[bin] = group;
    mass += share;
  }
  return made;
}
