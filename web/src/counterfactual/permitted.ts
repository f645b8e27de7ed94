/**
 * What a person may change, kept by every row that a search looks at. Mirrors `solve.counterfactual.permitted`.
 *
 * A candidate is settled before a model sees it: every value that may not be what it is becomes the nearest permitted one,
 * or the person's own. Linked columns are one player: they change together and are undone together.
 */
import { roundHalfEven } from "../schema";
import { evenlySpaced, range, sameNumbers } from "./numbers";

/** Columns that follow from another one: `values[level][follower]` for each of its levels. */
export interface Following {
  readonly column: number;
  readonly followers: readonly number[];
  readonly values: readonly (readonly number[])[];
  readonly widths: readonly number[];
}

/** What Python prepared: lists by column, links and orders by column numbers. */
export interface RulesFacts {
  readonly vary: readonly boolean[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly up: readonly boolean[];
  readonly down: readonly boolean[];
  readonly whole: readonly boolean[];
  /** The schema's bounds, lowest and highest. A value outside them is a code, which has no order. */
  readonly bounds: readonly [readonly number[], readonly number[]];
  readonly codes: readonly (readonly number[])[];
  readonly categorical: readonly boolean[];
  /** Pairs of columns of which the first is at least the second. */
  readonly orders: readonly (readonly [number, number])[];
  readonly following: readonly Following[];
}

/** The rules for one person, whose own values are always permitted. */
export class Rules {
  /** By player the columns that change together, in the order of the column that they follow from. */
  readonly players: readonly (readonly number[])[];
  readonly playerOf: Int32Array;

  constructor(
    readonly facts: RulesFacts,
    readonly own: Float64Array,
  ) {
    const lead = range(own.length);
    for (const link of facts.following) for (const follower of link.followers) lead[follower] = link.column;
    const leads = [...new Set(lead.filter((_, column) => facts.vary[column]))].sort((one, other) => one - other);
    this.players = leads.map((of) => range(own.length).filter((column) => lead[column] === of));
    this.leads = leads;
    this.playerOf = Int32Array.from(lead, (of) => leads.indexOf(of));
  }

  /** The column of each player that its others follow from. */
  readonly leads: readonly number[];

  /** The permitted row nearest to a candidate. */
  settle(candidate: Float64Array): Float64Array {
    const { own, facts } = this;
    const settled = candidate.map((value, column) => this.each(column, value));
    if (facts.following.length === 0 && facts.orders.length === 0) return settled;
    for (const link of facts.following) this.follow(link, settled);
    for (const [larger, smaller] of facts.orders) this.order(larger, smaller, settled);
    // What is still broken goes back. Every round takes changes back, and a row without any breaks nothing.
    for (let broken = this.broken(settled); broken.length > 0; broken = this.broken(settled)) {
      for (const column of broken) settled[column] = own[column];
    }
    return settled;
  }

  /** Whether an answer keeps every rule. */
  isKept(answer: Float64Array): boolean {
    return sameNumbers(this.settle(answer), answer);
  }

  /** Values to try in a column: its levels, or evenly spaced numbers with both ends. */
  choices(column: number, count: number): Float64Array {
    const [low, high] = [this.facts.low[column], this.facts.high[column]];
    return this.facts.categorical[column] ? Float64Array.from(range(high + 1)) : evenlySpaced(low, high, count);
  }

  /** A value by its column's own rules. */
  private each(column: number, value: number): number {
    const { facts } = this;
    const own = this.own[column];
    const rounded = facts.whole[column] ? roundHalfEven(value) : value;
    if (!facts.vary[column] || rounded === own || !Number.isFinite(rounded)) return own;
    const codes = facts.codes[column];
    if (codes.length > 0) {
      const isOneWay = !(facts.up[column] && facts.down[column]);
      if (codes.includes(rounded) || (isOneWay && codes.includes(own))) return own;
    }
    const low = facts.down[column] ? facts.low[column] : Math.max(facts.low[column], own);
    const high = facts.up[column] ? facts.high[column] : Math.min(facts.high[column], own);
    return low <= high ? Math.min(Math.max(rounded, low), high) : own;
  }

  /** Lets followers follow a changed column; where they alone changed, the column follows them. */
  private follow(link: Following, settled: Float64Array): void {
    const { own } = this;
    const moved = link.followers.map((follower) => settled[follower] !== own[follower]);
    const leads = settled[link.column] !== own[link.column];
    if (!leads && !moved.includes(true)) return;
    if (!leads) settled[link.column] = this.nearestLevel(link, settled, moved);
    link.followers.forEach((follower, k) => (settled[follower] = link.values[settled[link.column]][k]));
  }

  /** The level nearest to a row's values in the followers that count; of equal ones the person's own. */
  private nearestLevel(link: Following, row: Float64Array, counted: readonly boolean[]): number {
    let [best, least] = [0, Infinity];
    link.values.forEach((values, level) => {
      let away = 0;
      values.forEach((value, k) => (away += (Math.abs(row[link.followers[k]] - value) / link.widths[k]) * Number(counted[k])));
      if (level === this.own[link.column]) away -= 1e-9;
      if (away < least) [best, least] = [level, away];
    });
    return best;
  }

  /** Moves the column that changed, the larger one if both did, to where the order holds. */
  private order(larger: number, smaller: number, settled: Float64Array): void {
    if (!this.isOutOfOrder(larger, smaller, settled)) return;
    const { whole } = this.facts;
    if (settled[larger] !== this.own[larger]) {
      settled[larger] = whole[larger] ? Math.ceil(settled[smaller]) : settled[smaller];
    } else {
      settled[smaller] = whole[smaller] ? Math.floor(settled[larger]) : settled[larger];
    }
  }

  private isOutOfOrder(larger: number, smaller: number, row: Float64Array): boolean {
    const [low, high] = this.facts.bounds;
    const pair = [larger, smaller];
    const isKnown = pair.every((column) => row[column] >= low[column] && row[column] <= high[column]);
    return isKnown && pair.some((column) => row[column] !== this.own[column]) && row[larger] < row[smaller];
  }

  /** The changed columns of every rule that a row breaks. */
  private broken(row: Float64Array): number[] {
    const { own, facts } = this;
    const broken = Array.from(row, (value, column) => this.each(column, value) !== value);
    for (const [larger, smaller] of facts.orders) {
      if (this.isOutOfOrder(larger, smaller, row)) broken[larger] = broken[smaller] = true;
    }
    for (const link of facts.following) {
      const group = [link.column, ...link.followers];
      const told = link.values[row[link.column]];
      const isTouched = group.some((column) => row[column] !== own[column]);
      const isApart = isTouched && link.followers.some((follower, k) => told[k] !== row[follower]);
      if (isApart || group.some((column) => broken[column])) for (const column of group) broken[column] = true;
    }
    return range(row.length).filter((column) => broken[column] && row[column] !== own[column]);
  }
}

/** The same rules where only these columns may change, besides what the schema forbids; of linked ones either names all. */
export function varying(facts: RulesFacts, columns: readonly number[]): RulesFacts {
  const named = facts.vary.map((_, column) => columns.includes(column));
  for (const link of facts.following) {
    const group = [link.column, ...link.followers];
    const isNamed = group.some((column) => named[column]);
    for (const column of group) named[column] = isNamed;
  }
  return { ...facts, vary: facts.vary.map((may, column) => may && named[column]) };
}
