/** What would have changed the model's answer, for one person, in the reader's own browser. */
import type { Level, Schema } from "../schema";
import { matrix, rowOf, type Predict } from "../types";
import { OPPOSITE, type Classes, type Desired } from "./classes";
import { range } from "./numbers";
import { Rules, varying } from "./permitted";
import { KEPT, Pool, type Draw, type PreparedSearch } from "./pool";
import { find } from "./refinement";
import { FEW_COLUMNS, Oracle, Search, type Row } from "./search";

export { OPPOSITE, type Desired } from "./classes";
export { readPreparedSearch, type PreparedSearch } from "./pool";

const MOST_ANSWERS = 100;

export interface Wish {
  /** A label, or "opposite": the other side, or of several classes the model's second choice. */
  readonly desiredClass?: Level;
  /** A range of outputs instead. */
  readonly desired?: Desired;
  /** How many answers, at most. */
  readonly total?: number;
  /** The names of the columns that may change, besides what the schema forbids. */
  readonly vary?: readonly string[];
  /** Ends an outdated search: looked at before every call of the model. */
  readonly signal?: AbortSignal;
}

/** One answer: a whole raw row that the model puts in the wanted class. */
export interface Answer {
  readonly row: Row;
  /** From the person, in the encoding. */
  readonly distance: number;
  /** Mean distance to the nearest private rows of the wanted class. */
  readonly plausibility: number;
  /** What the model says about the row; of several classes, for the wanted one. */
  readonly output: number;
}

export interface WhatIf {
  /** Whether nothing needs to change, answers were found, or no permitted change was. */
  readonly kind: "already" | "found" | "none";
  /** The numbers of the class that the person has and of the one that was asked for; of a range, 0 outside and 1 inside. */
  readonly current: number;
  readonly wanted: number;
  /** What the model says about the person. */
  readonly output: number;
  readonly answers: readonly Answer[];
  /** Whether answers come from random rows, which are others in Python. */
  readonly isRandom: boolean;
  /** Of how many rows the model was asked, in how many calls. */
  readonly asked: { readonly rows: number; readonly calls: number };
}

/** The search for anybody, with one model. Mirrors `solve.counterfactual.fitted`. */
export class Counterfactuals {
  /** What the model says of the rows that pools of ranges are taken from; asked when the first range is. */
  private readonly drawn = new Map<Draw, Float64Array>();

  /** `predict` gives as many numbers for a row, one after the other, as the model has outputs. */
  constructor(
    readonly schema: Schema,
    readonly prepared: PreparedSearch,
    private readonly predict: Predict,
  ) {}

  async find(person: Row, wish: Wish = {}): Promise<WhatIf> {
    const { schema, prepared } = this;
    const total = wish.total ?? 3;
    if (!Number.isInteger(total) || total < 1 || total > MOST_ANSWERS) {
      throw new Error(`total is ${total}; it must be a whole number between 1 and ${MOST_ANSWERS}`);
    }
    const names = wish.vary?.map((name) => schema.indexOf(name));
    const rules = new Rules(names === undefined ? prepared.rules : varying(prepared.rules, names), person);
    if (rules.players.length === 0) throw new Error("no column that was named may change; name one that may");
    if (rules.players.length > FEW_COLUMNS) {
      throw new Error(`${rules.players.length} columns may change; this page searches up to ${FEW_COLUMNS}: name fewer`);
    }
    const classes = wish.desired === undefined ? prepared.classes : prepared.classes.between(wish.desired, prepared.range);
    const oracle = new Oracle(this.predict, classes.count, wish.signal);
    const outputs = await oracle.ask([person]);
    const current = classes.index(outputs)[0];
    if (current < 0) throw new Error(`${prepared.model} returns no finite number for these values`);
    const wanted = wish.desired === undefined ? classes.wanted(wish.desiredClass ?? OPPOSITE, current, outputs) : 1;
    const told = { current, wanted, output: outputs[classes.count > 1 ? wanted : 0] };
    if (current === wanted) return { ...told, kind: "already", answers: [], isRandom: false, asked: { rows: 1, calls: 1 } };
    const pool = wish.desired === undefined ? prepared.pools[wanted] : await this.poolOf(classes, oracle);
    const search = new Search(schema, classes, rules, wanted, pool, oracle);
    const found = await find(search, total);
    const answers = await this.scored(search, found.rows);
    const asked = { rows: oracle.rows, calls: oracle.calls };
    return { ...told, kind: answers.length > 0 ? "found" : "none", answers, isRandom: found.isRandom, asked };
  }

  /** Answers that keep every rule, with what the model says of them: it was asked about each. */
  private async scored(search: Search, rows: readonly Row[]): Promise<Answer[]> {
    const { classes, target } = search;
    const outputs = await search.oracle.ask(rows);
    const index = classes.index(outputs);
    return rows
      .map((row, k) => ({
        row,
        distance: search.distance(row),
        plausibility: search.pool.distance(row),
        output: outputs[k * classes.count + (classes.count > 1 ? target : 0)],
      }))
      .filter(({ row }, k) => index[k] === target && search.rules.isKept(row));
  }

  /** Rows in a range of outputs. */
  private async poolOf(classes: Classes, oracle: Oracle): Promise<Pool> {
    const { schema, prepared } = this;
    if (prepared.draws.length === 0) throw new Error("this page was made without ranges of outputs; ask for a class instead");
    const [least, most] = prepared.range;
    const middle = (Math.max(classes.threshold, least) + Math.min(classes.highest ?? Infinity, most)) / 2;
    const like = Number(middle >= prepared.classes.threshold);
    const first = rowOf(prepared.prototypes, like);
    const kept: Row[] = classes.index(await oracle.ask([first]))[0] === 1 ? [first] : [];
    for (const draw of prepared.draws.filter((each) => each.like === null || each.like === like)) {
      if (kept.length >= draw.enough) break;
      const index = classes.index(await this.outputsOf(draw, oracle));
      for (const r of range(draw.rows.rows)) if (index[r] === 1) kept.push(rowOf(draw.rows, r));
    }
    const rows = matrix(Math.min(kept.length, KEPT), schema.nColumns);
    kept.slice(0, KEPT).forEach((row, r) => rows.data.set(row, r * schema.nColumns));
    return new Pool(schema, rows, prepared.pools[like].prototype);
  }

  private async outputsOf(draw: Draw, oracle: Oracle): Promise<Float64Array> {
    const known = this.drawn.get(draw) ?? (await oracle.ask(range(draw.rows.rows).map((r) => rowOf(draw.rows, r))));
    this.drawn.set(draw, known);
    return known;
  }
}
