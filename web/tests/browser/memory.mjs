// How much memory WASM has: a second call of the initialiser answers with the module's exports.
import init from "/pkg/phasor.js";

const exports = await init();
export const wasm = () => exports.memory.buffer.byteLength;
