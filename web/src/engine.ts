/**
 * Everything that is computed for a person, in the order in which a page shows it: the answer, reasons with the first rows,
 * what would change it, reasons with all rows. Runs in the Worker.
 *
 * A newer question ends an older one: between calls of the model the engine lets messages in, and work that nobody waits for
 * any more is given up.
 */
import * as ort from "onnxruntime-web/wasm";
import { Explainer, type Explanation } from "./explain";
import { shownText } from "./catalogue";
import { valueOf, type ChangesFacts, type ExplanationFacts } from "./letter";
import { openModel } from "./model";
import { readPane, readPrepared, type Pane, type Prepared } from "./rows";
import type { Level } from "./schema";
import { matrix, type Matrix, type Predict } from "./types";
import { searchOf } from "./what_if";

/** Stored rows behind the first reasons. */
export const FIRST_ROWS = 256;
/** Rows that the model is asked about before messages are let in. */
const ROWS_A_TURN = 2048;

/** The files that a page hands over. */
export interface EngineFiles {
  readonly pane: Uint8Array;
  readonly prepared: Uint8Array;
  readonly search: Uint8Array | null;
  readonly model: Uint8Array;
  readonly runtime: Uint8Array;
}

export interface StandingFacts {
  readonly column: string;
  readonly output: number;
  readonly halfWidth: number | null;
}

/** Looks for what would change the answer; asks the model as it is given. */
export type Search = (row: Float64Array, predict: Predict) => Promise<ChangesFacts>;

/** What was computed, piece by piece. */
export type Piece =
  | { readonly kind: "answer"; readonly output: number; readonly standings: readonly StandingFacts[] }
  | { readonly kind: "reasons"; readonly explanation: ExplanationFacts; readonly claim: string; readonly notes: readonly string[]; readonly nRows: number }
  | { readonly kind: "changes"; readonly changes: ChangesFacts };

/** A question that a newer one has replaced. */
class Outdated extends Error {}

export class Engine {
  private newest = 0;

  private constructor(
    readonly pane: Pane,
    readonly prepared: Prepared,
    private readonly predict: Predict,
    private readonly search: Search | null,
  ) {}

  static async open(files: EngineFiles): Promise<Engine> {
    ort.env.wasm.wasmBinary = files.runtime.buffer as ArrayBuffer; // the page hands over the whole of it
    const pane = await readPane(files.pane);
    const prepared = await readPrepared(files.prepared, pane);
    const predict = await openModel(files.model, prepared.model, pane.schema);
    const search = files.search === null ? null : await searchOf(files.search, pane);
    return new Engine(pane, prepared, predict, search);
  }

  private readonly explainers = new Map<number, Explainer>();

  /** One explainer for each number of rows, so that giving up one leaves the other whole. */
  private explainer(nRows: number): Explainer {
    let made = this.explainers.get(nRows);
    if (made === undefined) {
      made = new Explainer(this.pane, this.prepared, (rows) => this.unhurried(rows));
      this.explainers.set(nRows, made);
    }
    return made;
  }

  /** Asks the model in turns, and gives up where a newer question has come. */
  private async unhurried(rows: Matrix, question = this.newest): Promise<Float64Array> {
    const made = new Float64Array(rows.rows);
    for (let start = 0; start < rows.rows; start += ROWS_A_TURN) {
      if (start > 0) await messagesIn();
      if (question !== this.newest) throw new Outdated();
      const stop = Math.min(start + ROWS_A_TURN, rows.rows);
      const some = rows.data.subarray(start * rows.columns, stop * rows.columns);
      made.set(await this.predict(matrix(stop - start, rows.columns, some)), start);
    }
    return made;
  }

  /** Computes everything for a raw row, and hands it over piece by piece. Ends early where a newer question has come. */
  async ask(row: Float64Array, hand: (piece: Piece) => void): Promise<void> {
    const question = ++this.newest;
    const next = async (): Promise<void> => {
      await messagesIn();
      if (question !== this.newest) throw new Outdated();
    };
    try {
      const [output] = await this.predict(matrix(1, row.length, row));
      hand({ kind: "answer", output, standings: this.standings(row) });
      const first = Math.min(FIRST_ROWS, this.prepared.background);
      await next();
      hand(await this.reasons(row, first, question));
      await next();
      if (this.search !== null) hand({ kind: "changes", changes: await this.search(row, (rows) => this.unhurried(rows, question)) });
      await next();
      if (first < this.prepared.background) hand(await this.reasons(row, this.prepared.background, question));
    } catch (error) {
      if (!(error instanceof Outdated)) throw error;
    }
  }

  private standings(row: Float64Array): StandingFacts[] {
    const found = this.explainer(FIRST_ROWS).standings(row);
    return [...found].map(([column, { value, halfWidth }]) => ({ column, output: value, halfWidth }));
  }

  private async reasons(row: Float64Array, nRows: number, question: number): Promise<Piece> {
    const found = await this.explained(row, nRows, question);
    const total = found.contributions.reduce((sum, one) => sum + one.value, found.base);
    return {
      kind: "reasons",
      explanation: {
        method: "shapley",
        base: found.base,
        total,
        tooLittle: found.tooLittle !== "",
        calibrated: found.claim !== "not calibrated",
        contributions: found.contributions.map(({ player, value, lower, upper, certain }) => ({ column: player, value, lower, upper, certain })),
        shown: this.shown(row),
      },
      claim: found.claim,
      notes: [...(found.tooLittle ? [found.tooLittle] : []), ...found.notes],
      nRows,
    };
  }

  /** What is the same for everybody may have been begun, and given up, for a question before: then it is begun again. */
  private async explained(row: Float64Array, nRows: number, question: number): Promise<Explanation> {
    for (;;) {
      try {
        return await this.explainer(nRows).explain(row, nRows);
      } catch (error) {
        if (!(error instanceof Outdated) || question !== this.newest) throw error;
      }
    }
  }

  /** By player what the person has there: the value of its column, or those of all its columns in a row. */
  private shown(row: Float64Array): Record<string, Level> {
    const { columns } = this.pane.schema;
    const value = (j: number): Level => valueOf(columns[j], row[j]);
    return Object.fromEntries(
      this.prepared.players.map(({ name, columns: own }) => [name, own.length === 1 ? value(own[0]) : own.map((j) => shownText(value(j))).join(", ")]),
    );
  }
}

/** Lets messages in: a promise alone would go on before them. */
function messagesIn(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}
