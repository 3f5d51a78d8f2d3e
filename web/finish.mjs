#!/usr/bin/env node
// Makes pkg/ of what wasm-bindgen wrote: a smaller module, a trap that is an Error, JavaScript without what only people
// read. Prints the size of the download and fails if it is too large.
//
//   node finish.mjs FROM
import { transform } from "esbuild";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = path.dirname(fileURLToPath(import.meta.url));

/** What the download should be: JavaScript and WASM together, gzipped, in bytes. */
const AIM = 100_000;

/** What it may be at most, until it is what it should be: what it was when this was written, and 2 %. */
const MOST = 187_200;

/** WebAssembly that every browser with WebGPU has. */
const FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];

/** A trap is a mistake of ours, and of all that it left half done nothing may be called again. */
const GUARD = `
function guarded(exports) {
  let broken;
  const guard = (call) => (...args) => {
    if (broken) throw broken;
    try {
      return call(...args);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      broken = Object.assign(new Error("a mistake in phasor, please report it: " + error.message, { cause: error }), { name: "PhasorError", code: "Panic" });
      throw broken;
    }
  };
  return Object.fromEntries(Object.entries(exports).map(([name, value]) => [name, typeof value === "function" ? guard(value) : value]));
}
`;

const from = process.argv[2];
const to = path.join(here, "pkg");
fs.rmSync(to, { recursive: true, force: true });
fs.mkdirSync(to);

const optimizer = path.join(here, "node_modules/binaryen/bin/wasm-opt");
// Its last words are the names that it has given to imports and exports, in place of long ones.
const optimized = spawnSync(process.execPath, [optimizer, "-Oz", "--flatten", "--rereloop", "-Oz", "-Oz",
  "--flatten", "--simplify-locals-notee-nostructure", "--flatten", "--rereloop", "-Oz", "-Oz", "--traps-never-happen",
  // Hints that engines do not heed, all alike.
  "--dealign", "--strip-producers",
  // Functions that stay apart are longer, and more like each other.
  "--one-caller-inline-max-function-size=0", "--minify-imports-and-exports-and-modules",
  "--strip-target-features", ...FEATURES.map((feature) => `--enable-${feature}`),
  path.join(from, "phasor_bg.wasm"), "-o", path.join(to, "phasor_bg.wasm")], { stdio: ["ignore", "pipe", "inherit"] });
if (optimized.status !== 0) process.exit(1);
const names = JSON.parse(optimized.stdout.toString());

/** Replaces what must be there: wasm-bindgen may write it otherwise one day. */
function replaced(text, pattern, replacement) {
  const changed = text.replace(pattern, replacement);
  if (changed === text) throw new Error(`wasm-bindgen has written nothing like ${pattern}`);
  return changed;
}

const imports = new Map(names.imports.map(([, long, short]) => [long, short]));
const exports = new Map(names.exports);
let script = fs.readFileSync(path.join(from, "phasor.js"), "utf8");
script = replaced(script, "wasm = instance.exports;", "wasm = guarded(instance.exports);");
script = replaced(script, /"\.\/phasor_bg\.js": import0/, '"a": import0');
script = replaced(script, /^ {8}(\w+): function\(/gm, (line, long) => line.replace(long, imports.get(long) ?? long));
script = replaced(script, /\bwasm\.(\w+)/g, (line, long) => `wasm.${exports.get(long) ?? long}`);
const { code } = await transform(script + GUARD, { format: "esm", minify: true, target: "es2022" });
fs.writeFileSync(path.join(to, "phasor.js"), code);

// What the module itself exports is no part of the package.
const types = fs.readFileSync(path.join(from, "phasor.d.ts"), "utf8");
fs.writeFileSync(path.join(to, "phasor.d.ts"), replaced(types, /(export interface InitOutput \{)[^}]*\}/, "$1}"));

const sizes = ["phasor.js", "phasor_bg.wasm"].map((name) => {
  const bytes = fs.readFileSync(path.join(to, name));
  const gzipped = gzipSync(bytes, { level: 9 }).length;
  console.log(`${name.padEnd(16)} ${String(bytes.length).padStart(8)} bytes, ${String(gzipped).padStart(7)} gzipped`);
  return gzipped;
});
const total = sizes[0] + sizes[1];
console.log(`the download is ${total} bytes gzipped; at most ${MOST}, and ${AIM} is the aim`);
if (total > MOST) {
  console.error("the download is too large");
  process.exit(1);
}
