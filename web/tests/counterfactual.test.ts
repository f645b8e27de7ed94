/** The search gives the answers that Python gave (tools/make_golden_counterfactual.py), for models that both compute exactly. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Counterfactuals, readPreparedSearch, type Desired, type PreparedSearch } from "../src/counterfactual";
import { Schema, type Level } from "../src/schema";
import type { Matrix, Predict } from "../src/types";

const GOLDEN = new URL("../../golden/", import.meta.url);

type Node = readonly [feature: number, threshold: number, left: number, right: number, leaf: number];

interface Forest {
  readonly base: number;
  readonly trees: readonly (readonly Node[])[];
  readonly low: number;
  readonly high: number;
}

interface Told {
  readonly point: readonly number[];
  readonly wish: { desired?: Desired; desiredClass?: Level; total?: number; vary?: string[] };
  readonly kind: string;
  readonly output: number;
  readonly rows: readonly (readonly number[])[];
  readonly distance: readonly number[];
  readonly plausibility: readonly number[];
  readonly outputs: readonly number[];
}

interface Case {
  readonly schema: unknown;
  readonly models: readonly Forest[];
  readonly answers: readonly Told[];
}

const CASES = JSON.parse(readFileSync(new URL("counterfactual.json", GOLDEN), "utf8")) as Record<string, Case>;

/** Sums of trees; their leaves are multiples of 2^-20, so that no sum is rounded. */
function forest({ base, trees, low, high }: Forest, features: Float64Array): number {
  let sum = base;
  for (const tree of trees) {
    let node = tree[0];
    while (node[0] >= 0) node = tree[features[node[0]] <= node[1] ? node[2] : node[3]];
    sum += node[4];
  }
  return Math.min(Math.max(sum, low), high);
}

function predictor(schema: Schema, models: readonly Forest[]): Predict {
  return (rows: Matrix) => {
    const features = schema.features(rows);
    const outputs = new Float64Array(rows.rows * models.length);
    for (let r = 0; r < rows.rows; r++) {
      const own = features.subarray(r * schema.nFeatures, (r + 1) * schema.nFeatures);
      models.forEach((model, k) => (outputs[r * models.length + k] = forest(model, own)));
    }
    return Promise.resolve(outputs);
  };
}

async function prepared(name: string, schema: Schema): Promise<PreparedSearch> {
  return readPreparedSearch(readFileSync(new URL(`counterfactual_${name}_search.zip`, GOLDEN)), schema);
}

async function searchOf(name: string): Promise<Counterfactuals> {
  const schema = Schema.fromJson(CASES[name].schema);
  return new Counterfactuals(schema, await prepared(name, schema), predictor(schema, CASES[name].models));
}

function close(found: readonly number[], told: readonly number[], most: number, what: string): void {
  assert.equal(found.length, told.length, what);
  found.forEach((number, k) => assert.ok(Math.abs(number - told[k]) <= most, `${what} ${k} is ${number} and not ${told[k]}`));
}

for (const [name, { answers }] of Object.entries(CASES)) {
  test(`${name}: the answers are those of Python`, async () => {
    const search = await searchOf(name);
    const asked = { rows: [] as number[], calls: [] as number[] };
    for (const [k, told] of answers.entries()) {
      const found = await search.find(Float64Array.from(told.point), told.wish);
      const what = `${name}, answer ${k}`;
      assert.equal(found.kind, told.kind, what);
      assert.equal(found.output, told.output, what);
      assert.deepEqual(found.answers.map((answer) => [...answer.row]), told.rows, what);
      close(found.answers.map((answer) => answer.output), told.outputs, 1e-9, `${what}, output`);
      close(found.answers.map((answer) => answer.distance), told.distance, 1e-9, `${what}, distance`);
      // Python's distances to rows come from a matrix product: of equal rows they are the root of a rounding error.
      close(found.answers.map((answer) => answer.plausibility), told.plausibility, 1e-7, `${what}, plausibility`);
      if (found.kind === "found") {
        asked.rows.push(found.asked.rows);
        asked.calls.push(found.asked.calls);
      }
    }
    console.log(`${name}: rows asked ${asked.rows.sort((a, b) => a - b)[asked.rows.length >> 1]} (most ${asked.rows.at(-1)}), calls ${asked.calls.sort((a, b) => a - b)[asked.calls.length >> 1]} (most ${asked.calls.at(-1)})`);
  });
}
