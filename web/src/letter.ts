/**
 * A person's page in words: the decision, the reasons that matter, what would have changed it.
 *
 * The same rules and sentences as Python's `vitrail.show.letter`, which says why they are as they are; both are held to
 * web/golden/letters.json. Facts are plain values: what Python knows when the page is written, and what was computed here.
 */
import { Catalogue, decimalsFor, shownText, type CatalogueFacts } from "./catalogue";
import { dateText, shownValue, type Column, type Level } from "./schema";

const LEAST_SHARE = 0.05;
const MOST_CHANGES = 8;
const LEAST_REASONS = 2;

/** Words of a column or a group, with those of the schema where the owner has none (`PageWords.of`). */
export interface ColumnFacts {
  readonly label: string;
  readonly unit: string;
  readonly subject: string;
  readonly text: string;
  readonly code: string;
  readonly reason: string;
  readonly values: Readonly<Record<string, string>>;
  /** Whether its values are numbers, days among them; `codes` are numbers that are no quantities. */
  readonly numeric: boolean;
  readonly date: boolean;
  readonly codes: readonly number[];
}

export interface WordsFacts {
  readonly decision: string;
  readonly above: string;
  readonly below: string;
  readonly classes: Readonly<Record<string, string>>;
  readonly good: "" | "above" | "below";
  readonly threshold: number | null;
  readonly unit: string;
  readonly sender: string;
  readonly footer: string;
  readonly mostReasons: number;
}

/** What is the same for every person. */
export interface PageFacts {
  readonly catalogue: CatalogueFacts;
  readonly words: WordsFacts;
  readonly columns: Readonly<Record<string, ColumnFacts>>;
  readonly model: string;
  readonly range: readonly [number, number];
  readonly border: number;
}

export interface ContributionFacts {
  readonly column: string;
  readonly value: number;
  readonly lower: number | null;
  readonly upper: number | null;
  readonly certain: boolean;
}

/** Contributions in the order in which they are declared. */
export interface ExplanationFacts {
  readonly method: string;
  readonly base: number;
  readonly total: number;
  readonly tooLittle: boolean;
  /** Whether bands claim to hold 95 times in 100. */
  readonly calibrated: boolean;
  readonly contributions: readonly ContributionFacts[];
  /** By column or group, what the person has. */
  readonly shown: Readonly<Record<string, Level | null>>;
}

export interface ChangesFacts {
  /** The class that the model puts the person in, and the one that was asked for. */
  readonly found: Level;
  readonly wanted: Level;
  readonly answers: readonly AnswerFacts[];
}

export interface AnswerFacts {
  readonly output: number;
  readonly changes: readonly (readonly [column: string, before: Level | null, after: Level | null])[];
}

export interface PersonFacts {
  readonly point: Readonly<Record<string, Level | null>>;
  readonly output: number | null;
  readonly askedModel: boolean;
  readonly explanation: ExplanationFacts | null;
  readonly changes: ChangesFacts | null;
}

export interface Reason {
  readonly column: string;
  readonly sentence: string;
  readonly value: number;
  readonly amount: string;
  readonly giveOrTake: string;
  readonly certain: boolean;
  /** Whether it counted for the person; null where nobody said which side is good. */
  readonly good: boolean | null;
  readonly text: string;
  readonly code: string;
  readonly official: string;
}

/** A reason as a bar: places are per cent of the width. */
export interface LetterBar {
  readonly text: string;
  readonly reason: Reason;
  readonly start: number;
  readonly width: number;
  readonly zero: number;
  readonly band: readonly [number, number] | null;
  readonly side: "up" | "down" | "good" | "bad";
}

export interface ChangeText {
  readonly label: string;
  readonly after: string;
  readonly before: string;
}

export class Letter {
  readonly catalogue: Catalogue;
  readonly reasons: readonly Reason[];
  readonly told: readonly Reason[];
  private readonly say: Catalogue["say"];

  constructor(
    readonly page: PageFacts,
    readonly person: PersonFacts,
  ) {
    this.catalogue = new Catalogue(page.catalogue);
    this.say = (sentence, values) => this.catalogue.say(sentence, values);
    const e = person.explanation;
    const sorted = e === null || e.tooLittle ? [] : [...e.contributions].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    this.reasons = sorted.filter((one) => one.value !== 0).map((one) => this.reasonOf(one));
    this.told = this.chosen();
  }

  // --- the decision ------------------------------------------------------------------------------------------------------

  get threshold(): number {
    return this.page.words.threshold ?? this.page.border;
  }

  /** The decision in the owner's words; empty where they have none for it. */
  get outcome(): string {
    const { words } = this.page;
    const { changes, output } = this.person;
    if (Object.keys(words.classes).length && changes !== null) return words.classes[shownText(changes.found)] ?? "";
    return output === null ? "" : output >= this.threshold ? words.above : words.below;
  }

  get isGood(): boolean | null {
    const { good } = this.page.words;
    if (good === "" || this.person.output === null) return null;
    return this.person.output >= this.threshold === (good === "above");
  }

  get title(): string {
    const { words, model } = this.page;
    const { output, askedModel } = this.person;
    const name = words.decision || model;
    if (this.outcome) return `${name}: ${this.outcome}`;
    if (output === null || !askedModel) return words.decision || this.say("{model}, explained for one person", { model });
    return this.say("{model} says {output}", { model: name, output: this.shown(output) });
  }

  /** What the result is, where it decides, and what reasons add up to. */
  get lead(): string[] {
    const { words, model, range } = this.page;
    const { output, askedModel, explanation: e } = this.person;
    if (output === null) return [];
    const said: string[] = [];
    const own = this.shown(output);
    if (words.above && words.below) {
      const given = { output: own, threshold: this.shown(this.threshold), above: words.above, below: words.below };
      said.push(this.say("Your result is {output}. From {threshold} on it is “{above}”, below that “{below}”.", given));
    } else if (askedModel) {
      const given = { model, output: own, low: this.shown(range[0]), high: this.shown(range[1]) };
      said.push(this.say("{model} says {output}, on a scale from {low} to {high}.", given));
    } else {
      said.push(this.say("The explanation puts the output at {output}.", { output: own }));
    }
    if (e !== null && !e.tooLittle) said.push(this.start(e));
    return said;
  }

  private start(e: ExplanationFacts): string {
    const base = this.shown(e.base);
    if (e.method === "shapley") {
      return this.say("On average over the people in the data it is {base}; your own entries make the difference.", { base });
    }
    const given = { base, total: this.shown(e.total) };
    return this.say("The explanation starts at {base} and adds up to {total}, which is not exactly the result.", given);
  }

  /** That there is too little to tell; empty where there is not. */
  get tooLittle(): string {
    if (!this.person.explanation?.tooLittle) return "";
    return this.say("There is too little data to tell the reasons at this price of privacy, so none are listed. The result is the model's own answer all the same.");
  }

  // --- reasons -----------------------------------------------------------------------------------------------------------

  private reasonOf(one: ContributionFacts): Reason {
    const words = this.wordsOf(one.column);
    const { good: side } = this.page.words;
    const good = side === "" ? null : one.value > 0 === (side === "above");
    const half = one.lower === null || one.upper === null ? null : (one.upper - one.lower) / 2;
    return {
      column: one.column,
      sentence: this.sentence(words, this.own(one.column), one.value > 0, good),
      value: one.value,
      amount: this.amount(one.value),
      giveOrTake: half === null ? "" : this.amount(half, { sign: false, like: one.value, unit: false }),
      certain: one.certain,
      good,
      text: words.text,
      code: words.code,
      official: words.reason,
    };
  }

  /** What the person has in a column, or in the columns of a group, in words. */
  private own(column: string): string {
    return this.valueText(column, this.person.explanation?.shown[column] ?? null);
  }

  private sentence(words: ColumnFacts, value: string, up: boolean, good: boolean | null): string {
    if (words.subject) {
      const given = { subject: words.subject.replaceAll("{value}", value) };
      if (good === null) return up ? this.say("{subject} raised the result.", given) : this.say("{subject} lowered the result.", given);
      return good ? this.say("{subject} counted in your favour.", given) : this.say("{subject} counted against you.", given);
    }
    const given = { label: words.label, value };
    if (good === null) return up ? this.say("“{label}: {value}” raised the result.", given) : this.say("“{label}: {value}” lowered the result.", given);
    return good ? this.say("“{label}: {value}” counted in your favour.", given) : this.say("“{label}: {value}” counted against you.", given);
  }

  /** The reasons that are told in sentences, in their order. */
  private chosen(): Reason[] {
    const whole = this.reasons.reduce((sum, reason) => sum + Math.abs(reason.value), 0);
    const telling = this.reasons.filter((reason) => reason.certain && Math.abs(reason.value) >= LEAST_SHARE * whole);
    if (!telling.length) return this.reasons.slice(0, LEAST_REASONS);
    const most = this.page.words.mostReasons;
    const outcome = this.isGood;
    if (outcome === null) return telling.slice(0, most);
    const first = telling.filter((reason) => reason.good === outcome);
    const others = telling.filter((reason) => reason.good !== outcome);
    const kept = others.length
      ? [...first.slice(0, most - 1), ...others.slice(0, Math.max(1, most - first.length))]
      : first.slice(0, most);
    return kept.slice(0, Math.max(most, LEAST_REASONS));
  }

  /** The told reasons under their headings. */
  get toldParts(): [heading: string, told: Reason[]][] {
    if (!this.page.words.good) return this.told.length ? [[this.say("The reasons that matter most"), [...this.told]]] : [];
    const heading = (side: boolean): string => (side ? this.say("What counted in your favour") : this.say("What counted against you"));
    const parts = (this.isGood ? [true, false] : [false, true]).map(
      (side): [string, Reason[]] => [heading(side), this.told.filter((reason) => reason.good === side)],
    );
    return parts.filter(([, told]) => told.length);
  }

  /** What all other columns add together; empty where there are none. */
  get rest(): string {
    const names = new Set(this.told.map((reason) => reason.column));
    const others = this.reasons.filter((reason) => !names.has(reason.column));
    if (!others.length || !this.told.length) return "";
    return this.say("All other entries together: {amount}.", { amount: this.amount(others.reduce((sum, one) => sum + one.value, 0)) });
  }

  /** What stands behind the plus-minus signs; empty without any. */
  get howSure(): string {
    const e = this.person.explanation;
    if (!this.told.length || e === null || e.contributions.every((one) => one.lower === null)) return "";
    if (e.calibrated) return this.say("Behind ±: how far noise may have moved a number, 95 times in 100, each number on its own.");
    return this.say("Behind ±: how far noise may have moved a number; a rough guide, which is not calibrated.");
  }

  /** Every reason as a bar, on one scale. */
  get bars(): LetterBar[] {
    const e = this.person.explanation;
    if (e === null || !this.reasons.length) return [];
    const ends = new Map(e.contributions.map((one) => [one.column, one]));
    const places = [0, ...this.reasons.map((reason) => reason.value)];
    for (const reason of this.reasons) {
      const { lower, upper } = ends.get(reason.column)!;
      if (lower !== null) places.push(lower);
      if (upper !== null) places.push(upper);
    }
    const low = Math.min(...places);
    const unit = 100 / (Math.max(...places) - low || 1);
    return this.reasons.map((reason) => {
      const { lower, upper } = ends.get(reason.column)!;
      return {
        text: `${this.wordsOf(reason.column).label}: ${this.own(reason.column)}`,
        reason,
        start: (Math.min(0, reason.value) - low) * unit,
        width: Math.abs(reason.value) * unit,
        zero: -low * unit,
        band: lower === null || upper === null ? null : [(lower - low) * unit, (upper - lower) * unit],
        side: reason.good === null ? (reason.value > 0 ? "up" : "down") : reason.good ? "good" : "bad",
      };
    });
  }

  /** Declared reason codes of what counted against the person, the largest first, with their wording. */
  get reasonCodes(): [code: string, text: string][] {
    const made = new Map<string, [string, string]>();
    if (this.isGood === true) return []; // nobody has to be told why they were approved
    for (const one of this.reasons) {
      if (one.good !== false || !one.certain || !one.code) continue;
      const text = one.official || one.sentence;
      made.set(JSON.stringify([one.code, text]), [one.code, text]);
    }
    return [...made.values()];
  }

  // --- what would have changed it ----------------------------------------------------------------------------------------

  /** What would lead to the other outcome: answers, each a few changes. */
  get answers(): ChangeText[][] {
    const told = (this.person.changes?.answers ?? []).filter((one) => one.changes.length > 0 && one.changes.length <= MOST_CHANGES);
    return told.map((one) =>
      one.changes.map(([column, before, after]) => ({
        label: this.wordsOf(column).label,
        after: this.valueText(column, after),
        before: this.valueText(column, before),
      })),
    );
  }

  /** The outcome that answers lead to, in words. */
  get wanted(): string {
    const { changes, output } = this.person;
    const { words } = this.page;
    if (changes === null) return "";
    const own = words.classes[shownText(changes.wanted)];
    if (own !== undefined) return own;
    const isBelow = output !== null && output < this.threshold;
    const crosses = changes.answers.length > 0 && changes.answers.every((one) => one.output >= this.threshold === isBelow);
    if (words.above && words.below && output !== null && crosses) return isBelow ? words.above : words.below;
    return shownText(changes.wanted);
  }

  get changesHeading(): string {
    return this.isGood ? this.say("What would change it") : this.say("What would have changed it");
  }

  get changesLead(): string {
    const { answers, wanted } = this;
    if (!answers.length) return this.say("No small change was found that leads to another outcome.");
    if (answers.length === 1) return this.say("This would lead to “{wanted}”, everything else unchanged:", { wanted });
    return this.say("Any one of these would lead to “{wanted}”, everything else unchanged:", { wanted });
  }

  /** The person's own values, in words. */
  get entries(): [label: string, value: string][] {
    return Object.entries(this.person.point).map(([name, value]) => [this.wordsOf(name).label, this.valueText(name, value)]);
  }

  // --- numbers -----------------------------------------------------------------------------------------------------------

  /** Whether outputs are shown as per cent. */
  get isShare(): boolean {
    const [low, high] = this.page.range;
    return !this.page.words.unit && low >= 0 && high <= 1;
  }

  /** An output in words. */
  shown(output: number): string {
    if (this.isShare) return this.catalogue.perCent(output, (output >= 0.01 && output <= 0.99) || output === 0 || output === 1 ? 0 : 1);
    return `${this.catalogue.number(output)} ${this.page.words.unit}`.trimEnd();
  }

  /** A difference of outputs in words; `like` gives the decimals. */
  amount(value: number, { sign = true, like, unit = true }: { sign?: boolean; like?: number; unit?: boolean } = {}): string {
    const scaled = this.isShare ? 100 * value : value;
    const model = this.isShare ? 100 * (like ?? value) : like || value;
    const decimals = Math.abs(model) < 10 || !this.isShare ? decimalsFor(model, 2) : 0;
    const text = this.catalogue.number(scaled, Math.min(decimals, 4), sign);
    if (!unit) return text;
    return this.isShare ? this.say("{number} points", { number: text }) : `${text} ${this.page.words.unit}`.trimEnd();
  }

  wordsOf(column: string): ColumnFacts {
    const known = this.page.columns[column];
    if (known === undefined) throw new Error(`there are no words for the column '${column}'`);
    return known;
  }

  /** A value of a column, in words; its numbers with their unit, or bare. */
  valueText(column: string, value: Level | null, bare = false): string {
    const words = this.wordsOf(column);
    const text = shownText(value);
    const worded = words.values[text] || (typeof value === "number" ? words.values[`${text}.0`] : undefined);
    if (worded !== undefined) return worded;
    if (!words.numeric || typeof value !== "number" || words.codes.includes(value)) return text;
    if (words.date) return dateText(value);
    return `${this.catalogue.number(value)} ${bare ? "" : words.unit}`.trimEnd();
  }
}

/** A raw value as letters take it: levels as they are called; days stay numbers, which the letter writes. */
export function valueOf(column: Column, raw: number): Level {
  return column.kind === "numeric" ? raw : shownValue(column, raw);
}
