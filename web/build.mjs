// Bundles the live page into the Python package (src/vitrail/live/assets), or with --tests the tests into build/tests.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const common = { bundle: true, format: "esm", target: "es2022", logLevel: "warning", absWorkingDir: here };

if (process.argv.includes("--tests")) {
  const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
  rmSync(join(here, "build"), { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: tests.map((name) => join("tests", name)),
    outdir: "build/tests",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    external: ["onnxruntime-web", "onnxruntime-web/wasm"],
  });
} else {
  const assets = join(here, "..", "src", "vitrail", "live", "assets");
  rmSync(assets, { recursive: true, force: true });
  mkdirSync(assets, { recursive: true });
  const shipped = { ...common, outdir: assets, minify: true, legalComments: "none" };
  await build({ ...shipped, entryPoints: ["src/page.ts"] });
  // Classic scripts: a page that is opened as a file may start no Worker that is a module. The runtime is handed to the Worker
  // as bytes; the address that it would otherwise look for itself at is never asked for.
  const entryPoints = ["src/worker.ts", "src/service_worker.ts"];
  await build({ ...shipped, entryPoints, format: "iife", define: { "import.meta.url": '"https://vitrail.invalid/"' } });
  const runtime = join(here, "node_modules", "onnxruntime-web", "dist");
  for (const name of ["ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]) {
    copyFileSync(join(runtime, name), join(assets, name));
  }
}
