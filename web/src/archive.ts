/**
 * The file format of Python's `vitrail.results.archive`: a plain zip of JSON texts and .npy arrays.
 *
 * Nothing of a file is believed before it is checked: sizes are bounded before anything is unpacked, no member is unpacked
 * beyond its declared size, names other than folder/name.json, .npy or .onnx are refused, an array's header is matched
 * letter by letter, and every member has a SHA-256 in the manifest. The hashes find damage, not forgery.
 */
import { isObject } from "./schema";

export const MOST_BYTES = 256 * 2 ** 20;
const MOST_JSON_BYTES = 64 * 2 ** 20;
const MOST_FILES = 4096;
const MOST_DIRECTORY_BYTES = 2 ** 20;
const MANIFEST = "manifest.json";
const NAME = /^[a-z][a-z0-9_-]{0,63}\/[A-Za-z0-9_-]{1,96}\.(json|npy|onnx)$/;
const END_SIZE = 22;
const STORED = 0;
const DEFLATED = 8;
const MAGIC = "\x93NUMPY\x01\x00";
const HEADER =
  /^\{'descr': '(<f8|<i8|\|b1)', 'fortran_order': False, 'shape': (\(\)|\(\d{1,12},\)|\(\d{1,12}(?:, \d{1,12}){1,7}\)), \} *\n$/;

/** A file that is damaged, or none of Vitrail's, in a sentence. */
export class DamagedFile extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DamagedFile";
  }
}

export interface Archive {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** A numeric array in C order. */
export interface NumberArray {
  readonly data: Float64Array;
  readonly shape: readonly number[];
}

interface Member {
  readonly name: string;
  readonly method: number;
  readonly packedSize: number;
  readonly size: number;
  readonly offset: number;
}

/** The manifest and the members in the bytes of a file. */
export async function unpack(content: Uint8Array, what: string): Promise<Archive> {
  const members = directory(content, what);
  const files = new Map<string, Uint8Array>();
  for (const member of members) files.set(member.name, await unpacked(content, member, what));
  const text = files.get(MANIFEST);
  if (text === undefined) throw new DamagedFile(`${what} has no ${MANIFEST}; it is a zip file, but none of Vitrail's`);
  files.delete(MANIFEST);
  const manifest = parsedJson(text, `${MANIFEST} of ${what}`);
  if (!isObject(manifest)) throw new DamagedFile(`${MANIFEST} of ${what} is no object`);
  return { manifest, files };
}

/** Refuses members that are missing, changed or too many, by the hashes of the manifest. */
export async function checkFiles(listed: unknown, files: ReadonlyMap<string, Uint8Array>, what: string): Promise<void> {
  if (!isObject(listed)) throw new DamagedFile(`${what} lists no files in its manifest`);
  for (const [name, sha] of Object.entries(listed)) {
    const content = files.get(name);
    if (content === undefined) throw new DamagedFile(`${what} lacks the file '${name}', which its manifest names; it may have been cut`);
    if ((await digest(content)) !== sha) throw new DamagedFile(`the file '${name}' of ${what} is not the one its manifest names: it is damaged`);
  }
  for (const name of files.keys()) {
    if (!Object.hasOwn(listed, name)) throw new DamagedFile(`${what} holds the file '${name}', which its manifest does not name`);
  }
}

/** The SHA-256 of bytes, in hexadecimal digits. */
export async function digest(content: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", content as Uint8Array<ArrayBuffer>));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A JSON value. (A field that is named twice is not seen here; Python refuses it.) */
export function parsedJson(content: Uint8Array, what: string): unknown {
  if (content.length > MOST_JSON_BYTES) throw new DamagedFile(`${what} is a JSON text of more than ${MOST_JSON_BYTES >> 20} MiB`);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content), (_, value: unknown) => {
      if (typeof value === "number" && !Number.isFinite(value)) throw new Error("it holds a number that is not finite");
      return value;
    });
  } catch (error) {
    throw new DamagedFile(`${what} is no JSON text: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The finite numbers of a .npy file of float64, int64 or bool, in C order. */
export function arrayOf(content: Uint8Array, what: string): NumberArray {
  const latin = new TextDecoder("latin1");
  const length = content.length < 10 ? 0 : content[8] | (content[9] << 8);
  const described = HEADER.exec(latin.decode(content.subarray(10, 10 + length)));
  // TextDecoder's latin1 is windows-1252, which spells the first byte of the magic otherwise.
  const isMagic = [...MAGIC].every((letter, k) => content[k] === letter.charCodeAt(0));
  if (!isMagic || described === null) throw new DamagedFile(`${what} is no array of float64, int64 or bool in C order, as numpy.save writes it`);
  const shape = (described[2].match(/\d+/g) ?? []).map(Number);
  const count = shape.reduce((product, size) => product * size, 1);
  const body = content.slice(10 + length);
  if (count * (described[1] === "|b1" ? 1 : 8) !== body.length) {
    throw new DamagedFile(`${what} says that its shape is (${shape.join(", ")}), and has other bytes than that takes`);
  }
  const data = numbers(described[1], body);
  if (!data.every(Number.isFinite) || (described[1] === "|b1" && data.some((bit) => bit > 1))) {
    throw new DamagedFile(`${what} holds a value that is no finite number`);
  }
  return { data, shape };
}

function numbers(kind: string, body: Uint8Array): Float64Array {
  if (kind === "|b1") return Float64Array.from(body);
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  return Float64Array.from({ length: body.length / 8 }, (_, k) =>
    kind === "<f8" ? view.getFloat64(8 * k, true) : Number(view.getBigInt64(8 * k, true)),
  );
}

/** The members that the zip's directory lists, after it was checked. */
function directory(content: Uint8Array, what: string): Member[] {
  if (content.length > MOST_BYTES) throw new DamagedFile(`${what} is larger than ${MOST_BYTES >> 20} MiB; Vitrail writes no such file`);
  const end = content.length - END_SIZE;
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  if (end < 0 || view.getUint32(end, true) !== 0x06054b50 || view.getUint16(end + 20, true) !== 0) {
    throw new DamagedFile(`${what} is no whole zip file: it does not end as one; it may have been cut`);
  }
  const [count, size, start] = [view.getUint16(end + 10, true), view.getUint32(end + 12, true), view.getUint32(end + 16, true)];
  if (count > MOST_FILES || size > MOST_DIRECTORY_BYTES || start + size !== end) {
    throw new DamagedFile(`${what} claims to hold ${count} files with ${size} bytes of names; Vitrail writes no such file`);
  }
  const members: Member[] = [];
  const seen = new Set<string>();
  let total = 0;
  for (let k = 0, at = start; k < count; k++) {
    if (at + 46 > end || view.getUint32(at, true) !== 0x02014b50) throw new DamagedFile(`${what} is a damaged zip file: its directory is cut`);
    const lengths = [28, 30, 32].map((field) => view.getUint16(at + field, true));
    const member = {
      name: new TextDecoder("latin1").decode(content.subarray(at + 46, at + 46 + lengths[0])),
      method: view.getUint16(at + 10, true),
      packedSize: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    };
    checkMember(member, (view.getUint16(at + 8, true) & 1) !== 0, what);
    if (seen.has(member.name)) throw new DamagedFile(`${what} holds two files called '${member.name}'`);
    seen.add(member.name);
    total += member.size;
    members.push(member);
    at += 46 + lengths[0] + lengths[1] + lengths[2];
  }
  if (total > MOST_BYTES) throw new DamagedFile(`${what} would unpack to more than ${MOST_BYTES >> 20} MiB; Vitrail writes no such file`);
  return members;
}

function checkMember(member: Member, encrypted: boolean, what: string): void {
  const { name } = member;
  if (name !== MANIFEST && !NAME.test(name)) {
    throw new DamagedFile(`${what} holds a file called '${name.slice(0, 80)}'; there are folder/name.json, .npy and .onnx only`);
  }
  if (encrypted || (member.method !== STORED && member.method !== DEFLATED)) {
    throw new DamagedFile(`'${name}' of ${what} is encrypted or packed in an unusual way; it must be stored or deflated`);
  }
  if (name.endsWith(".json") && member.size > MOST_JSON_BYTES) {
    throw new DamagedFile(`'${name}' of ${what} is a JSON text of more than ${MOST_JSON_BYTES >> 20} MiB; Vitrail writes none`);
  }
}

/** A member, unpacked no further than the directory says. */
async function unpacked(content: Uint8Array, member: Member, what: string): Promise<Uint8Array> {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const { offset, name } = member;
  if (offset + 30 > content.length || view.getUint32(offset, true) !== 0x04034b50) {
    throw new DamagedFile(`'${name}' of ${what} is not where the zip's directory says; it may have been cut`);
  }
  const start = offset + 30 + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  const packed = content.subarray(start, start + member.packedSize);
  if (packed.length !== member.packedSize) throw new DamagedFile(`'${name}' of ${what} is shorter than the zip's directory says; it may have been cut`);
  const made = member.method === STORED ? packed : await inflated(packed, member, what);
  if (made.length !== member.size) throw new DamagedFile(`'${name}' of ${what} is not as long as the zip's directory says; it may have been cut`);
  return made;
}

async function inflated(packed: Uint8Array, member: Member, what: string): Promise<Uint8Array> {
  const made = new Uint8Array(member.size);
  let length = 0;
  const reader = new Blob([packed as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (length + piece.value.length > member.size) {
        await reader.cancel();
        throw new DamagedFile(`'${member.name}' of ${what} unpacks to more than the zip's directory says`);
      }
      made.set(piece.value, length);
      length += piece.value.length;
    }
  } catch (error) {
    if (error instanceof DamagedFile) throw error;
    throw new DamagedFile(`'${member.name}' of ${what} cannot be unpacked; it is damaged`);
  }
  return made.subarray(0, length);
}
