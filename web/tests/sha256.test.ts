import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { sha256 } from "../src/sha256";

test("SHA-256 is Node's, for every length around a block's end and for a large file", () => {
  const lengths = [...Array(130).keys(), 1_000_003];
  for (const length of lengths) {
    const content = Uint8Array.from({ length }, (_, k) => (k * 31 + length) & 255);
    const expected = createHash("sha256").update(content).digest("hex");
    assert.equal(Buffer.from(sha256(content)).toString("hex"), expected, `${length} bytes`);
  }
});
