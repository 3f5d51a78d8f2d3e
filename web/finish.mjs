#!/usr/bin/env node
// Makes pkg/ of what wasm-bindgen wrote: smaller modules, a trap that is an Error, JavaScript without what only people
// read. Prints the sizes of the downloads and fails if one is too large.
//
//   node finish.mjs FROM REFERENCE
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = path.dirname(fileURLToPath(import.meta.url));

/** What the download should be: JavaScript and WASM together, gzipped, in bytes. */
const AIM = 100_000;

/** What each may be at most, until it is what it should be: what it was when this was written, and 2 %. */
const MOST = { phasor: 150_000, reference: 23_200 };

/** WebAssembly that every browser with WebGPU has. */
const FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];

/** What our JavaScript adds to wasm-bindgen's, so that whatever goes wrong is an error of ours that says what to do. */
const GUARD = `
import { failed as failure, refuse } from "OPTIONS";

// Any call before init() has come to its end.
const unready = new Proxy({}, {
  get() {
    throw failure("NotReady", undefined, "phasor is not there yet: await init() before anything else");
  },
});

function unmade(kind) {
  throw failure("Tensor", kind, kind + ": was made by new, may be what a function of this package returns");
}

async function init(...given) {
  try {
    return await __wbg_init(...given);
  } catch (error) {
    const message = "phasor's module cannot be loaded: " + error.message + "; it may be handed over, as init({ module_or_path: bytes })";
    throw Object.assign(failure("NotReady", undefined, message), { cause: error });
  }
}

function expectInstance(value, kind, name, kindName) {
  if (!(value instanceof kind) || !value.__wbg_ptr) refuse(value, name, "a " + kindName + " that has not been freed");
}

// A trap is a mistake of ours, and of all that it left half done nothing may be called again.
function guarded(exports) {
  let broken;
  const guard = (call) => (...args) => {
    if (broken) throw broken;
    try {
      return call(...args);
    } catch (error) {
      if (error.message === "null pointer passed to rust") throw failure("Tensor", "this", "this: was freed or never made, may be an object that this package has made");
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      broken = Object.assign(failure("Panic", undefined, "a mistake in phasor, please report it: " + error.message), { cause: error });
      throw broken;
    }
  };
  return Object.fromEntries(Object.entries(exports).map(([name, value]) => [name, typeof value === "function" ? guard(value) : value]));
}
`;

const to = path.join(here, "pkg");
fs.rmSync(to, { recursive: true, force: true });
fs.mkdirSync(to);

/** Optimizes the module `name`, and returns the names that it has given to imports and exports, in place of long ones. */
function optimize(from, name) {
  const optimizer = path.join(here, "node_modules/binaryen/bin/wasm-opt");
  const optimized = spawnSync(process.execPath, [optimizer, "-Oz", "--flatten", "--rereloop", "-Oz", "-Oz",
    "--flatten", "--simplify-locals-notee-nostructure", "--flatten", "--rereloop", "-Oz", "-Oz", "--traps-never-happen",
    // Hints that engines do not heed, all alike.
    "--dealign", "--strip-producers",
    // Functions that stay apart are longer, and more like each other.
    "--one-caller-inline-max-function-size=0", "--minify-imports-and-exports-and-modules",
    "--strip-target-features", ...FEATURES.map((feature) => `--enable-${feature}`),
    path.join(from, `${name}_bg.wasm`), "-o", path.join(to, `${name}_bg.wasm`)], { stdio: ["ignore", "pipe", "inherit"] });
  if (optimized.status !== 0) process.exit(1);
  return JSON.parse(optimized.stdout.toString());
}

/** Replaces what must be there: wasm-bindgen may write it otherwise one day. */
function replaced(text, pattern, replacement) {
  const changed = text.replace(pattern, replacement);
  if (changed === text) throw new Error(`wasm-bindgen has written nothing like ${pattern}`);
  return changed;
}

/** Puts a module into pkg/ and returns how many bytes of JavaScript and WASM it is, gzipped. */
async function finish(from, name) {
  const names = optimize(from, name);
  const imports = new Map(names.imports.map(([, long, short]) => [long, short]));
  const exports = new Map(names.exports);
  let script = fs.readFileSync(path.join(from, `${name}.js`), "utf8");
  script = replaced(script, "wasm = instance.exports;", "wasm = guarded(instance.exports);");
  script = replaced(script, "wasmInstance, wasm;", "wasmInstance, wasm = unready;");
  script = replaced(script, /if \(wasm !== undefined\)/g, "if (wasm !== unready)");
  // What JavaScript disposes of twice is disposed of once.
  script = script.replace(/(const ptr = this\.__destroy_into_raw\(\);\s*)wasm/g, "$1if (ptr) wasm");
  script = replaced(script, "export { initSync, __wbg_init as default };", "export { initSync, init as default };");
  const types = fs.readFileSync(path.join(from, `${name}.d.ts`), "utf8");
  for (const [, kind] of types.matchAll(/class (\w+) \{\s+private constructor/g)) {
    script = replaced(script, `export class ${kind} {`, `export class ${kind} { constructor() { unmade("${kind}"); }`);
  }
  // The names of classes do not outlive what makes the JavaScript short.
  script = script.replace(/_assertClass\((\w+), (\w+)\);/g, 'expectInstance($1, $2, "$1", "$2");');
  script = replaced(script, `"./${name}_bg.js": import0`, '"a": import0');
  script = replaced(script, /^ {8}(\w+): function\(/gm, (line, long) => line.replace(long, imports.get(long) ?? long));
  script = replaced(script, /\bwasm\.(\w+)/g, (line, long) => `wasm.${exports.get(long) ?? long}`);
  // With the JavaScript that it imports.
  const whole = path.join(from, `${name}.finished.js`);
  const [, options] = script.match(/^import \{.*\} from '(.*options\.js)';$/m);
  fs.writeFileSync(whole, GUARD.replace("OPTIONS", options) + script);
  await build({
    entryPoints: [whole], outfile: path.join(to, `${name}.js`),
    bundle: true, format: "esm", minify: true, target: "es2022", logLevel: "warning",
  });

  // What the module itself exports is no part of the package.
  fs.writeFileSync(path.join(to, `${name}.d.ts`), replaced(types, /(export interface InitOutput \{)[^}]*\}/, "$1}"));

  const sizes = [`${name}.js`, `${name}_bg.wasm`].map((file) => {
    const bytes = fs.readFileSync(path.join(to, file));
    const gzipped = gzipSync(bytes, { level: 9 }).length;
    console.log(`${file.padEnd(18)} ${String(bytes.length).padStart(8)} bytes, ${String(gzipped).padStart(7)} gzipped`);
    return gzipped;
  });
  return sizes[0] + sizes[1];
}

const [from, reference] = process.argv.slice(2);
const [total, apart] = [await finish(from, "phasor"), await finish(reference, "reference")];
console.log(`the download is ${total} bytes gzipped; at most ${MOST.phasor}, and ${AIM} is the aim`);
console.log(`the reference, where a page asks for it, is ${apart} bytes gzipped; at most ${MOST.reference}`);
if (total > MOST.phasor || apart > MOST.reference) {
  console.error("a download is too large");
  process.exit(1);
}
