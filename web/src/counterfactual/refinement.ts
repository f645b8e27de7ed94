/**
 * Answers that say no more than they must: changes undone, numbers taken back, and a choice of different ones. Mirrors
 * `solve.counterfactual.refinement`: the same tries in the same order, one call of the model for all rows of a step.
 */
import { range, sameNumbers, stableOrder } from "./numbers";
import { candidates, firstOfEach, nearestFew, setOf, type Row, type Search } from "./search";

/** Valid candidates that are refined, at most. */
const REFINED = 48;
/** Changes up to which pairs are undone too. */
const PAIRED = 64;
/** Parts that an interval of a number is cut into, each time; how often, at most; when a fraction of the way is no more. */
const PARTS = 16;
const STEPS = 6;
const CLOSE = 2 ** -12;
/** Numbers of an answer that are taken back one by one, at most. */
const TAKEN_BACK = 16;
/** Times that undoing and taking back follow each other, at most. */
const ROUNDS = 5;

/** Up to `total` valid rows that change different columns, the best first; and whether they come from random ones. */
export async function find(search: Search, total: number): Promise<{ rows: Row[]; isRandom: boolean }> {
  const { alike, moves, isRandom } = await candidates(search, total);
  const start = nearestFew(search, [...alike, ...moves], Math.max(REFINED, 2 * total));
  // The nearest row of the class with its changes undone: nothing farther is told first. Rows are undone each on their own.
  const undone = await undo(search, [...start, ...nearestFew(search, alike, 1)]);
  const farthest = alike.length > 0 ? search.size(undone.pop()!) : Infinity;
  const refined = await refine(search, undone);
  return { rows: chosen(search, refined, total, farthest), isRandom };
}

/** Undone rows with no number that can be taken back, one for each set of columns. */
async function refine(search: Search, undone: readonly Row[]): Promise<Row[]> {
  const best = firstOfEach(search, undone, (k) => search.size(undone[k]), range(undone.length)).map((k) => undone[k]);
  let active = range(best.length);
  for (let round = 0; round < ROUNDS && active.length > 0; round++) {
    const smaller = await takeBack(search, active.map((line) => best[line]));
    const moved = range(active.length).filter((k) => !sameNumbers(smaller[k], best[active[k]]));
    active = moved.map((k) => active[k]);
    const rows = await undo(search, moved.map((k) => smaller[k]));
    active.forEach((line, k) => (best[line] = rows[k]));
  }
  return best;
}

// --- undoing -------------------------------------------------------------------------------------------------------------

/** Undoes single changes and pairs of them, until the model agrees to none. */
async function undo(search: Search, start: readonly Row[]): Promise<Row[]> {
  const best = [...start];
  let active = range(best.length);
  while (active.length > 0) {
    let singles = active;
    while (singles.length > 0) singles = await undoSingles(search, best, singles);
    active = await undoPairs(search, best, active);
  }
  return best;
}

/** A row of `best` with some players undone. */
interface Undone {
  readonly line: number;
  readonly players: readonly number[];
}

/** Undoes changes of these rows, in place, as many as go together; returns the rows that changed. */
async function undoSingles(search: Search, best: Row[], lines: readonly number[]): Promise<number[]> {
  const tries: Undone[] = [];
  for (const line of lines) {
    const players = changedPlayers(search, best[line]);
    // The last change that is left cannot be undone: nobody is in the wanted class before.
    if (players.length > 1) for (const player of players) tries.push({ line, players: [player] });
  }
  const may = await agreed(search, best, tries);
  const loose = new Map<number, number[]>();
  tries.forEach(({ line, players }, k) => may[k] !== null && loose.set(line, [...(loose.get(line) ?? []), players[0]]));
  // The largest 1, 2, 4, ... changes that can be undone alone, together.
  const together: Undone[] = [];
  for (const [line, players] of loose) {
    const sizes = search.sizes(best[line]);
    const largest = stableOrder(players, (player) => -sizes[player]);
    for (let length = 1; length < 2 * largest.length; length *= 2) together.push({ line, players: largest.slice(0, length) });
  }
  const rows = await agreed(search, best, together);
  const changed = new Map<number, Row>(); // the longest one of each row
  rows.forEach((row, k) => row !== null && changed.set(together[k].line, row));
  for (const [line, row] of changed) best[line] = row;
  return [...changed.keys()];
}

/** Undoes the largest pair of changes of each of these rows that the model lets go, in place; the rows that changed. */
async function undoPairs(search: Search, best: Row[], lines: readonly number[]): Promise<number[]> {
  const tries: (Undone & { size: number })[] = [];
  for (const line of lines) {
    const players = changedPlayers(search, best[line]);
    if (players.length <= 2 || players.length > PAIRED) continue;
    const sizes = search.sizes(best[line]);
    players.forEach((one, k) => {
      for (const other of players.slice(k + 1)) tries.push({ line, players: [one, other], size: sizes[one] + sizes[other] });
    });
  }
  const rows = await agreed(search, best, tries);
  const largest = new Map<number, { row: Row; size: number }>(); // of equal ones the first
  tries.forEach(({ line, size }, k) => {
    const row = rows[k];
    if (row !== null && size > (largest.get(line)?.size ?? -Infinity)) largest.set(line, { row, size });
  });
  for (const [line, { row }] of largest) best[line] = row;
  return [...largest.keys()];
}

function changedPlayers(search: Search, row: Row): number[] {
  return search.changed(row).flatMap((isChanged, player) => (isChanged ? [player] : []));
}

/** Rows with these players undone; null where the model or the rules do not agree. */
async function agreed(search: Search, best: readonly Row[], tries: readonly Undone[]): Promise<(Row | null)[]> {
  const { rules, own } = search;
  const made = tries.map(({ line, players }) => {
    const row = best[line].slice();
    for (const player of players) for (const column of rules.players[player]) row[column] = own[column];
    const settled = rules.settle(row);
    const [fewer, before] = [search.changed(settled), search.changed(best[line])];
    const isLess = fewer.every((now, player) => !now || before[player]) && fewer.some((now, player) => now !== before[player]);
    return isLess ? settled : null;
  });
  return keepValid(search, made);
}

/** The rows that the model puts in the wanted class; null for the others. */
async function keepValid(search: Search, rows: readonly (Row | null)[]): Promise<(Row | null)[]> {
  const valid = await search.valid(rows.filter((row) => row !== null));
  let k = 0;
  return rows.map((row) => (row !== null && valid[k++] ? row : null));
}

// --- taking back ---------------------------------------------------------------------------------------------------------

/** The largest numeric changes of each row moved back, one by one, as far as the model agrees. */
async function takeBack(search: Search, start: readonly Row[]): Promise<Row[]> {
  const best = [...start];
  const columns = start.map((row) => {
    const amounts = search.amounts(row);
    const numeric = range(row.length).filter((column) => !search.rules.facts.categorical[column] && amounts[column] > 0);
    return stableOrder(numeric, (column) => -amounts[column]).slice(0, TAKEN_BACK);
  });
  for (let place = 0; place < TAKEN_BACK; place++) {
    const lines = range(best.length).filter((line) => place < columns[line].length);
    if (lines.length === 0) break;
    await takeBackOne(search, best, lines.map((line) => new Interval(search, best[line], line, columns[line][place])));
  }
  return best;
}

/** Where the value nearest to the person's lies that the model agrees to: between one that it refused and one that it took. */
class Interval {
  refused: number;
  agreed: number;
  /** The columns that move along with the column. */
  readonly group: readonly number[];
  private readonly narrow: number;

  constructor(
    search: Search,
    row: Row,
    readonly line: number,
    readonly column: number,
  ) {
    this.group = search.rules.players[search.rules.playerOf[column]];
    this.refused = search.own[column];
    this.agreed = row[column];
    this.narrow = search.rules.facts.whole[column] ? 1 : CLOSE * Math.abs(this.agreed - this.refused);
  }

  get isOpen(): boolean {
    return Math.abs(this.agreed - this.refused) > this.narrow;
  }

  values(): number[] {
    return range(PARTS - 1).map((k) => this.refused + ((k + 1) / PARTS) * (this.agreed - this.refused));
  }
}

/** Searches each row's column for the value nearest to the person's that the model agrees to, in place. */
async function takeBackOne(search: Search, best: Row[], intervals: readonly Interval[]): Promise<void> {
  for (let step = 0; step < STEPS; step++) {
    const open = intervals.filter((interval) => interval.isOpen);
    if (open.length === 0) return;
    const values = open.map((interval) => interval.values());
    const tried = open.flatMap((interval, k) => values[k].map((value) => nearerRow(search, best[interval.line], interval, value)));
    const rows = await keepValid(search, tried);
    open.forEach((interval, k) => {
      const own = rows.slice(k * (PARTS - 1), (k + 1) * (PARTS - 1));
      const first = own.findIndex((row) => row !== null);
      const row = own[first];
      if (row) {
        best[interval.line] = row;
        interval.agreed = row[interval.column];
      }
      const refusals = row ? first : own.length;
      if (refusals > 0) interval.refused = values[k][refusals - 1];
    });
  }
}

/** A row with one value of a player, as the rules allow it; null unless it is nearer to the person. */
function nearerRow(search: Search, best: Row, { group, column }: Interval, value: number): Row | null {
  const { own, rules } = search;
  const row = best.slice();
  for (const member of group) row[member] = own[member];
  row[column] = value;
  const tried = rules.settle(row);
  if (tried.every((now, j) => Math.abs(now - own[j]) <= Math.abs(best[j] - own[j]))) return tried;
  // Linked columns have no amounts to compare.
  const differsInGroup = group.length > 1 && tried.every((now, j) => now === best[j] || group.includes(j));
  return differsInGroup && !sameNumbers(tried, own) ? tried : null;
}

// --- choosing ------------------------------------------------------------------------------------------------------------

/** The best answer, no farther than `farthest` if any is not; then each time the best that shares the fewest columns. */
function chosen(search: Search, refined: readonly Row[], total: number, farthest: number): Row[] {
  const cost = refined.map((row) => search.cost(row));
  const seen = new Set<string>();
  const first = stableOrder(range(refined.length), (k) => cost[k]).filter((k) => {
    const set = setOf(search, refined[k]);
    return !seen.has(set) && seen.add(set);
  });
  const changed = first.map((k) => search.changed(refined[k]));
  const isFar = first.map((k) => search.size(refined[k]) > farthest * (1 + 1e-9));
  const shared = first.map(() => 0);
  const picked: number[] = [];
  while (picked.length < Math.min(total, first.length)) {
    const worth = first.map((k, place) => {
      if (picked.includes(place) || (picked.length === 0 && isFar[place])) return Infinity;
      return picked.length > 0 ? cost[k] * (1 + shared[place]) : cost[k];
    });
    const best = worth.indexOf(Math.min(...worth));
    picked.push(best);
    changed.forEach((own, place) => {
      const both = own.filter((is, player) => is && changed[best][player]).length;
      const either = own.filter((is, player) => is || changed[best][player]).length;
      shared[place] = Math.max(shared[place], both / either);
    });
  }
  return picked.map((place) => refined[first[place]]);
}
