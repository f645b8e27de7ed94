/** Why the model says what it says of a person: values, bands, verdict and notes (Python: `solve.shapley.reasons`). */
import { Bands } from "./bands";
import { Correction, isAbout } from "./correction";
import { curvesOf, standingOn, type Curve, type Standing } from "./curves";
import { firstRows, type Pane, type Prepared } from "./rows";
import { Background, type RowValues } from "./shapley";
import type { Predict } from "./types";
import { general, judge, tooLittle, TWO_SIDED_95, type Verdict } from "./verdict";

/** Of a sum of contributions: differences of this size are rounding. */
const ROUNDING = 1e-9;

export interface Contribution {
  /** A column, or a declared group of columns. */
  readonly player: string;
  readonly value: number;
  readonly lower: number;
  readonly upper: number;
  readonly verdict: Verdict;
  /** Whether its band excludes 0 when the bands of all hold together. */
  readonly certain: boolean;
}

export interface Explanation {
  readonly output: number;
  /** The mean output that contributions start from. */
  readonly base: number;
  /** As declared. */
  readonly contributions: readonly Contribution[];
  /** Numbers of contributions in the order in which a page shows them: the largest first, as declared if mostly noise. */
  readonly order: readonly number[];
  /** The output minus base and contributions: rounding, where reasons are Shapley values. */
  readonly gap: number;
  readonly verdict: Verdict;
  readonly signal: number;
  /** The sentence that there is too little to tell; empty where there is not. */
  readonly tooLittle: string;
  /** What the bands claim. */
  readonly claim: string;
  readonly notes: readonly string[];
  /** Whether values were corrected by what real rows say. */
  readonly corrected: boolean;
  readonly nRows: number;
  /** How many hybrids the model was asked about. */
  readonly asked: number;
}

/** What of explanations is the same for everybody, for one number of rows. */
interface Ready {
  readonly background: Background;
  readonly bands: Bands;
  readonly correction: Correction | null;
  /** That values were held against real rows; or that they were not, and what that took off for another model. */
  readonly notes: readonly string[];
}

export class Explainer {
  readonly curves: ReadonlyMap<string, Curve>;
  private readonly ready = new Map<number, Promise<Ready>>();
  private readonly about: readonly (readonly number[])[];

  constructor(
    readonly pane: Pane,
    readonly prepared: Prepared,
    private readonly predict: Predict,
  ) {
    this.about = prepared.players.map((player) => player.columns);
    // Curves are about the model that the pane was made with.
    this.curves = pane.report !== null && prepared.model.own ? curvesOf(pane.report) : new Map<string, Curve>();
  }

  /** Asks the model about the rows, and computes what does not depend on a person; explaining does it if nobody did. */
  prepare(nRows: number): Promise<Ready> {
    if (!Number.isInteger(nRows) || nRows < 1 || nRows > this.prepared.background) {
      throw new Error(`${nRows} rows were asked for; this page has from 1 to ${this.prepared.background}`);
    }
    let made = this.ready.get(nRows);
    if (made === undefined) {
      made = this.makeReady(nRows);
      this.ready.set(nRows, made);
      made.catch(() => this.ready.delete(nRows));
    }
    return made;
  }

  /** Explains a raw row (`Schema.readPoint`) with the first rows of the pane as background. */
  async explain(point: Float64Array, nRows: number): Promise<Explanation> {
    const ready = await this.prepare(nRows);
    return this.explained(await ready.background.explain(point), ready, nRows);
  }

  /** Where a person stands on each curve, by column. */
  standings(point: Float64Array): Map<string, Standing> {
    const made = new Map<string, Standing>();
    for (const [name, curve] of this.curves) {
      const column = this.pane.schema.indexOf(name);
      const standing = standingOn(curve, this.pane.schema.columns[column], point[column]);
      if (standing !== null) made.set(name, standing);
    }
    return made;
  }

  private async makeReady(nRows: number): Promise<Ready> {
    const { pane, prepared, about } = this;
    const { words, model } = prepared;
    const background = new Background(firstRows(pane.rows.sampled, nRows), about, prepared.orders, this.predict);
    const outputs = await background.rowOutputs();
    const kept = pane.reasons === null ? nRows : Math.min(nRows, pane.reasons.perRow.rows);
    const bands = new Bands(pane.rows, prepared, kept);
    const bought = pane.reasons === null ? null : new Correction(pane.reasons, bands, about, nRows);
    if (bought !== null && pane.reasons !== null && model.reasons && isAbout(pane.reasons, outputs)) {
      return { background, bands, correction: bought, notes: [this.withSize(words.held_against_rows, bought)] };
    }
    const notes = bought === null ? [words.by_heart] : [words.by_heart, this.withSize(words.of_another, bought)];
    return { background, bands: kept === nRows ? bands : new Bands(pane.rows, prepared, nRows), correction: null, notes };
  }

  private explained(found: RowValues, { bands, correction, notes }: Ready, nRows: number): Explanation {
    const { players, words, widening } = this.prepared;
    const off = correction === null ? new Float64Array(players.length) : correction.takenOff;
    const errors = correction === null ? bands.standardErrors(found.perRow, this.about) : correction.standardErrors(found.perRow);
    const values = found.values.map((value, k) => value - off[k]);
    const lower = values.map((value, k) => value - TWO_SIDED_95 * errors[k]);
    const upper = values.map((value, k) => value + TWO_SIDED_95 * errors[k]);
    const base = found.base + off.reduce((sum, part) => sum + part, 0);
    const gap = found.output - (base + values.reduce((sum, value) => sum + value, 0));
    const judged = judge(values, lower, upper, widening);
    const isNoise = judged.verdict === "mostly noise";
    const order = players.map((_, k) => k);
    if (!isNoise) order.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b);
    return {
      output: found.output,
      base,
      contributions: players.map(({ name }, k) => ({
        player: name,
        value: values[k],
        lower: lower[k],
        upper: upper[k],
        verdict: judged.verdicts[k],
        certain: judged.certain[k],
      })),
      order,
      gap,
      verdict: judged.verdict,
      signal: judged.signal,
      tooLittle: isNoise ? tooLittle(judged) : "",
      claim: correction === null ? words.claim_of_another : words.claim,
      notes: [...caution(gap, values, found.output), words.links, ...notes],
      corrected: correction !== null,
      nRows,
      asked: found.asked,
    };
  }

  /** Words with what real rows take off most. */
  private withSize(text: string, correction: Correction): string {
    const sizes = correction.takenOff.map(Math.abs);
    const largest = sizes.indexOf(Math.max(...sizes));
    return text.replace("{size}", `at most ${general(sizes[largest], 2)} (${this.prepared.players[largest].name})`);
  }
}

/** A sentence where the gap is larger than every contribution, so that nobody takes the explanation for the model. */
function caution(gap: number, values: Float64Array, output: number): string[] {
  const largest = Math.max(...values.map(Math.abs));
  if (Math.abs(gap) - largest <= ROUNDING * Math.max(1, Math.abs(output))) return [];
  return [
    `This explanation misses the model's output by ${general(Math.abs(gap), 3)}, more than its largest contribution ` +
      `(${general(largest, 3)}): do not read it as the model's reasons.`,
  ];
}
