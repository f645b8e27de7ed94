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
  test(`${name}: the answers are those of Python`, async (t) => {
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
    const [rows, calls] = [asked.rows, asked.calls].map((counts) => counts.sort((one, other) => one - other));
    t.diagnostic(`rows asked: ${rows[rows.length >> 1]}, at most ${rows.at(-1)}; calls: ${calls[calls.length >> 1]}, at most ${calls.at(-1)}`);
  });
}

test("an outdated search ends at the next call of the model, also where the model never waits", async () => {
  const schema = Schema.fromJson(CASES.sides.schema);
  const predict = predictor(schema, CASES.sides.models);
  const outdated = new AbortController();
  let calls = 0;
  const search = new Counterfactuals(schema, await prepared("sides", schema), (rows) => {
    calls += 1;
    if (calls === 2) setTimeout(() => outdated.abort(new Error("outdated")), 0);
    for (const start = performance.now(); performance.now() - start < 30; );
    return predict(rows);
  });
  const told = CASES.sides.answers.find((answer) => answer.kind === "found");
  await assert.rejects(search.find(Float64Array.from(told!.point), { signal: outdated.signal }), /outdated/);
  assert.ok(calls >= 2 && calls <= 4, `the model was asked ${calls} times`);
});

test("the model is never asked twice about a row in a search", async () => {
  const schema = Schema.fromJson(CASES.odd.schema);
  const predict = predictor(schema, CASES.odd.models);
  const seen = new Set<string>();
  let rows = 0;
  const search = new Counterfactuals(schema, await prepared("odd", schema), (asked) => {
    rows += asked.rows;
    for (let r = 0; r < asked.rows; r++) seen.add(asked.data.subarray(r * asked.columns, (r + 1) * asked.columns).join());
    return predict(asked);
  });
  const found = await search.find(Float64Array.from(CASES.odd.answers[0].point));
  assert.equal(seen.size, rows);
  assert.equal(found.asked.rows, rows);
});

test("what cannot be searched for is refused in a sentence", async () => {
  const search = await searchOf("sides");
  const person = Float64Array.from(CASES.sides.answers[0].point);
  await assert.rejects(search.find(person, { total: 0 }), /total is 0; it must be a whole number between 1 and 100/);
  await assert.rejects(search.find(person, { vary: ["sex"] }), /may change/);
  await assert.rejects(search.find(person, { vary: ["height"] }), /height/);
  await assert.rejects(search.find(person, { desired: [0.6, null] }), /made without ranges/);
  await assert.rejects(search.find(person, { desired: [0.6, 0.2] }), /low must not be above high/);
  await assert.rejects(search.find(person, { desiredClass: "rich" }), /choose 'opposite' or one of the classes 0, 1/);
  const range = await searchOf("range");
  await assert.rejects(range.find(Float64Array.from(CASES.range.answers[0].point), { desired: [100, null] }), /between 0 and 99/);
});

test("a prepared file of other columns, or a damaged one, is refused", async () => {
  const content = new Uint8Array(readFileSync(new URL("counterfactual_sides_search.zip", GOLDEN)));
  await assert.rejects(readPreparedSearch(content, Schema.fromJson(CASES.odd.schema)), /other columns/);
  await assert.rejects(readPreparedSearch(content.subarray(0, 9_000), Schema.fromJson(CASES.sides.schema)), /cut/);
});
