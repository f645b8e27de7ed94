/**
 * The contract with Python: given the same outputs, rows and orders, all numbers agree to 1e-9; through the ONNX runtime to
 * 1e-5. The largest differences are printed, and written to the file that GOLDEN_MAX_DIFF names.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Bands } from "../src/bands";
import { Correction } from "../src/correction";
import { Explainer, type Explanation } from "../src/explain";
import { openModel, useRuntime } from "../src/model";
import { firstRows, type Pane, type Prepared } from "../src/rows";
import { Background } from "../src/shapley";
import { matrix, type Predict } from "../src/types";
import { bytes, formula, golden, json, type Case, type Numbers, type OddNumbers, type OfOutputs, type Shown } from "./reading";

const numbers = json<Numbers>("numbers.json");
const people = json<Record<string, unknown>[]>("people.json");
const oddNumbers = json<OddNumbers>("odd_numbers.json");
const oddPeople = json<Record<string, unknown>[]>("odd_people.json");
const worst = { given_outputs: 0, end_to_end: 0 };
let pane: Pane;
let prepared: Prepared;
let columnsPrepared: Prepared;
let odd: Case;

function agree(found: ArrayLike<number>, wanted: ArrayLike<number>, what: string, kind: keyof typeof worst = "given_outputs"): void {
  assert.equal(found.length, wanted.length, `${what}: another number of numbers`);
  const tolerance = kind === "given_outputs" ? 1e-9 : 1e-5;
  for (let k = 0; k < found.length; k++) {
    const apart = Math.abs(found[k] - wanted[k]);
    assert.ok(apart <= tolerance, `${what}[${k}]: ${found[k]} here, ${wanted[k]} in Python`);
    worst[kind] = Math.max(worst[kind], apart);
  }
}

before(async () => {
  ({ pane, prepared } = await golden("features"));
  columnsPrepared = (await golden("columns")).prepared;
  odd = await golden("odd");
  const runtime = join(process.cwd(), "node_modules", "onnxruntime-web", "dist");
  useRuntime(`file://${runtime}/`);
});

after(() => {
  const largest = { golden_max_diff: worst.given_outputs, golden_max_diff_end_to_end: worst.end_to_end };
  console.log(`largest differences from Python: ${JSON.stringify(largest)}`);
  const target = process.env.GOLDEN_MAX_DIFF;
  if (target) writeFileSync(target, `${JSON.stringify(largest)}\n`);
});

test("a person's values become Python's raw row and features", () => {
  for (const [i, person] of people.entries()) {
    const raw = pane.schema.readPoint(person);
    assert.deepEqual([...raw], numbers.raw[i]);
    assert.deepEqual([...pane.schema.features(matrix(1, raw.length, raw))], numbers.features[i]);
    const back = pane.schema.unfeature(matrix(1, pane.schema.nFeatures, Float64Array.from(numbers.features[i])));
    assert.deepEqual([...back.data], numbers.raw[i]);
    assert.deepEqual(pane.schema.shown(raw), person);
  }
});

async function compare(
  of: Case,
  given: Pick<Numbers, "raw" | "shown_rows">,
  predict: Predict,
  wanted: OfOutputs,
  nRows: number,
  what: string,
): Promise<void> {
  const { rows, reasons } = of.pane;
  const about = of.prepared.players.map((player) => player.columns);
  const background = new Background(firstRows(rows.sampled, nRows), about, of.prepared.orders, predict);
  const bands = new Bands(rows, of.prepared, nRows);
  assert.ok(reasons);
  const kept = Math.min(nRows, reasons.perRow.rows);
  const correction = new Correction(reasons, kept === nRows ? bands : new Bands(rows, of.prepared, kept), about, nRows);
  const { corrected } = wanted;
  agree(correction.takenOff, corrected.taken_off, `${what}: taken off`);
  agree(correction.weights, corrected.weights, `${what}: weights`);
  agree(correction.squares, corrected.squares, `${what}: squares`);
  agree([correction.scale], [corrected.scale], `${what}: scale`);
  for (const [i, point] of given.raw.entries()) {
    const found = await background.explain(Float64Array.from(point));
    agree([found.output, found.base], [wanted.outputs[i], wanted.base], `${what}: output and base of person ${i}`);
    agree(found.values, wanted.values[i], `${what}: values of person ${i}`);
    for (const [k, row] of given.shown_rows.entries()) {
      agree(found.perRow.data.subarray(row * about.length, (row + 1) * about.length), wanted.per_row[i][k], `${what}: row ${row}`);
    }
    agree(bands.standardErrors(found.perRow, about), wanted.standard_errors[i], `${what}: errors of person ${i}`);
    agree(correction.standardErrors(found.perRow), corrected.standard_errors[i], `${what}: corrected errors of person ${i}`);
    const sum = found.values.reduce((total, value) => total + value, found.base);
    assert.ok(Math.abs(sum - found.output) < 1e-12, `${what}: values of person ${i} add up to ${sum}, not ${found.output}`);
    assert.ok(found.asked <= 2 * nRows * (about.length - 1));
  }
}

for (const nRows of [256, 1024]) {
  test(`given outputs by a formula, values and bands of ${nRows} rows are Python's`, async () => {
    await compare({ pane, prepared }, numbers, formula(pane), numbers.formula[nRows], nRows, `formula, ${nRows} rows`);
  });
}

for (const nRows of [256, 1024, 1500]) {
  test(`codes, a date, a group and columns that repeat each other: ${nRows} rows are Python's`, async () => {
    await compare(odd, oddNumbers, formula(odd.pane), oddNumbers.formula[nRows], nRows, `odd, ${nRows} rows`);
  });
}

/** Python's outputs of the gradient boosting, by content of a hybrid. */
function recorded(nRows: number): Predict {
  const content = readFileSync(join(process.cwd(), "golden", "outputs.bin"));
  const outputs = new Float32Array(content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength));
  const rows = firstRows(pane.rows.sampled, nRows);
  const known = new Map<string, number>();
  let at = 0;
  for (const person of numbers.raw) known.set(person.join(), outputs[at++]);
  for (let r = 0; r < nRows; r++) known.set(rows.data.subarray(r * rows.columns, (r + 1) * rows.columns).join(), outputs[at++]);
  for (const person of numbers.raw) {
    for (let r = 0; r < nRows; r++) {
      const row = Array.from(rows.data.subarray(r * rows.columns, (r + 1) * rows.columns));
      for (const [from, to] of [[row, person], [person, row]]) {
        const hybrid = [...from];
        for (let s = 0; s + 1 < prepared.players.length; s++) {
          for (const column of prepared.players[prepared.orders.data[r * prepared.players.length + s]].columns) hybrid[column] = to[column];
          known.set(hybrid.join(), outputs[at++]);
        }
      }
    }
  }
  assert.equal(at, outputs.length);
  return async (asked) =>
    Float64Array.from({ length: asked.rows }, (_, r) => {
      const output = known.get(asked.data.subarray(r * asked.columns, (r + 1) * asked.columns).join());
      assert.notEqual(output, undefined, "a hybrid that Python did not ask about");
      return output as number;
    });
}

test("given Python's recorded outputs of gradient boosting, values and bands are Python's", async () => {
  await compare({ pane, prepared }, numbers, recorded(256), numbers.recorded[256], 256, "recorded");
});

function sameOnThePage(found: Explanation, wanted: Shown, what: string): void {
  agree([found.output, found.base, found.gap], [wanted.output, wanted.base, wanted.gap], `${what}: output`, "end_to_end");
  for (const part of ["value", "lower", "upper"] as const) {
    const own = found.contributions.map((contribution) => contribution[part]);
    agree(own, wanted[part === "value" ? "values" : part], `${what}: ${part}`, "end_to_end");
  }
  assert.ok(Math.abs(found.gap) < 1e-12);
  assert.equal(found.verdict, wanted.verdict, what);
  assert.deepEqual(found.contributions.map(({ verdict }) => verdict), wanted.verdicts, what);
  assert.deepEqual(found.contributions.map(({ certain }) => certain), wanted.certain, what);
  assert.deepEqual(found.order.map((k) => found.contributions[k].player), wanted.order, what);
  assert.ok(Math.abs(found.signal - wanted.signal) < 1e-3 * wanted.signal, what);
  assert.deepEqual(found.notes, wanted.notes, what);
  assert.equal(found.claim, wanted.claim);
  assert.equal(found.tooLittle, wanted.too_little);
}

for (const name of ["features", "columns", "odd"]) {
  test(`end to end through the ONNX model of ${name}, a page says what Python says`, async () => {
    const isOdd = name === "odd";
    const own = isOdd ? odd.pane : pane;
    const facts = isOdd ? odd.prepared : name === "features" ? prepared : columnsPrepared;
    const explainer = new Explainer(own, facts, await openModel(bytes(`${name}.onnx`), facts.model, own.schema));
    const bySize = isOdd ? oddNumbers.end_to_end : numbers.end_to_end[name];
    for (const [nRows, wanted] of Object.entries(bySize)) {
      for (const [i, person] of (isOdd ? oddPeople : people).entries()) {
        const found = await explainer.explain(own.schema.readPoint(person), Number(nRows));
        sameOnThePage(found, wanted[i], `${name}, ${nRows} rows, person ${i}`);
        assert.equal(found.corrected, name !== "columns");
      }
    }
  });
}

test("another model than the one that was prepared is refused", async () => {
  await assert.rejects(openModel(bytes("columns.onnx"), prepared.model, pane.schema), /not the model boosting of features/);
});

test("more rows than were prepared are refused", () => {
  assert.throws(() => new Explainer(pane, prepared, formula(pane)).prepare(4096), /from 1 to 1024/);
});

test("where noise drowns the rows, a mean is off by all of itself", async () => {
  const about = prepared.players.map((player) => player.columns);
  const drowned = new Bands({ ...pane.rows, countsSigma: prepared.total }, prepared, 64);
  const constant = matrix(64, about.length, new Float64Array(64 * about.length).fill(5));
  assert.ok(drowned.standardErrors(constant, about).every((error) => error >= 5));
  assert.ok(new Bands(pane.rows, prepared, 64).standardErrors(constant, about).every((error) => error < 5));
});

test("a person stands on curves where Python says", () => {
  const explainer = new Explainer(pane, prepared, formula(pane));
  for (const [i, person] of people.entries()) {
    const found = explainer.standings(pane.schema.readPoint(person));
    assert.deepEqual([...found.keys()], Object.keys(numbers.curves[i]));
    for (const [name, [value, halfWidth]] of Object.entries(numbers.curves[i])) {
      const standing = found.get(name);
      assert.ok(standing);
      agree([standing.value, standing.halfWidth ?? 0], [value, halfWidth ?? 0], `curve of ${name}`);
    }
  }
  assert.equal(new Explainer(pane, columnsPrepared, formula(pane)).curves.size, 0, "curves are about the pane's own model");
});
