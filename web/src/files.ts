/**
 * The site's files: fetched from beside the page, or, in a page that is one file, from data blocks inside of it. Each is held
 * against its SHA-256 in the site's manifest before it is used.
 */
import { DamagedFile, digest } from "./archive";
import { isObject } from "./schema";

export const MANIFEST = "vitrail-site.json";
const FORMAT = "vitrail-site/1";
const BLOCK = "application/vnd.vitrail";

export class SiteFiles {
  private constructor(
    private readonly read: (name: string) => Promise<Uint8Array>,
    private readonly hashes: Readonly<Record<string, string>>,
    /** SHA-256 of files as people may compare them; in one page the files are packed, and have other ones. */
    readonly shown: Readonly<Record<string, string>>,
    /** Whether everything lies in one page. */
    readonly inOnePage: boolean,
  ) {}

  static async open(): Promise<SiteFiles> {
    const blocks = new Map<string, Element>();
    for (const block of document.querySelectorAll(`script[type="${BLOCK}"]`)) blocks.set(block.getAttribute("data-name") ?? "", block);
    const read = blocks.size ? (name: string) => fromBlock(name, blocks) : fromFolder;
    const manifest: unknown = JSON.parse(new TextDecoder().decode(await read(MANIFEST)));
    if (!isObject(manifest) || manifest.format !== FORMAT || !isObject(manifest.files)) {
      throw new DamagedFile(`${MANIFEST} is not the list of files of a live page`);
    }
    const hashes = manifest.files as Record<string, string>;
    return new SiteFiles(read, hashes, isObject(manifest.shown) ? (manifest.shown as Record<string, string>) : hashes, blocks.size > 0);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.hashes, name);
  }

  /** A file that is the one that the site was written with, unpacked where it is packed. */
  async get(name: string): Promise<Uint8Array> {
    const content = await this.read(name);
    if ((await digest(content)) !== this.hashes[name]) {
      throw new DamagedFile(`the file '${name}' is not the one that this page was written with: it is damaged, or was exchanged`);
    }
    const isPacked = content[0] === 0x1f && content[1] === 0x8b;
    return isPacked ? unpackedGzip(content) : content;
  }

  async json(name: string): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await this.get(name)));
  }
}

async function fromFolder(name: string): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(name);
  } catch {
    throw new DamagedFile(`the file '${name}' cannot be fetched; is there a connection?`);
  }
  if (!response.ok) throw new DamagedFile(`the file '${name}' cannot be fetched: the server says ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function fromBlock(name: string, blocks: ReadonlyMap<string, Element>): Promise<Uint8Array> {
  const text = blocks.get(name)?.textContent;
  if (text === undefined || text === null) throw new DamagedFile(`the file '${name}' is not in this page; it may have been cut`);
  const letters = atob(text.trim());
  const content = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) content[k] = letters.charCodeAt(k);
  return content;
}

async function unpackedGzip(content: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([content as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
