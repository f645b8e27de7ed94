/** The file that Python prepared for the search (`live.prepared_search`), and rows that look like a class. */
import { arrayOf, checkFiles, DamagedFile, parsedJson, unpack } from "../archive";
import { isObject, roundHalfEven, type Column, type Level, type Schema } from "../schema";
import { matrix, rowOf, type Matrix } from "../types";
import { Classes } from "./classes";
import type { RulesFacts } from "./permitted";

const FORMAT = "vitrail-live-search/1";
const BASE = 91;
/** Rows that a pool holds at most. */
export const KEPT = 4_000;
/** Values of a number that moves try: as many quantiles of the class. */
export const GRID_VALUES = 9;
/** How many rows of the class an answer's plausibility is measured on. */
const NEIGHBOURS = 20;

/** Rows from which the pool of a range of outputs is taken, until it has enough. */
export interface Draw {
  readonly enough: number;
  /** The class that the range must be like; null where any may be. */
  readonly like: number | null;
  readonly rows: Matrix;
}

export interface PreparedSearch {
  readonly model: string;
  readonly classes: Classes;
  /** Of the outputs. */
  readonly range: readonly [number, number];
  readonly rules: RulesFacts;
  readonly pools: readonly Pool[];
  /** The prototypes of the classes as rows. */
  readonly prototypes: Matrix;
  /** None where no range of outputs may be asked for. */
  readonly draws: readonly Draw[];
  /** Sentences a reader should know, and more of them by class. */
  readonly notes: readonly string[];
  readonly notesOn: readonly (readonly string[])[];
}

/** Rows of one class by the model, and its prototype in the encoding, whatever the model says of that. */
export class Pool {
  private tried: Float64Array[] | null = null;

  constructor(
    readonly schema: Schema,
    readonly rows: Matrix,
    readonly prototype: Float64Array,
  ) {}

  /** For each column what rows of the class have in it: the distinct values if they are few, else quantiles. */
  get values(): readonly Float64Array[] {
    this.tried ??= this.schema.columns.map((_, j) => {
      const sorted = Float64Array.from({ length: this.rows.rows }, (_, r) => this.rows.data[r * this.rows.columns + j]).sort();
      const distinct = sorted.filter((value, k) => k === 0 || value !== sorted[k - 1]);
      if (distinct.length <= 5 * GRID_VALUES) return distinct;
      return Float64Array.from({ length: GRID_VALUES }, (_, k) => sorted[roundHalfEven((sorted.length - 1) * (k / (GRID_VALUES - 1)))]);
    });
    return this.tried;
  }

  /** Squared distances of a row to those of the pool in the encoding, over these columns. */
  squaredDistances(row: Float64Array, columns: readonly number[]): Float64Array {
    const made = new Float64Array(this.rows.rows);
    for (let r = 0; r < made.length; r++) made[r] = squaredDistance(this.schema, row, rowOf(this.rows, r), columns);
    return made;
  }

  /** Mean distance to the nearest rows of the pool; to the prototype if it is empty. */
  distance(row: Float64Array): number {
    if (this.rows.rows === 0) {
      const features = this.schema.features(matrix(1, row.length, row));
      return Math.hypot(...features.map((value, k) => value - this.prototype[k]));
    }
    const nearest = this.squaredDistances(row, [...row.keys()]).sort().subarray(0, NEIGHBOURS);
    return nearest.reduce((sum, squared) => sum + Math.sqrt(squared), 0) / nearest.length;
  }
}

/** The squared distance of two rows in the encoding, over these columns: of two levels it is 2. */
export function squaredDistance(schema: Schema, one: Float64Array, other: Float64Array, columns: readonly number[]): number {
  let sum = 0;
  for (const j of columns) {
    if (one[j] === other[j]) continue;
    const column = schema.columns[j];
    if (column.kind === "categorical") {
      sum += 2;
      continue;
    }
    const codes = [one[j], other[j]].map((value) => column.codes.indexOf(value));
    const [first, second] = [one[j], other[j]].map((value, k) => (codes[k] < 0 ? (value - column.low) / (column.high - column.low) : 0));
    sum += (first - second) ** 2 + Number(codes[0] >= 0) + Number(codes[1] >= 0);
  }
  return sum;
}

export async function readPreparedSearch(content: Uint8Array, schema: Schema, what = "the prepared search"): Promise<PreparedSearch> {
  const { manifest, files } = await unpack(content, what);
  if (manifest.format !== FORMAT) throw new DamagedFile(`${what} has the format '${manifest.format}'; this page reads '${FORMAT}'`);
  await checkFiles(manifest.files, files, what);
  const names = manifest.columns;
  if (!Array.isArray(names) || names.join("\n") !== schema.names.join("\n")) throw new DamagedFile(`${what} is about other columns than the pane`);
  const member = (name: string): Uint8Array => {
    const found = files.get(name);
    if (found === undefined) throw new DamagedFile(`${what} lacks the file '${name}'; it may have been cut`);
    return found;
  };
  const sizes = manifest.rows;
  if (!isObject(sizes)) throw new DamagedFile(`${what} does not say how many rows it holds`);
  const cells = manifest.cells as number[];
  const others = split(arrayOf(member("rows/values.npy"), "values.npy").data, manifest.values as number[]);
  const values = others.map((own, j) => Float64Array.from([...grid(schema.columns[j], cells[j]), ...own]));
  const rows = (name: string): Matrix => decoded(parsedJson(member(`rows/${name}.json`), `${name}.json`), values, Number(sizes[name]), what);
  const labels = manifest.labels as Level[];
  const prototypes = arrayOf(member("classes/prototypes.npy"), "prototypes.npy");
  if (prototypes.shape[0] !== labels.length || prototypes.shape[1] !== schema.nFeatures) throw new DamagedFile(`${what} has prototypes of another shape`);
  const prototype = (number: number): Float64Array => prototypes.data.subarray(number * schema.nFeatures, (number + 1) * schema.nFeatures);
  const draws = manifest.draws as { enough: number; like: number | null }[];
  return {
    model: String(manifest.model),
    classes: new Classes(Number(manifest.outputs), labels, Number(manifest.threshold)),
    range: manifest.range as [number, number],
    rules: manifest.rules as RulesFacts,
    pools: labels.map((_, number) => new Pool(schema, rows(`class${number}`), prototype(number))),
    prototypes: rows("prototypes"),
    draws: draws.map((draw, k) => ({ ...draw, rows: rows(`draw${k}`) })),
    notes: manifest.notes as string[],
    notesOn: manifest.notes_on as string[][],
  };
}

/** All places of a column's grid, in so many cells; none where it has no grid. */
function grid(column: Column, cells: number): number[] {
  if (column.kind === "categorical" || cells === 0) return [];
  const { low, high } = column;
  return Array.from({ length: cells + 1 }, (_, k) => Math.min(low + (k / cells) * (high - low), high));
}

function split(numbers: Float64Array, sizes: readonly number[]): Float64Array[] {
  let start = 0;
  return sizes.map((size) => numbers.subarray(start, (start += size)));
}

/** Rows of texts: by column the number of each value among the column's, in digits, the highest digit of all rows first. */
function decoded(texts: unknown, values: readonly Float64Array[], count: number, what: string): Matrix {
  const made = matrix(count, values.length);
  if (!Array.isArray(texts) || texts.length !== values.length) throw new DamagedFile(`rows of ${what} have other columns than it says`);
  texts.forEach((text: unknown, j) => {
    let width = 1;
    while (BASE ** width < values[j].length) width++;
    if (typeof text !== "string" || text.length !== width * count) throw new DamagedFile(`a column of ${what} is not as long as it says`);
    for (let r = 0; r < count; r++) {
      let number = 0;
      for (let place = 0; place < width; place++) number = number * BASE + digit(text.charCodeAt(place * count + r));
      if (!(number < values[j].length)) throw new DamagedFile(`a column of ${what} names a value that is not there`);
      made.data[r * values.length + j] = values[j][number];
    }
  });
  return made;
}

/** 0 to 90 for the characters 35 to 126 but the backslash; NaN for others. */
function digit(code: number): number {
  if (code < 35 || code === 92 || code > 126) return NaN;
  return code < 92 ? code - 35 : code - 36;
}
