import assert from "node:assert/strict";
import { test } from "node:test";
import { arrayOf, checkFiles, DamagedFile, digest, parsedJson, unpack } from "../src/archive";
import { readPane, readPrepared } from "../src/rows";
import { bytes } from "./reading";

const pane = bytes("golden.pane");
const latin = new TextDecoder("latin1");

/** The golden pane with some bytes changed. */
function damaged(change: (content: Uint8Array, view: DataView) => Uint8Array | void): Uint8Array {
  const copy = pane.slice();
  return change(copy, new DataView(copy.buffer)) ?? copy;
}

const directoryOf = (view: DataView): number => view.getUint32(view.byteLength - 6, true);

test("a pane is read, and its members have the hashes of its manifest", async () => {
  const { manifest, files } = await unpack(pane, "the pane");
  assert.equal(manifest.format, "vitrail-pane/3");
  const rows = (manifest.parts as Record<string, { files: Record<string, string> }>).rows.files;
  for (const [name, sha] of Object.entries(rows)) assert.equal(await digest(files.get(name) as Uint8Array), sha);
  assert.equal((await readPane(pane)).rows.sampled.columns, 13);
});

const DAMAGES: [string, RegExp, (content: Uint8Array, view: DataView) => Uint8Array | void][] = [
  ["cut at the end", /does not end as one/, (content) => content.subarray(0, content.length - 1)],
  ["nothing at all", /does not end as one/, () => new Uint8Array(0)],
  ["cut in the middle", /claims to hold|damaged|not where|shorter/, (content) => {
    const end = content.slice(content.length - 22);
    const made = content.slice(0, content.length - 5000);
    made.set(end, made.length - 22);
    return made;
  }],
  ["a name that leads elsewhere", /holds a file called/, (content, view) => {
    content.set(new TextEncoder().encode("../"), directoryOf(view) + 46);
  }],
  ["an encrypted member", /encrypted or packed/, (_, view) => view.setUint16(directoryOf(view) + 8, 1, true)],
  ["an odd compression", /encrypted or packed/, (_, view) => view.setUint16(directoryOf(view) + 10, 12, true)],
  ["a member that unpacks to more than it says", /unpacks to more/, (_, view) => view.setUint32(directoryOf(view) + 24, 10, true)],
  ["a member that unpacks to less than it says", /not as long/, (_, view) => {
    view.setUint32(directoryOf(view) + 24, view.getUint32(directoryOf(view) + 24, true) + 1, true);
  }],
  ["members of more than all bounds", /more than|JSON text/, (_, view) => view.setUint32(directoryOf(view) + 24, 2 ** 31, true)],
  ["a member that is not where the directory says", /not where/, (_, view) => view.setUint32(directoryOf(view) + 42, 7, true)],
  ["too many members", /claims to hold/, (_, view) => view.setUint16(view.byteLength - 12, 60_000, true)],
];

for (const [what, message, change] of DAMAGES) {
  test(`refused: ${what}`, async () => {
    await assert.rejects(unpack(damaged(change), "the pane"), (error: Error) => {
      assert.ok(error instanceof DamagedFile, String(error));
      assert.match(error.message, message);
      return true;
    });
  });
}

test("a changed byte of any member is found", async () => {
  const { files } = await unpack(pane, "the pane");
  const name = "rows/sampled.npy";
  const content = files.get(name) as Uint8Array;
  const listed = { [name]: await digest(content) };
  await checkFiles(listed, new Map([[name, content]]), "the pane");
  const changed = content.slice();
  changed[300] ^= 1;
  await assert.rejects(checkFiles(listed, new Map([[name, changed]]), "the pane"), /not the one its manifest names/);
  await assert.rejects(checkFiles(listed, new Map(), "the pane"), /lacks the file/);
  await assert.rejects(checkFiles({}, new Map([[name, content]]), "the pane"), /does not name/);
});

test("the header of an array is matched letter by letter, and must account for its bytes", async () => {
  const { files } = await unpack(pane, "the pane");
  const content = files.get("rows/sampled.npy") as Uint8Array;
  const { shape, data } = arrayOf(content, "rows");
  assert.deepEqual([...shape], [data.length / 13, 13]);
  assert.throws(() => arrayOf(content.subarray(0, content.length - 8), "rows"), /other bytes/);
  const other = new TextEncoder().encode(latin.decode(content.subarray(10, 128)).replace("<f8", "|O8"));
  const odd = content.slice();
  odd.set(other, 10);
  assert.throws(() => arrayOf(odd, "rows"), /no array of float64/);
  const infinite = content.slice();
  new DataView(infinite.buffer).setFloat64(128, Infinity, true);
  assert.throws(() => arrayOf(infinite, "rows"), /no finite number/);
});

test("JSON texts hold finite numbers", () => {
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  assert.deepEqual(parsedJson(text('{"a": [1, 2.5]}'), "it"), { a: [1, 2.5] });
  assert.throws(() => parsedJson(text('{"a": 1e999}'), "it"), /not finite/);
  assert.throws(() => parsedJson(text("{"), "it"), /no JSON text/);
  assert.throws(() => parsedJson(Uint8Array.of(0xff, 0xfe), "it"), /no JSON text/);
});

test("files of another kind, or of another pane, are refused", async () => {
  const read = await readPane(pane);
  await assert.rejects(readPane(bytes("features.prepared")), /names the format 'vitrail-live\/1'/);
  await assert.rejects(readPrepared(pane, read), /names the format 'vitrail-pane\/3'/);
  const bins = read.rows.bins.map((cut) => ({ ...cut, size: cut.size + 1 }));
  await assert.rejects(readPrepared(bytes("features.prepared"), { ...read, rows: { ...read.rows, bins } }), /another pane/);
});
