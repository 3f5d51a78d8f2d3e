#!/usr/bin/env node
// Puts the page together: its own files as they are, the chart library as one file, the package, the module that explains,
// checks and measures, the data.
//
//   node build.mjs MEASURE OUT
//
// MEASURE is the folder that wasm-bindgen has written of web/measure. What is in OUT afterwards is served as it is.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const [measure, out] = process.argv.slice(2);
if (!out) {
  console.error("usage: build.mjs MEASURE OUT");
  process.exit(1);
}
/** What of a folder is served: neither the build nor the types. */
const served = (file) => /\.(html|css|js|json|svg|wasm)$/.test(file);
const copy = (from, to) => {
  fs.mkdirSync(to, { recursive: true });
  for (const file of fs.readdirSync(from).filter(served)) fs.copyFileSync(path.join(from, file), path.join(to, file));
};

fs.rmSync(out, { recursive: true, force: true });
copy(here, out);
copy(path.join(here, "../pkg"), path.join(out, "pkg"));
copy(measure, path.join(out, "measure"));
const module = path.join(out, "measure/measure_bg.wasm");
const optimizer = path.join(here, "../node_modules/binaryen/bin/wasm-opt");
const optimized = spawnSync(process.execPath, [optimizer, "-Oz", module, "-o", module], { stdio: "inherit" });
if (optimized.status !== 0) process.exit(1);
fs.mkdirSync(path.join(out, "data"));
fs.copyFileSync(path.join(here, "../../tests/data/smollm2.safetensors"), path.join(out, "data/smollm2.safetensors"));
await build({
  entryPoints: [path.join(here, "vendor/plot.js")], outfile: path.join(out, "vendor/plot.js"),
  bundle: true, format: "esm", minify: true, legalComments: "inline", logLevel: "warning",
});
