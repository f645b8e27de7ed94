/**
 * Columns as the owner declared them; a person's values as a raw row; raw rows as features and back.
 *
 * Mirrors `vitrail.schema`. A raw row holds numbers in their own units and categories as the index of their level. Features
 * lie in [0, 1]: numbers scaled by their bounds, categories one-hot, and one more feature for each code of a number.
 */
import { matrix, rowOf, type Matrix } from "./types";

export type Level = string | number | boolean;
export type Change = "any" | "never" | "up" | "down";

interface Declared {
  readonly name: string;
  readonly change: Change;
  /** Whether a model is given NaN, or an empty text, where the value is the one that stands for missing. */
  readonly asNan: boolean;
  readonly label: string;
  readonly description: string;
  /** Words for codes or levels, by their text. */
  readonly valueLabels: Readonly<Record<string, string>>;
}

export interface NumericColumn extends Declared {
  readonly kind: "numeric";
  readonly low: number;
  readonly high: number;
  readonly integer: boolean;
  readonly date: boolean;
  /** Numbers outside the bounds that are no quantities. */
  readonly codes: readonly number[];
  readonly missing: number | null;
  readonly unit: string;
}

export interface CategoricalColumn extends Declared {
  readonly kind: "categorical";
  readonly levels: readonly Level[];
  readonly ordered: boolean;
  readonly missing: Level | null;
}

export type Column = NumericColumn | CategoricalColumn;

/** A column that follows from another: each level of `column` (by its text) has its value in `other`. */
export interface LinkRule {
  readonly rule: "link";
  readonly column: string;
  readonly other: string;
  readonly values: Readonly<Record<string, Level>>;
}
export interface AtLeastRule {
  readonly rule: "at least";
  readonly larger: string;
  readonly smaller: string;
}
export interface WithinRule {
  readonly rule: "within";
  readonly column: string;
  readonly low: number;
  readonly high: number;
}
export interface GroupRule {
  readonly rule: "group";
  readonly name: string;
  readonly columns: readonly string[];
}
export type Rule = LinkRule | AtLeastRule | WithinRule | GroupRule;

/** A value that does not fit its column, in a sentence; `column` is its name, empty where it is about no single column. */
export class SchemaError extends Error {
  constructor(
    message: string,
    readonly column = "",
  ) {
    super(message);
    this.name = "SchemaError";
  }
}

export class Schema {
  readonly names: readonly string[];
  /** Where each column's features start; one more at the end, which is the number of all. */
  readonly starts: readonly number[];

  constructor(
    readonly columns: readonly Column[],
    readonly rules: readonly Rule[] = [],
  ) {
    this.names = columns.map((column) => column.name);
    const starts = [0];
    for (const column of columns) starts.push(starts[starts.length - 1] + nFeaturesOf(column));
    this.starts = starts;
  }

  /** Reads what Python's `Schema.to_json` wrote. */
  static fromJson(given: unknown): Schema {
    const columns = isObject(given) && given.version === 1 ? given.columns : undefined;
    if (!isObject(given) || !Array.isArray(columns) || columns.length === 0) {
      throw new SchemaError("this is no schema of version 1: it needs the fields 'version' and 'columns'");
    }
    const rules = given.rules ?? [];
    if (!Array.isArray(rules)) throw new SchemaError("the rules of the schema must be a list");
    const read = columns.map(columnFromJson);
    if (new Set(read.map((column) => column.name)).size < read.length) throw new SchemaError("a column stands in the schema twice");
    return new Schema(read, rules.map(ruleFromJson));
  }

  get nColumns(): number {
    return this.columns.length;
  }

  get nFeatures(): number {
    return this.starts[this.starts.length - 1];
  }

  get featureNames(): string[] {
    return this.columns.flatMap((column) =>
      column.kind === "numeric"
        ? [column.name, ...column.codes.map((code) => `${column.name}=${code}`)]
        : column.levels.map((level) => `${column.name}=${levelText(level)}`),
    );
  }

  /** The columns of each declared group, by its name. */
  get groups(): Map<string, readonly string[]> {
    return new Map(this.rules.filter((rule) => rule.rule === "group").map((rule) => [rule.name, rule.columns]));
  }

  indexOf(name: string): number {
    const index = this.names.indexOf(name);
    if (index < 0) throw new SchemaError(`there is no column '${name}' in the schema; there are ${this.names.join(", ")}`, name);
    return index;
  }

  column(name: string): Column {
    return this.columns[this.indexOf(name)];
  }

  /** A person's values, by column, as a raw row; a value that does not fit is a SchemaError that names its column. */
  readPoint(values: Readonly<Record<string, unknown>>): Float64Array {
    for (const name of Object.keys(values)) this.indexOf(name);
    return Float64Array.from(this.columns, (column) => {
      if (!Object.hasOwn(values, column.name)) throw new SchemaError(`column '${column.name}' is missing`, column.name);
      return readValue(column, values[column.name]);
    });
  }

  /** A raw row as a person reads it: numbers, levels, dates as texts. */
  shown(row: Float64Array): Record<string, Level> {
    return Object.fromEntries(this.columns.map((column, j) => [column.name, shownValue(column, row[j])]));
  }

  /** Features of complete raw rows, written into `out` where it is given. */
  features<Numbers extends Float64Array | Float32Array = Float64Array>(raw: Matrix, out?: Numbers): Numbers {
    const width = this.nFeatures;
    const made = out ?? (new Float64Array(raw.rows * width) as Numbers);
    made.fill(0);
    for (const [j, column] of this.columns.entries()) {
      const start = this.starts[j];
      if (column.kind === "categorical") {
        const last = column.levels.length - 1;
        for (let r = 0, at = j; r < raw.rows; r++, at += raw.columns) {
          made[r * width + start + Math.trunc(Math.min(Math.max(raw.data[at], 0), last))] = 1;
        }
        continue;
      }
      const range = column.high - column.low;
      for (let r = 0, at = j; r < raw.rows; r++, at += raw.columns) {
        const code = column.codes.length ? column.codes.indexOf(raw.data[at]) : -1;
        if (code < 0) made[r * width + start] = (raw.data[at] - column.low) / range;
        else made[r * width + start + 1 + code] = 1;
      }
    }
    return made;
  }

  /** The raw rows nearest to these features: de-scaled, rounded, clipped; the largest entry of each one-hot group. */
  unfeature(features: Matrix): Matrix {
    const raw = matrix(features.rows, this.nColumns);
    for (let r = 0; r < features.rows; r++) {
      const encoded = rowOf(features, r);
      for (const [j, column] of this.columns.entries()) {
        const own = encoded.subarray(this.starts[j], this.starts[j + 1]);
        raw.data[r * this.nColumns + j] = column.kind === "categorical" ? largest(own) : numberOf(column, own);
      }
    }
    return raw;
  }

  /** Raw rows with NaN where a column says that models are given NaN for what is missing. */
  valuesForModels(raw: Matrix): Matrix {
    const made = matrix(raw.rows, raw.columns, raw.data.slice());
    for (const [j, column] of this.columns.entries()) {
      if (!column.asNan) continue;
      const blank = policyValue(column);
      for (let at = j; at < made.data.length; at += made.columns) if (made.data[at] === blank) made.data[at] = NaN;
    }
    return made;
  }
}

/** A value as the raw row holds it, or a SchemaError: what was given, what is allowed. */
export function readValue(column: Column, given: unknown): number {
  const blank = given === null || given === undefined || given === "" || (typeof given === "number" && Number.isNaN(given));
  if (blank && column.missing !== null) return policyValue(column);
  const value = column.kind === "categorical" ? levelIndex(column, given) : quantityOf(column, given);
  const fits = column.kind === "categorical" ? !Number.isNaN(value) : isAllowed(column, value);
  if (fits) return value + 0; // -0 becomes 0
  const said = blank ? "not given" : typeof given === "string" ? `'${given}'` : String(given);
  throw new SchemaError(`column '${column.name}' is ${said}; it must be ${allowed(column)}`, column.name);
}

/** What a value may be, in words. */
export function allowed(column: Column): string {
  if (column.kind === "categorical") {
    const most = 12;
    const more = column.levels.length > most ? ` and ${column.levels.length - most} more` : "";
    return `one of ${column.levels.slice(0, most).map((level) => (typeof level === "string" ? `'${level}'` : levelText(level))).join(", ")}${more}`;
  }
  const codes = column.codes.length ? `, or a code: ${column.codes.join(", ")}` : "";
  if (column.date) return `a date between ${dateText(column.low)} and ${dateText(column.high)}${codes}`;
  return `${column.integer ? "a whole number" : "a number"} between ${column.low} and ${column.high}${codes}`;
}

/** One raw value as a person reads it. */
export function shownValue(column: Column, raw: number): Level {
  if (column.kind === "categorical") return column.levels[raw];
  return column.date && !column.codes.includes(raw) ? dateText(raw) : raw;
}

/** What stands for a missing value in a raw row; NaN where nothing does. */
export function policyValue(column: Column): number {
  if (column.missing === null) return NaN;
  return column.kind === "categorical" ? column.levels.indexOf(column.missing) : Number(column.missing);
}

/** A level as Python writes it. */
export function levelText(level: Level): string {
  return typeof level === "boolean" ? (level ? "True" : "False") : String(level);
}

/** The nearest whole number, halves to the even one, as NumPy rounds. */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

export function dateText(days: number): string {
  const date = new Date(Math.round(days) * 86_400_000);
  return Number.isNaN(date.getTime()) ? String(days) : date.toISOString().slice(0, 10);
}

function nFeaturesOf(column: Column): number {
  return column.kind === "numeric" ? 1 + column.codes.length : column.levels.length;
}

function isAllowed(column: NumericColumn, value: number): boolean {
  const inside = value >= column.low && value <= column.high && (!column.integer || Number.isInteger(value));
  return inside || column.codes.includes(value);
}

/** The number that a value is or reads as; of a column of dates, the day; NaN when it is none. */
function quantityOf(column: NumericColumn, given: unknown): number {
  const number = plainNumber(given);
  return column.date && Number.isNaN(number) && typeof given === "string" ? dayOf(given) : number;
}

function plainNumber(given: unknown): number {
  if (typeof given === "number") return given;
  if (typeof given === "boolean") return Number(given);
  const text = typeof given === "string" ? given.trim() : "";
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
}

function dayOf(text: string): number {
  const found = /^\s*(\d{4})-(\d{2})-(\d{2})\s*$/.exec(text);
  if (found === null) return NaN;
  const [year, month, day] = found.slice(1).map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isReal = year > 0 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isReal ? date.getTime() / 86_400_000 : NaN;
}

/** The index of the level that a value is or spells; NaN when there is none. Python: `schema.reading.Matcher`. */
function levelIndex(column: CategoricalColumn, given: unknown): number {
  const { levels } = column;
  const spelled = (text: string): number => levels.findIndex((level) => levelText(level) === text);
  const isNumber = (number: number): number => levels.findIndex((level) => typeof level !== "string" && Number(level) === number);
  let found = -1;
  if (typeof given === "string") {
    found = spelled(given);
    if (found < 0 && /^(true|false)$/i.test(given)) {
      found = levels.findIndex((level) => typeof level === "boolean" && sameTruth(level, given));
    }
    if (found < 0) found = isNumber(plainNumber(given));
  } else if (typeof given === "number" || typeof given === "boolean") {
    found = isNumber(Number(given));
    if (found < 0) found = spelled(String(Number(given)));
    if (found < 0 && typeof given === "boolean") found = spelled(levelText(given));
  }
  return found < 0 ? NaN : found;
}

function sameTruth(level: boolean, text: string): boolean {
  const own = String(level);
  return text === own || text === own.toUpperCase();
}

function largest(values: Float64Array): number {
  let best = 0;
  for (let k = 1; k < values.length; k++) if (values[k] > values[best]) best = k;
  return best;
}

/** A number of features, as `Layout.unfeature` finds it: the code where its feature exceeds (1 + s^2)/2. */
function numberOf(column: NumericColumn, own: Float64Array): number {
  const scaled = own[0];
  if (column.codes.length) {
    const code = largest(own.subarray(1));
    const beyond = scaled - Math.min(Math.max(scaled, 0), 1);
    if (2 * own[1 + code] > 1 + scaled ** 2 - beyond ** 2) return column.codes[code];
  }
  const value = column.low + scaled * (column.high - column.low);
  return Math.min(Math.max(column.integer ? roundHalfEven(value) : value, column.low), column.high);
}

// --- reading declarations ------------------------------------------------------------------------------------------------

function columnFromJson(given: unknown): Column {
  if (!isObject(given) || typeof given.name !== "string") throw new SchemaError("a column of the schema has no name");
  const { name } = given;
  const wrong = (what: string): SchemaError => new SchemaError(`column '${name}' of the schema has ${what}`, name);
  const text = (field: string): string => {
    const value = given[field] ?? "";
    if (typeof value !== "string") throw wrong(`a ${field} that is no text`);
    return value;
  };
  const change = text("change") || "any";
  if (!isChange(change)) throw wrong(`the change '${change}'`);
  const labels = given.value_labels ?? {};
  if (!isObject(labels) || !Object.values(labels).every((label) => typeof label === "string")) throw wrong("labels that are no texts");
  const declared = {
    name,
    change,
    asNan: given.as_nan === true,
    label: text("label"),
    description: text("description"),
    valueLabels: labels as Record<string, string>,
  };
  const missing = given.missing ?? null;
  if (given.kind === "numeric") {
    const { low, high } = given;
    const codes = given.codes ?? [];
    if (!isFiniteNumber(low) || !isFiniteNumber(high) || low >= high) throw wrong("no bounds, or bounds that do not rise");
    if (!Array.isArray(codes) || !codes.every(isFiniteNumber)) throw wrong("codes that are no numbers");
    if (missing !== null && !isFiniteNumber(missing)) throw wrong("a number for missing values that is none");
    const facts = { low, high, codes, missing, integer: given.integer === true, date: given.date === true, unit: text("unit") };
    return { kind: "numeric", ...declared, ...facts };
  }
  const { levels } = given;
  if (given.kind !== "categorical" || !Array.isArray(levels) || levels.length === 0 || !levels.every(isLevel)) {
    throw wrong("neither bounds nor levels");
  }
  if (missing !== null && (!isLevel(missing) || !levels.includes(missing))) throw wrong("a level for missing values that is none");
  return { kind: "categorical", ...declared, levels, missing, ordered: given.ordered === true };
}

const RULE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  link: ["column", "other", "values"],
  "at least": ["larger", "smaller"],
  within: ["column", "low", "high"],
  group: ["name", "columns"],
};

function ruleFromJson(given: unknown): Rule {
  const fields = isObject(given) && typeof given.rule === "string" ? RULE_FIELDS[given.rule] : undefined;
  if (!isObject(given) || fields === undefined || !fields.every((field) => field in given)) {
    throw new SchemaError(`a rule of the schema must be one of ${Object.keys(RULE_FIELDS).join(", ")}, with all its fields`);
  }
  return given as unknown as Rule;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isLevel(value: unknown): value is Level {
  return typeof value === "string" || typeof value === "boolean" || isFiniteNumber(value);
}

function isChange(text: string): text is Change {
  return ["any", "never", "up", "down"].includes(text);
}
