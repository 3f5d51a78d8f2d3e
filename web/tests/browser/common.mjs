// What tests share: golden data, one device, comparisons.
import { Gpu } from "/pkg/phasor.js";

/** A safetensors file of f32 tensors: `{name: {shape, values}}`. */
export async function safetensors(name) {
  const bytes = await (await fetch(`/data/${name}.safetensors`)).arrayBuffer();
  const length = Number(new DataView(bytes).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length)));
  const tensors = {};
  for (const [key, { dtype, shape, data_offsets }] of Object.entries(header)) {
    if (dtype !== "F32") continue;
    const [start, end] = data_offsets;
    tensors[key] = { shape, values: new Float32Array(bytes.slice(8 + length + start, 8 + length + end)) };
  }
  return tensors;
}

let device;
/** One device for all tests. */
export const gpu = () => (device ??= Gpu.request());

export function equal(got, wanted, what = "value") {
  const [a, b] = [got, wanted].map((value) => JSON.stringify(value));
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

export function check(condition, what) {
  if (!condition) throw new Error(what);
}

/** Every number within a tolerance, which may be a function of the index. */
export function near(got, wanted, tolerance, what = "values") {
  equal(got.length, wanted.length, `the number of ${what}`);
  for (let i = 0; i < got.length; i++) {
    const allowed = typeof tolerance === "function" ? tolerance(i) : tolerance;
    // Not `>`: a NaN is no match.
    if (!(Math.abs(got[i] - wanted[i]) <= allowed)) throw new Error(`${what}[${i}] is ${got[i]}, not ${wanted[i]} ± ${allowed}`);
  }
}

/** Numbers that are the same every time, within ±1. */
export function numbers(count, seed = 1) {
  let state = seed >>> 0;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

/** The error of a function or promise that must fail, which must be one of ours. */
export async function failure(attempt, code) {
  try {
    await attempt();
  } catch (error) {
    check(error instanceof Error, `${error} is no Error`);
    equal([error.name, error.code], ["PhasorError", code], `what ${error.message} is`);
    return error;
  }
  throw new Error(`no error of code ${code}`);
}
