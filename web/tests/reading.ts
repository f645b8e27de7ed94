/** Golden files, for tests: what Python wrote with tools/make_golden.py. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readPane, readPrepared, type Pane, type Prepared } from "../src/rows";
import type { Matrix, Predict } from "../src/types";

export const GOLDEN = join(process.cwd(), "golden");

export interface OfOutputs {
  readonly values: number[][];
  readonly base: number;
  readonly outputs: number[];
  readonly per_row: number[][][];
  readonly standard_errors: number[][];
  readonly corrected: {
    readonly taken_off: number[];
    readonly weights: number[];
    readonly squares: number[];
    readonly scale: number;
    readonly standard_errors: number[][];
  };
}

export interface Shown {
  readonly output: number;
  readonly base: number;
  readonly values: number[];
  readonly lower: number[];
  readonly upper: number[];
  readonly gap: number;
  readonly verdict: string;
  readonly verdicts: string[];
  readonly certain: boolean[];
  readonly signal: number;
  readonly too_little: string;
  readonly notes: string[];
  readonly claim: string;
  readonly order: string[];
}

export interface Numbers {
  readonly raw: number[][];
  readonly features: number[][];
  readonly shown_rows: number[];
  readonly formula: Record<string, OfOutputs>;
  readonly recorded: Record<string, OfOutputs>;
  readonly end_to_end: Record<string, Record<string, Shown[]>>;
  readonly curves: Record<string, [number, number | null]>[];
}

/** Of the second pane: codes, a date, a group, columns that repeat each other. */
export interface OddNumbers {
  readonly raw: number[][];
  readonly shown_rows: number[];
  readonly formula: Record<string, OfOutputs>;
  readonly end_to_end: Record<string, Shown[]>;
}

/** A pane with what was prepared for it, and people. */
export interface Case {
  readonly pane: Pane;
  readonly prepared: Prepared;
}

export function bytes(name: string): Uint8Array {
  return new Uint8Array(readFileSync(join(GOLDEN, name)));
}

export function json<T>(name: string): T {
  return JSON.parse(readFileSync(join(GOLDEN, name), "utf-8")) as T;
}

export async function golden(model: string): Promise<Case> {
  const pane = await readPane(bytes(model === "odd" ? "odd.pane" : "golden.pane"));
  return { pane, prepared: await readPrepared(bytes(`${model}.prepared`), pane) };
}

/** The formula of tools/make_golden.py: the same operations in the same order, so the same bits. */
export function formula(pane: Pane): Predict {
  return async (rows: Matrix) => {
    const features = pane.schema.features(rows);
    const n = pane.schema.nFeatures;
    return Float64Array.from({ length: rows.rows }, (_, r) => {
      const x = features.subarray(r * n, (r + 1) * n);
      let total = 0;
      for (let k = 0; k < n; k++) {
        total = total + ((((k * 7) % 11) - 5) / 8) * x[k];
        if (k > 0) total = total + ((((k * 3) % 5) - 2) / 4) * (x[k] * x[k - 1]);
      }
      total = total + x[0] * x[n - 1] * x[Math.floor(n / 2)];
      return 0.5 + total / (2 * (1 + Math.abs(total)));
    });
  };
}
