/**
 * What the live page reads: a pane (its rows, and what real rows said of its reasons), and the prepared file beside it.
 *
 * A pane's parts are JSON texts whose large arrays are .npy files (Python: `results.codec`). Fields that are not needed here
 * are not looked at; Python has checked them when the site was written, and the hashes say that nothing has changed since.
 */
import { arrayOf, checkFiles, DamagedFile, parsedJson, unpack, type Archive } from "./archive";
import { isObject, Schema } from "./schema";
import { matrix, type Matrix } from "./types";

export const PANE_FORMAT = "vitrail-pane/3";
const PREPARED_FORMAT = "vitrail-live/1";

/** How a column is cut: `edges` is null for levels; the last bins are of codes. */
export interface Bins {
  readonly size: number;
  readonly edges: Float64Array | null;
  readonly integer: boolean;
  readonly codes: readonly number[];
}

/** Numbers of two columns, over groups of both. */
export interface Table {
  readonly pair: readonly [number, number];
  readonly shape: readonly [number, number];
  readonly data: Float64Array;
}

/** The private rows of a pane (Python: `results.private_rows.PrivateRows`). */
export interface StoredRows {
  readonly bins: readonly Bins[];
  /** By column the group of every bin, as tables count them. */
  readonly groups: readonly Int32Array[];
  readonly counts: readonly Float64Array[];
  readonly blockCounts: readonly Float64Array[];
  readonly countsSigma: number;
  readonly tablesSigma: number;
  /** By column the group of every bin, as tables of all pairs count them; none where those were not asked for. */
  readonly coarseGroups: readonly Int32Array[];
  readonly coarseSigma: number;
  readonly factors: readonly Table[];
  readonly sampled: Matrix;
}

/** What real rows say of a model's reasons, on average (Python: `results.mean_reasons.MeanReasons`). */
export interface MeanReasons {
  readonly players: readonly string[];
  readonly sizes: Float64Array;
  readonly means: Float64Array;
  readonly stds: Float64Array;
  readonly expected: Float64Array;
  readonly perRow: Matrix;
  readonly outputs: Float64Array;
  readonly excess: number;
  readonly excessStd: number;
}

export interface Pane {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly dataset: string;
  /** The columns that the model reads: what a person has. */
  readonly schema: Schema;
  readonly rows: StoredRows;
  /** Of the only model that the pane is about; null where that was not bought. */
  readonly reasons: MeanReasons | null;
  /** The fields of the global report, as they are stored; null where there is none. */
  readonly report: Part | null;
}

export interface Player {
  readonly name: string;
  /** The numbers of its columns. */
  readonly columns: readonly number[];
}

/** What a model is given, and which of its outputs is meant (Python: `model.feeds.Feed`). */
export interface ModelFacts {
  readonly name: string;
  readonly kind: "features" | "values" | "columns";
  /** Numbers of the features, or of the columns, that it takes, in its order. */
  readonly columns: readonly number[];
  /** What it calls them, where it has a name for each. */
  readonly names: readonly string[] | null;
  readonly column: number | null;
  readonly range: readonly [number, number];
  readonly sha256: string;
  /** Whether the pane was made with it. */
  readonly own: boolean;
  /** Whether real rows were asked about its reasons. */
  readonly reasons: boolean;
}

export interface Words {
  readonly links: string;
  readonly by_heart: string;
  readonly held_against_rows: string;
  readonly of_another: string;
  readonly claim: string;
  readonly claim_of_another: string;
}

/** What Python prepared for this pane and model (Python: `live.prepared`). */
export interface Prepared {
  readonly background: number;
  readonly players: readonly Player[];
  readonly total: number;
  /** By column the fitted share of every bin, and its block. */
  readonly shares: readonly Float64Array[];
  readonly blocks: readonly Int32Array[];
  /** Fitted distributions of linked pairs over groups. */
  readonly tables: readonly Table[];
  /** Orders of players, one for each row. */
  readonly orders: Matrix;
  readonly widening: number;
  readonly rowsCounted: { readonly sentence: string; readonly contradicts: boolean };
  readonly model: ModelFacts;
  readonly words: Words;
}

export async function readPane(content: Uint8Array, what = "the pane"): Promise<Pane> {
  const archive = await unpack(content, what);
  const { manifest, files } = archive;
  checkFormat(manifest, PANE_FORMAT, what);
  const parts = record(manifest.parts, `the parts of ${what}`);
  const models = Array.isArray(manifest.models) ? manifest.models.filter(isObject) : [];
  const listed: Record<string, unknown> = {};
  for (const part of Object.values(parts)) Object.assign(listed, record(record(part, "a part").files, "files of a part"));
  for (const model of models) if (typeof model.embedded === "string") listed[model.embedded] = model.sha256;
  await checkFiles(listed, files, what);
  const whole = Schema.fromJson(manifest.schema);
  const { target } = manifest;
  const schema = typeof target === "string" ? without(whole, target) : whole;
  if (!("rows" in parts)) throw new DamagedFile(`${what} holds no private rows, and a live page explains with them`);
  const isAboutOne = models.length === 1;
  return {
    manifest,
    dataset: String(manifest.dataset),
    schema,
    rows: storedRows(new Part(archive, "rows"), schema),
    reasons: isAboutOne && "reasons" in parts ? meanReasons(new Part(archive, "reasons")) : null,
    report: isAboutOne && "global" in parts ? new Part(archive, "global") : null,
  };
}

export async function readPrepared(content: Uint8Array, pane: Pane, what = "the prepared file"): Promise<Prepared> {
  const { manifest, files } = await unpack(content, what);
  checkFormat(manifest, PREPARED_FORMAT, what);
  await checkFiles(manifest.files, files, what);
  const numbers = (name: string): Float64Array => array(files, name).data;
  const sizes = pane.rows.bins.map((bins) => bins.size);
  const described = manifest.tables as { pair: [number, number]; shape: [number, number] }[];
  const fitted = split(numbers("rows/tables.npy"), described.map(({ shape }) => shape[0] * shape[1]));
  const orders = array(files, "reasons/orders.npy");
  return {
    background: finite(manifest.background, "background"),
    players: manifest.players as Player[],
    total: finite(manifest.total, "total"),
    shares: split(numbers("rows/shares.npy"), sizes),
    blocks: split(numbers("rows/blocks.npy"), sizes).map((blocks) => Int32Array.from(blocks)),
    tables: described.map(({ pair, shape }, k) => ({ pair, shape, data: fitted[k] })),
    orders: matrix(orders.shape[0], orders.shape[1], orders.data),
    widening: finite(manifest.widening, "widening"),
    rowsCounted: record(manifest.rows_counted, "rows_counted") as unknown as Prepared["rowsCounted"],
    model: record(manifest.model, "model") as unknown as ModelFacts,
    words: record(manifest.words, "words") as unknown as Words,
  };
}

/** The bin of a raw value; always one of them, whatever the value. */
export function binOf(bins: Bins, value: number): number {
  const code = bins.codes.length ? bins.codes.indexOf(value) : -1;
  const intervals = bins.size - bins.codes.length;
  if (code >= 0) return intervals + code;
  if (bins.edges === null) return Math.min(Math.max(Math.trunc(value), 0), intervals - 1);
  let [low, high] = [1, bins.edges.length - 1]; // the number of inner edges that are not above the value
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bins.edges[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return Math.min(low - 1, intervals - 1);
}

/** The first rows of a matrix. */
export function firstRows(of: Matrix, rows: number): Matrix {
  return matrix(rows, of.columns, of.data.subarray(0, rows * of.columns));
}

// --- stored fields -----------------------------------------------------------------------------------------------------------

/** The fields of a stored part, and the arrays beside them. */
export class Part {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    private readonly archive: Archive,
    readonly name: string,
  ) {
    const text = archive.files.get(`${name}/fields.json`);
    if (text === undefined) throw new DamagedFile(`the part '${name}' lacks fields.json; it may have been cut`);
    this.fields = record(parsedJson(text, `fields.json of '${name}'`), `fields.json of '${name}'`);
  }

  number(field: string): number {
    return finite(this.fields[field], field);
  }

  /** An array, whether it stands in the text (as a list, or lists of lists) or in a file. */
  numbers(value: unknown, what: string): { data: Float64Array; shape: readonly number[] } {
    if (typeof value === "string") return array(this.archive.files, `${this.name}/${value}`);
    if (!Array.isArray(value)) throw new DamagedFile(`'${what}' of '${this.name}' is no array`);
    const shape: number[] = [];
    for (let inner: unknown = value; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
    const data = Float64Array.from(value.flat(shape.length) as number[]);
    if (data.some(Number.isNaN)) throw new DamagedFile(`'${what}' of '${this.name}' holds what is no number`);
    return { data, shape };
  }

  vector(field: string): Float64Array {
    return this.numbers(this.fields[field], field).data;
  }

  vectors(field: string): Float64Array[] {
    return list(this.fields[field], field).map((value) => this.numbers(value, field).data);
  }

  tables(field: string): Table[] {
    return list(this.fields[field], field).map((entry) => {
      const [pair, value] = list(entry, field) as [[number, number], unknown];
      const { data, shape } = this.numbers(value, field);
      return { pair, shape: [shape[0], shape[1]], data };
    });
  }

  matrix(field: string): Matrix {
    const { data, shape } = this.numbers(this.fields[field], field);
    return matrix(shape[0], shape[1], data);
  }
}

function storedRows(part: Part, schema: Schema): StoredRows {
  const bins = list(part.fields.bins, "bins").map((entry) => {
    const fields = record(entry, "bins");
    return {
      size: list(fields.labels, "labels").length,
      edges: fields.edges === null ? null : Float64Array.from(list(fields.edges, "edges") as number[]),
      integer: fields.integer === true,
      codes: list(fields.codes ?? [], "codes") as number[],
    };
  });
  const sampled = part.matrix("sampled");
  if (bins.length !== schema.nColumns || sampled.columns !== schema.nColumns) {
    throw new DamagedFile("the private rows have other columns than the pane");
  }
  const whole = (vectors: Float64Array[]): Int32Array[] => vectors.map((numbers) => Int32Array.from(numbers));
  return {
    bins,
    sampled,
    groups: whole(part.vectors("groups")),
    counts: part.vectors("counts"),
    blockCounts: part.vectors("block_counts"),
    countsSigma: part.number("counts_sigma"),
    tablesSigma: part.number("tables_sigma"),
    coarseGroups: whole(part.vectors("coarse_groups")),
    coarseSigma: part.number("coarse_sigma"),
    factors: part.tables("factors"),
  };
}

function meanReasons(part: Part): MeanReasons {
  return {
    players: list(part.fields.players, "players") as string[],
    sizes: part.vector("sizes"),
    means: part.vector("means"),
    stds: part.vector("stds"),
    expected: part.vector("expected"),
    perRow: part.matrix("per_row"),
    outputs: part.vector("outputs"),
    excess: part.number("excess"),
    excessStd: part.number("excess_std"),
  };
}

function without(schema: Schema, target: string): Schema {
  const named = (rule: Schema["rules"][number]): readonly string[] => {
    if (rule.rule === "group") return rule.columns;
    if (rule.rule === "at least") return [rule.larger, rule.smaller];
    return rule.rule === "link" ? [rule.column, rule.other] : [rule.column];
  };
  const rules = schema.rules.filter((rule) => !named(rule).includes(target));
  return new Schema(schema.columns.filter((column) => column.name !== target), rules);
}

function array(files: ReadonlyMap<string, Uint8Array>, name: string): ReturnType<typeof arrayOf> {
  const content = files.get(name);
  if (content === undefined) throw new DamagedFile(`the file '${name}' is missing`);
  return arrayOf(content, name);
}

function split(numbers: Float64Array, sizes: readonly number[]): Float64Array[] {
  let start = 0;
  const made = sizes.map((size) => numbers.slice(start, (start += size)));
  if (start !== numbers.length) throw new DamagedFile("the prepared file belongs to another pane: its numbers are of other bins");
  return made;
}

function checkFormat(manifest: Readonly<Record<string, unknown>>, wanted: string, what: string): void {
  if (manifest.format !== wanted) throw new DamagedFile(`${what} names the format '${String(manifest.format).slice(0, 60)}'; what is read here is '${wanted}'`);
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (!isObject(value)) throw new DamagedFile(`${what} is no object`);
  return value;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new DamagedFile(`'${what}' is no list`);
  return value;
}

function finite(value: unknown, what: string): number {
  if (typeof value !== "number") throw new DamagedFile(`'${what}' is no number`);
  return value;
}
