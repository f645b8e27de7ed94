/**
 * Keeps the site's own files for use without a network. Which files, and their SHA-256, stands in SITE, which Python writes in
 * front of this script: another site is another script, so that a browser notices. Nothing else is ever kept or changed.
 */
import { digest } from "./archive";

interface Site {
  /** The SHA-256 of the site's manifest. */
  readonly sha256: string;
  /** SHA-256 by name, beside this script. */
  readonly files: Readonly<Record<string, string>>;
}
declare const SITE: Site;
const worker = self as unknown as ServiceWorkerGlobalScope;
const folder = new URL("./", worker.location.href);
const cacheName = `vitrail ${folder.pathname} ${SITE.sha256}`;
const addressOf = (name: string): string => new URL(name, folder).href;
const known = new Set(Object.keys(SITE.files).map(addressOf));

worker.addEventListener("install", (event) => event.waitUntil(keepAll()));
worker.addEventListener("activate", (event) => event.waitUntil(dropOlder()));
worker.addEventListener("fetch", (event) => {
  const asked = new URL(event.request.url);
  asked.search = asked.hash = "";
  const address = asked.href === folder.href ? addressOf("index.html") : asked.href;
  if (event.request.method === "GET" && known.has(address)) event.respondWith(kept(address, event.request));
});

async function keepAll(): Promise<void> {
  const cache = await caches.open(cacheName);
  await Promise.all(
    Object.entries(SITE.files).map(async ([name, sha256]) => {
      const response = await fetch(addressOf(name), { cache: "no-cache" });
      const content = new Uint8Array(await response.clone().arrayBuffer());
      if (!response.ok || (await digest(content)) !== sha256) throw new Error(`${name} is not the file that the site was written with`);
      await cache.put(addressOf(name), response);
    }),
  );
}

async function dropOlder(): Promise<void> {
  const own = (await caches.keys()).filter((name) => name.startsWith(`vitrail ${folder.pathname} `) && name !== cacheName);
  await Promise.all(own.map((name) => caches.delete(name)));
  await worker.clients.claim();
}

async function kept(address: string, request: Request): Promise<Response> {
  return (await (await caches.open(cacheName)).match(address)) ?? fetch(request);
}
