/**
 * The search for counterfactuals of one person: candidates. Mirrors `solve.counterfactual.search`.
 *
 * Candidates are the rows of the wanted class nearest to the person, points on the way to its prototype, and moves: a single
 * column changed to each of the values that rows of the class have in it, then a second one where the model was nearly won
 * over. All are settled onto the rules; those that the model puts in the wanted class are valid. The model is asked about
 * all rows of a step at once, and never twice about the same row.
 */
import { roundHalfEven, type Schema } from "../schema";
import { matrix, rowOf, type Predict } from "../types";
import type { Classes } from "./classes";
import { pairwiseSum, range, sameNumbers, stableOrder, uniformDraws } from "./numbers";
import type { Rules } from "./permitted";
import { GRID_VALUES, squaredDistance, type Pool } from "./pool";

/** Rows of the pool that a person starts from. */
const NEAREST = 24;
/** Squared distances that differ by less are the same. */
const SAME_DISTANCE = 2 ** -30;
/** Up to so many varied columns this page searches. */
export const FEW_COLUMNS = 64;
/** Fractions of the way from the person to the prototype of the class that are tried. */
const TOWARDS = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0];
/** Columns that moves change, at most: for more answers, and for a first one. */
const MOVES = 2;
const MOST_MOVES = 8;
/** Rows that moves go on from. */
const BEAM = 4;
/** What a change costs besides its size: a whole range of a number costs 1. */
const PER_CHANGE = 0.15;
/** Random rows in the last resort. */
const RANDOM = 2_000;
/** Milliseconds after which other tasks get a turn: a message that makes this search outdated is one. */
const BREATH = 20;

export type Row = Float64Array;

/** The model's outputs for rows, one or several numbers for each; remembers what it said. */
export class Oracle {
  /** Rows that the model was asked about, and how often it was. */
  rows = 0;
  calls = 0;
  private readonly known = new Map<string, Float64Array>();
  private breathed = performance.now();

  constructor(
    private readonly predict: Predict,
    /** How many outputs a row has. */
    readonly count: number,
    private readonly signal?: AbortSignal,
  ) {}

  /** Outputs of rows, in their order. An outdated search ends here, with the signal's reason. */
  async ask(rows: readonly Row[]): Promise<Float64Array> {
    if (performance.now() - this.breathed > BREATH) {
      await nextTask();
      this.breathed = performance.now();
    }
    this.signal?.throwIfAborted();
    const keys = rows.map(keyOf);
    const asked = new Map<string, Row>();
    keys.forEach((key, k) => this.known.has(key) || asked.set(key, rows[k]));
    if (asked.size > 0) {
      const width = rows[0].length;
      const data = new Float64Array(asked.size * width);
      [...asked.values()].forEach((row, k) => data.set(row, k * width));
      const outputs = await this.predict(matrix(asked.size, width, data));
      this.rows += asked.size;
      this.calls += 1;
      [...asked.keys()].forEach((key, k) => this.known.set(key, outputs.subarray(k * this.count, (k + 1) * this.count)));
    }
    const made = new Float64Array(rows.length * this.count);
    keys.forEach((key, k) => made.set(this.known.get(key)!, k * this.count));
    return made;
  }
}

function keyOf(row: Row): string {
  return row.join();
}

/** Gives messages and other tasks a turn; a timer would wait four milliseconds. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** What every step of a search looks at. */
export class Search {
  constructor(
    readonly schema: Schema,
    readonly classes: Classes,
    readonly rules: Rules,
    readonly target: number,
    readonly pool: Pool,
    readonly oracle: Oracle,
  ) {}

  get own(): Row {
    return this.rules.own;
  }

  /** Which rows the model puts in the wanted class. */
  async valid(rows: readonly Row[]): Promise<boolean[]> {
    const index = this.classes.index(await this.oracle.ask(rows));
    return Array.from(index, (number) => number === this.target);
  }

  /** How much each column changes: L1 in the encoding, so that another level counts 2. */
  amounts(row: Row): Float64Array {
    return Float64Array.from(this.schema.columns, (column, j) => {
      const own = this.own[j];
      if (own === row[j]) return 0;
      if (column.kind === "categorical") return 2;
      const codes = [own, row[j]].map((value) => column.codes.indexOf(value));
      const [before, after] = [own, row[j]].map((value, k) => (codes[k] < 0 ? (value - column.low) / (column.high - column.low) : 0));
      return Math.abs(before - after) + Number(codes[0] >= 0) + Number(codes[1] >= 0);
    });
  }

  size(row: Row): number {
    return pairwiseSum(this.amounts(row));
  }

  /** How much each player changes. */
  sizes(row: Row): number[] {
    const amounts = this.amounts(row);
    return this.rules.players.map((columns) => columns.reduce((sum, column) => sum + amounts[column], 0));
  }

  /** Which players change. */
  changed(row: Row): boolean[] {
    return this.rules.players.map((columns) => columns.some((column) => row[column] !== this.own[column]));
  }

  /** What answers are compared by: how much they change, and a price for every change. */
  cost(row: Row): number {
    return this.size(row) + PER_CHANGE * this.changed(row).filter(Boolean).length;
  }

  /** Distance to the person in the encoding. */
  distance(row: Row): number {
    return Math.sqrt(squaredDistance(this.schema, this.own, row, range(row.length)));
  }
}

/** Valid rows, none the person's own: those that look like the class, and moves; and whether they were drawn at random. */
export async function candidates(search: Search, total: number): Promise<{ alike: Row[]; moves: Row[]; isRandom: boolean }> {
  const settled = starts(search).map((row) => search.rules.settle(row));
  const valid = await search.valid(settled);
  const alike = settled.filter((_, k) => valid[k]);
  const moves = await movesOf(search, total, alike.length > 0);
  const isRandom = alike.length + moves.length === 0;
  return { alike, moves: isRandom ? await randomRows(search) : moves, isRandom };
}

function starts(search: Search): Row[] {
  const { pool, own, rules, schema } = search;
  const varied = range(own.length).filter((column) => rules.facts.vary[column]);
  const squared = pool.squaredDistances(own, varied).map((distance) => roundHalfEven(distance / SAME_DISTANCE));
  const nearest = stableOrder(range(squared.length), (r) => squared[r]).slice(0, NEAREST);
  const near = nearest.sort((one, other) => one - other).map((r) => rowOf(pool.rows, r));
  const here = schema.features(matrix(1, own.length, own));
  const towards = matrix(TOWARDS.length, here.length);
  TOWARDS.forEach((fraction, r) => {
    // Towards the prototype, and past it.
    here.forEach((value, k) => {
      towards.data[r * here.length + k] = Math.min(Math.max(value + fraction * (pool.prototype[k] - value), 0), 1);
    });
  });
  const moved = schema.unfeature(towards);
  return [...near, ...range(moved.rows).map((r) => rowOf(moved, r))];
}

/** Single columns changed, then further ones, from where the model is nearest to the wanted class. */
async function movesOf(search: Search, total: number, isAnswered: boolean): Promise<Row[]> {
  const { classes, target } = search;
  const found: Row[] = [];
  let current: Row[] = [search.own];
  for (let depth = 0; depth < Math.min(MOST_MOVES, search.rules.players.length); depth++) {
    const tried = allMoves(search, current);
    const outputs = await search.oracle.ask(tried);
    const index = classes.index(outputs);
    const margin = classes.margin(outputs, target);
    const valid = range(tried.length).filter((k) => index[k] === target);
    found.push(...firstOfEach(search, tried, (k) => search.size(tried[k]), valid).map((k) => tried[k]));
    if (found.length >= total || !(depth + 1 < MOVES || (found.length === 0 && !isAnswered))) break;
    const others = range(tried.length).filter((k) => index[k] !== target && Number.isFinite(margin[k]));
    const surest = firstOfEach(search, tried, (k) => -margin[k], others);
    current = stableOrder(surest, (k) => -margin[k])
      .slice(0, BEAM)
      .map((k) => tried[k]);
    if (current.length === 0) break;
  }
  return found;
}

/** Every row with each of its columns changed to each value of the class. */
function allMoves(search: Search, current: readonly Row[]): Row[] {
  const { pool, rules } = search;
  const made: Row[] = [];
  for (const column of rules.leads) {
    const values = pool.rows.rows > 0 ? pool.values[column] : rules.choices(column, GRID_VALUES);
    for (const row of current) {
      for (const value of values) {
        const moved = row.slice();
        moved[column] = value;
        made.push(rules.settle(moved));
      }
    }
  }
  return made.filter((row) => !sameNumbers(row, search.own));
}

/** Of these rows the first by `order` for every set of changed players, in the order of those sets. */
export function firstOfEach(search: Search, rows: readonly Row[], order: (k: number) => number, among: readonly number[]): number[] {
  const first = new Map<string, number>();
  for (const k of stableOrder(among, order)) {
    const set = setOf(search, rows[k]);
    if (!first.has(set)) first.set(set, k);
  }
  return [...first.keys()].sort().map((set) => first.get(set)!);
}

/** The changed players as a text of 0 and 1, which sorts as Python's packed bits do. */
export function setOf(search: Search, row: Row): string {
  return search.changed(row).map(Number).join("");
}

/** The rows nearest to the person, at most so many. */
export function nearestFew(search: Search, rows: readonly Row[], most: number): Row[] {
  return stableOrder(range(rows.length), (k) => search.size(rows[k]))
    .slice(0, most)
    .map((k) => rows[k]);
}

/**
 * Random permitted rows, half of them with some columns of the class: the last resort. The generator is not NumPy's, so that
 * answers found here are not the ones that Python finds.
 */
async function randomRows(search: Search): Promise<Row[]> {
  const { own, pool, rules } = search;
  const uniform = uniformDraws(1);
  const { low, high, categorical } = rules.facts;
  const drawn = range(RANDOM).map((k) => {
    const share = uniform();
    const taken = k < RANDOM / 2 && pool.rows.rows > 0 ? rowOf(pool.rows, Math.floor(uniform() * pool.rows.rows)) : null;
    return own.map((value, j) => {
      if (uniform() >= share) return value;
      if (taken !== null) return taken[j];
      return categorical[j] ? Math.floor(uniform() * (high[j] + 1)) : low[j] + uniform() * (high[j] - low[j]);
    });
  });
  const settled = drawn.map((row) => rules.settle(row));
  const valid = await search.valid(settled);
  return settled.filter((_, k) => valid[k]);
}
