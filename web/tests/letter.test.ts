import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Catalogue, decimalsFor, shownText, type CatalogueFacts } from "../src/catalogue";
import { Letter, type PageFacts, type PersonFacts } from "../src/letter";

interface Example {
  name: string;
  wording: number;
  page: Pick<PageFacts, "model" | "range" | "border">;
  person: PersonFacts;
  texts: Record<string, Record<string, unknown>>;
}
// Tests are bundled into build/tests and run from there.
const golden = JSON.parse(readFileSync(new URL("../../golden/letters.json", import.meta.url), "utf-8")) as {
  catalogues: Record<string, CatalogueFacts>;
  wordings: Pick<PageFacts, "words" | "columns">[];
  letters: Example[];
};

function textsOf(letter: Letter): Record<string, unknown> {
  const round = (value: number): number => Number(value.toFixed(9));
  return {
    title: letter.title,
    lead: letter.lead,
    isGood: letter.isGood,
    tooLittle: letter.tooLittle,
    parts: letter.toldParts.map(([heading, told]) => [
      heading,
      told.map((one) => [one.sentence, one.amount, one.giveOrTake, one.certain, one.good, one.text]),
    ]),
    rest: letter.rest,
    howSure: letter.howSure,
    codes: letter.reasonCodes,
    bars: letter.bars.map((bar) => [
      bar.text,
      bar.reason.amount,
      ...[bar.start, bar.width, bar.zero].map(round),
      bar.band && bar.band.map(round),
      bar.side,
    ]),
    changesHeading: letter.changesHeading,
    changesLead: letter.changesLead,
    answers: letter.answers.map((answer) => answer.map((change) => [change.label, change.after, change.before])),
    entries: letter.entries,
    threshold: letter.shown(letter.threshold),
  };
}

/** Places of bars to nine decimals: sums are added in another order. */
function rounded(expected: Record<string, unknown>): Record<string, unknown> {
  const round = (value: unknown): unknown =>
    typeof value === "number" ? Number(value.toFixed(9)) : Array.isArray(value) ? value.map(round) : value;
  return { ...expected, bars: round(expected.bars) };
}

for (const [language, catalogue] of Object.entries(golden.catalogues)) {
  test(`letters in ${language} are those of Python`, () => {
    assert.ok(golden.letters.length > 20);
    for (const example of golden.letters) {
      const page = { ...example.page, catalogue, ...golden.wordings[example.wording] };
      assert.deepEqual(textsOf(new Letter(page, example.person)), rounded(example.texts[language]), `${example.name}, ${language}`);
    }
  });
}

test("numbers are typed in the language's way, or in English where that is no other number", () => {
  const german = new Catalogue(golden.catalogues.de);
  assert.equal(german.parsed("1.234,5"), 1234.5);
  assert.equal(german.parsed("1,5"), 1.5);
  assert.equal(german.parsed("1.5"), 1.5);
  assert.equal(german.parsed("1.234"), 1234);
  assert.equal(new Catalogue(golden.catalogues.en).parsed("1,234.5"), 1234.5);
  assert.equal(new Catalogue(golden.catalogues.fr).parsed("1\u202f234,5"), 1234.5);
  for (const text of ["", "abc", "1,2,3", "--1", "1e", "Infinity"]) assert.ok(Number.isNaN(german.parsed(text)), text);
});

test("numbers round as Python's do", () => {
  const english = new Catalogue(golden.catalogues.en);
  assert.deepEqual([0.5, 1.5, 2.5, 1234567.5].map((value) => english.number(value, 0)), ["0", "2", "2", "1,234,568"]);
  assert.deepEqual([decimalsFor(0.1234), decimalsFor(1234.5), decimalsFor(45)], [3, 0, 0]);
  assert.deepEqual([39, 0.123456789, 1e-7, 1234567.8, true, null].map(shownText), ["39", "0.123457", "1e-07", "1.23457e+06", "True", "missing"]);
});
