// How much memory WASM has: a second call of the initialiser answers with the module's exports.
import init from "/pkg/phasor.js";

const memory = Object.values(await init()).find((value) => value instanceof WebAssembly.Memory);
export const wasm = () => memory.buffer.byteLength;
