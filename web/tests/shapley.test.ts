import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsOf } from "../src/bands";
import { interpolated } from "../src/curves";
import { pseudoInverse } from "../src/least_squares";
import { Background } from "../src/shapley";
import { matrix, type Matrix, type Predict } from "../src/types";
import { general, judge } from "../src/verdict";

/** A function of a row as a model that counts what it is asked. */
function counting(of: (row: Float64Array) => number): { predict: Predict; seen: string[] } {
  const seen: string[] = [];
  const predict: Predict = async (rows: Matrix) =>
    Float64Array.from({ length: rows.rows }, (_, r) => {
      const row = rows.data.subarray(r * rows.columns, (r + 1) * rows.columns);
      seen.push(row.join());
      return of(row);
    });
  return { predict, seen };
}

const cyclic = (rows: number, players: number): Matrix =>
  matrix(rows, players, Float64Array.from({ length: rows * players }, (_, k) => ((k % players) + Math.floor(k / players)) % players));

test("a product of two columns is shared evenly, as Python's example", async () => {
  const { predict } = counting((x) => x[0] * x[1]);
  const rows = matrix(2, 2, Float64Array.of(0, 0, 0, 1));
  const found = await new Background(rows, [[0], [1]], cyclic(2, 2), predict).explain(Float64Array.of(1, 1));
  assert.deepEqual([...found.perRow.data], [0.5, 0.5, 1, 0]);
  assert.deepEqual([...found.values], [0.75, 0.25]);
  assert.equal(found.base, 0);
});

test("values of a row add up, columns of one player move together, and nothing is asked twice", async () => {
  const { predict, seen } = counting((x) => Math.sin(x[0] * x[1] + 2 * x[2]) * x[3] + x[4]);
  const data = Float64Array.from({ length: 5 * 40 }, (_, k) => (k * 7919) % 3);
  const rows = matrix(40, 5, data);
  const players = [[0, 3], [1], [2], [4]];
  const background = new Background(rows, players, cyclic(40, 4), predict);
  const point = Float64Array.of(1, 2, 0.5, 1, -1);
  const found = await background.explain(point);
  for (let r = 0; r < 40; r++) {
    const sum = found.perRow.data.subarray(4 * r, 4 * r + 4).reduce((total, value) => total + value, 0);
    assert.ok(Math.abs(sum - (found.output - found.rowOutputs[r])) < 1e-12);
  }
  const asked = seen.slice(40); // rows come first, once
  assert.equal(new Set(asked).size, asked.length, "a hybrid was asked twice");
  const known = new Set(seen.slice(0, 40));
  assert.ok(asked.every((hybrid) => !known.has(hybrid)), "a row was asked again");
  assert.ok(asked.every((hybrid) => {
    const [a, , , d] = hybrid.split(",").map(Number);
    return (a === 1 && d === 1) || data.some((_, k) => k % 5 === 0 && data[k] === a && data[k + 3] === d);
  }), "columns of one player were parted");
  const before = seen.length;
  await background.explain(point);
  assert.equal(seen.length - before, asked.length, "rows were asked again for the next person");
});

test("a person who is a row of the background has no reasons against it", async () => {
  const { predict, seen } = counting((x) => x[0] + x[1] * x[2]);
  const found = await new Background(matrix(1, 3, Float64Array.of(1, 2, 3)), [[0], [1], [2]], cyclic(1, 3), predict).explain(Float64Array.of(1, 2, 3));
  assert.deepEqual([...found.values], [0, 0, 0]);
  assert.equal(seen.length, 2);
});

test("too few orders are an error", () => {
  assert.throws(() => new Background(matrix(3, 2), [[0], [1]], cyclic(2, 2), async () => new Float64Array()), /orders for 2 rows/);
});

test("the pseudo-inverse of sums of products, also where columns repeat each other", () => {
  // Columns: a constant, two halves that add up to it, and one more.
  const columns = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 1, 0]];
  const n = columns.length;
  const times = (a: Float64Array, b: Float64Array): Float64Array =>
    Float64Array.from({ length: n * n }, (_, k) => columns.reduce((sum, __, j) => sum + a[Math.floor(k / n) * n + j] * b[j * n + (k % n)], 0));
  const given = Float64Array.from({ length: n * n }, (_, k) =>
    columns[0].reduce((sum, __, r) => sum + columns[Math.floor(k / n)][r] * columns[k % n][r], 0));
  const found = pseudoInverse(given, n);
  const close = (a: Float64Array, b: Float64Array): boolean => a.every((x, k) => Math.abs(x - b[k]) < 1e-12);
  assert.ok(close(times(times(given, found), given), given));
  assert.ok(close(times(times(found, given), found), found));
  const projection = times(given, found);
  assert.ok(projection.every((x, k) => Math.abs(x - projection[(k % n) * n + Math.floor(k / n)]) < 1e-12));
});

test("groups of bins, as Python's examples", () => {
  assert.deepEqual([...groupsOf(Float64Array.of(0.7, 0.1, 0.1, 0.05, 0.05), true, 3)], [0, 1, 1, 2, 2]);
  assert.deepEqual([...groupsOf(Float64Array.of(0.1, 0.7, 0.05, 0.15), false, 3)], [2, 0, 2, 1]);
  assert.deepEqual([...groupsOf(Float64Array.of(0.2, 0.2, 0.2, 0.2, 0.1, 0.1), true, 4, 2)], [0, 0, 0, 1, 2, 3]);
});

test("curves are straight between points and flat beyond them", () => {
  const [x, y] = [Float64Array.of(0, 1, 3), Float64Array.of(1, 2, 6)];
  assert.deepEqual([-1, 0, 0.5, 1, 2, 3, 9].map((at) => interpolated(x, y, at)), [1, 1, 1.5, 2, 4, 6, 6]);
});

test("the verdict, as Python's example, and numbers in words", () => {
  const values = Float64Array.of(0.5, 0.1, 0.02);
  const found = judge(values, Float64Array.of(0.4, 0, -0.08), Float64Array.of(0.6, 0.2, 0.12), 1.2214);
  assert.deepEqual(found.verdicts, ["clear", "mostly noise", "mostly noise"]);
  assert.equal(found.verdict, "clear");
  assert.equal(found.signal.toFixed(1), "5.8");
  const noise = judge(Float64Array.of(0.01, -0.01), Float64Array.of(-1, -1), Float64Array.of(1, 1), 1.1439);
  assert.equal(noise.verdict, "mostly noise");
  assert.deepEqual([0.0123, 1, 12.34, 0.00001234, 123456, 0.5, 1.96].map((x) => general(x, 2)), ["0.012", "1", "12", "1.2e-05", "1.2e+05", "0.5", "2"]);
});
