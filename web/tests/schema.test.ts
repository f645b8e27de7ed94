import assert from "node:assert/strict";
import { test } from "node:test";
import { allowed, readValue, roundHalfEven, Schema, SchemaError } from "../src/schema";
import { matrix } from "../src/types";

const schema = Schema.fromJson({
  version: 1,
  columns: [
    { name: "age", kind: "numeric", low: 17, high: 90, integer: true, missing: null, change: "up" },
    { name: "debt", kind: "numeric", low: 0, high: 50, integer: false, missing: -9, codes: [-9, -8], as_nan: true, unit: "EUR" },
    { name: "sex", kind: "categorical", levels: ["Female", "Male"], missing: null },
    { name: "owner", kind: "categorical", levels: [false, true], missing: false },
    { name: "rooms", kind: "categorical", levels: [1, 2, 3], missing: null, ordered: true, change: "up" },
    { name: "since", kind: "numeric", low: 10957, high: 20088, integer: true, date: true, missing: null },
  ],
  rules: [{ rule: "group", name: "home", columns: ["owner", "rooms"] }],
});
const person = { age: 39, debt: -8, sex: "Male", owner: true, rooms: 2, since: "2010-05-17" };

test("a person's values become a raw row and are shown again", () => {
  const raw = schema.readPoint(person);
  assert.deepEqual([...raw], [39, -8, 1, 1, 1, 14746]);
  assert.deepEqual(schema.shown(raw), person);
  assert.deepEqual([...schema.groups], [["home", ["owner", "rooms"]]]);
});

test("values may be written as texts, as a form gives them", () => {
  const typed = { age: " 39 ", debt: "12.5", sex: "Female", owner: "true", rooms: "2.0", since: "10957" };
  assert.deepEqual([...schema.readPoint(typed)], [39, 12.5, 0, 1, 1, 10957]);
  assert.equal(readValue(schema.column("owner"), 1), 1);
  assert.equal(readValue(schema.column("owner"), "FALSE"), 0);
});

test("what is missing is what the column declares, or an error", () => {
  assert.deepEqual([...schema.readPoint({ ...person, debt: "", owner: null })].slice(1, 4), [-9, 1, 0]);
  assert.throws(() => schema.readPoint({ ...person, age: "" }), /column 'age' is not given; it must be a whole number between 17 and 90/);
  assert.throws(() => schema.readPoint({ ...person, sex: undefined }), /'Female', 'Male'/);
});

const WRONG: [string, unknown][] = [
  ["age", 16], ["age", 91], ["age", 39.5], ["age", "old"], ["age", Infinity], ["age", "0x20"], ["age", [39]],
  ["debt", -7], ["debt", 51], ["sex", "male"], ["sex", 0], ["rooms", 4], ["rooms", "two"],
  ["since", "2010-02-30"], ["since", "1999-12-31"], ["since", "17.5.2010"],
];
for (const [name, value] of WRONG) {
  test(`refused: ${name} is ${String(value)}`, () => {
    assert.throws(() => schema.readPoint({ ...person, [name]: value }), (error: Error) => {
      assert.ok(error instanceof SchemaError);
      assert.equal(error.column, name);
      assert.ok(error.message.endsWith(allowed(schema.column(name))), error.message);
      return true;
    });
  });
}

test("columns that are not in the schema, and those that are missing, are named", () => {
  assert.throws(() => schema.readPoint({ ...person, weight: 70 }), /no column 'weight'/);
  const { sex: _, ...rest } = person;
  assert.throws(() => schema.readPoint(rest), /column 'sex' is missing/);
});

test("features are scaled numbers, codes and one-hot levels; unfeature finds the nearest row", () => {
  const raw = schema.readPoint(person);
  const features = schema.features(matrix(1, 6, raw));
  assert.equal(schema.nFeatures, 12);
  assert.deepEqual([...features].slice(0, 8), [(39 - 17) / 73, 0, 0, 1, 0, 1, 0, 1]);
  assert.deepEqual(schema.featureNames.slice(0, 7), ["age", "debt", "debt=-9", "debt=-8", "sex=Female", "sex=Male", "owner=False"]);
  assert.deepEqual([...schema.unfeature(matrix(1, 12, features)).data], [...raw]);
  const between = features.slice();
  between.set([0.4, 0.57, 0.1], 1); // a code counts where its feature exceeds (1 + s^2)/2
  assert.equal(schema.unfeature(matrix(1, 12, between)).data[1], 20);
  between[2] = 0.6;
  assert.equal(schema.unfeature(matrix(1, 12, between)).data[1], -9);
});

test("models are given NaN where a column says so", () => {
  const made = schema.valuesForModels(matrix(1, 6, schema.readPoint({ ...person, debt: null })));
  assert.ok(Number.isNaN(made.data[1]));
});

test("halves are rounded to even numbers, as NumPy does", () => {
  assert.deepEqual([0.5, 1.5, 2.5, -0.5, -1.5, 2.4].map((x) => roundHalfEven(x) + 0), [0, 2, 2, 0, -2, 2]);
});

test("declarations that are none are refused", () => {
  assert.throws(() => Schema.fromJson({ version: 2, columns: [] }), /no schema of version 1/);
  const column = { name: "a", kind: "numeric", low: 0, high: 1 };
  assert.throws(() => Schema.fromJson({ version: 1, columns: [{ ...column, low: 2 }] }), /bounds/);
  assert.throws(() => Schema.fromJson({ version: 1, columns: [column, column] }), /twice/);
  assert.throws(() => Schema.fromJson({ version: 1, columns: [{ name: "a", kind: "categorical", levels: [] }] }), /levels/);
  assert.throws(() => Schema.fromJson({ version: 1, columns: [column], rules: [{ rule: "link" }] }), /rule/);
});
