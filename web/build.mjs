// Bundles the live page into the Python package (src/vitrail/live/assets), or with --tests the tests into build/tests.
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
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
  const entries = ["page", "worker", "service_worker"].filter((name) => existsSync(join(here, "src", `${name}.ts`)));
  await build({
    ...common,
    entryPoints: entries.map((name) => join("src", `${name}.ts`)),
    outdir: assets,
    minify: true,
    legalComments: "none",
  });
  const runtime = join(here, "node_modules", "onnxruntime-web", "dist");
  for (const name of ["ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]) {
    copyFileSync(join(runtime, name), join(assets, name));
  }
}
