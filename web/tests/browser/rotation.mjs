// Rotations and tables on the device against other programs, and against float64.
import { Frequencies, ModelRope, Rope } from "/pkg/phasor.js";
import { referenceRotate, referenceTable } from "/pkg/reference.js";
import { check, equal, gpu, near, numbers, safetensors } from "./common.mjs";

/** Half a unit in the last place of 1 in float32. */
const HALF_ULP = 2 ** -24;
/** What cosines and sines may be off by. */
const ANGLE = 2e-7;

/** How far a float32 program's own angle may be off: the frequency's exponent, a dozen operations, the product. */
const angleOfFloat32 = (m, w) => m * w * HALF_ULP * (Math.abs(Math.log(w)) + 12) + 2 * HALF_ULP;

const smollm2 = await safetensors("smollm2");
const article = await safetensors("article");

/** What a rotated number may be off by: the angle's error and the roundings of two products and a sum, times the pair. */
function tolerances({ shape, values }, frequencies, pairing, angle) {
  const [, tokens, heads, channels] = shape;
  const inverse = frequencies.inverse;
  const pairs = inverse.length;
  return (i) => {
    const [channel, token] = [i % channels, Math.floor(i / channels / heads) % tokens];
    const [pair, other] = pairing === "half-split"
      ? [channel % pairs, channel < pairs ? i + pairs : i - pairs]
      : [channel >> 1, i ^ 1];
    const reach = Math.abs(values[i]) + Math.abs(values[other]);
    return frequencies.attentionFactor * reach * (angle(token, inverse[pair]) + ANGLE + 6 * HALF_ULP) + 1e-30;
  };
}

async function compare(frequencies, pairing, q, k, qOut, kOut) {
  const device = await gpu();
  const rope = await Rope.create(device, frequencies, { pairing });
  const table = await rope.table(0, q.shape[1]);
  for (const options of [{}, { table }]) {
    const tensors = { q: await device.tensor(q.values, q.shape), k: await device.tensor(k.values, k.shape) };
    await rope.rotate({ ...tensors, ...options });
    for (const [tensor, before, after] of [[tensors.q, q, qOut], [tensors.k, k, kOut]]) {
      const got = await tensor.read();
      near(got, after.values, tolerances(before, frequencies, pairing, angleOfFloat32), "rotated");
      const exact = referenceRotate(frequencies, before, { pairing });
      near(got, exact, tolerances(before, frequencies, pairing, () => 0), "against float64");
    }
  }
}

export default {
  async "queries and keys of SmolLM2 as transformers rotates them"() {
    const frequencies = Frequencies.plain(1e5, 64);
    for (const layer of ["layer0", "layer15"]) {
      const of = (part) => smollm2[`${layer}.${part}`];
      await compare(frequencies, "half-split", of("q"), of("k"), of("q_rotated"), of("k_rotated"));
    }
  },

  async "the article's rotations"() {
    const yarn = '{"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 2048, "attn_factor": 0.707}';
    for (const [name, frequencies] of [["linear", Frequencies.plain(1e4, 32)], ["yarn", Frequencies.fromSettings(yarn, 32)]]) {
      const of = (part) => article[`rotate.${name}.${part}`];
      await compare(frequencies, "interleaved", of("q"), of("k"), of("q_out"), of("k_out"));
    }
  },

  async "the article's tables"() {
    const device = await gpu();
    const { shape: [rows, pairs], values: cos } = article["tables.ntk_d64_t96_a16.cos"];
    const sin = article["tables.ntk_d64_t96_a16.sin"].values;
    const frequencies = Frequencies.fromSettings('{"rope_type": "ntk_alpha", "alpha": 16}', 64);
    const rope = await Rope.create(device, frequencies, { pairing: "interleaved" });
    const got = await (await rope.table(0, rows)).tensor.read();
    const wanted = Float32Array.from(got, (_, i) => {
      const [row, half, pair] = [Math.floor(i / pairs / 2), Math.floor(i / pairs) % 2, i % pairs];
      return (half ? sin : cos)[row * pairs + pair];
    });
    const inverse = frequencies.inverse;
    near(got, wanted, (i) => angleOfFloat32(Math.floor(i / pairs / 2), inverse[i % pairs]) + ANGLE, "table");
  },

  async "angles at the ends of what a position can be"() {
    const frequencies = Frequencies.plain(1e4, 64);
    const rope = await Rope.create(await gpu(), frequencies, { pairing: "half-split" });
    for (const start of [-(2 ** 31), 2 ** 31 - 4, 131072]) {
      const got = await (await rope.table(start, 4)).tensor.read();
      const { cos, sin } = referenceTable(frequencies, Int32Array.from({ length: 4 }, (_, i) => start + i));
      for (let row = 0; row < 4; row++) {
        near(got.subarray(64 * row, 64 * row + 32), cos.subarray(32 * row, 32 * row + 32), ANGLE, `cosines from ${start}`);
        near(got.subarray(64 * row + 32, 64 * row + 64), sin.subarray(32 * row, 32 * row + 32), ANGLE, `sines from ${start}`);
      }
    }
  },

  async "f16 and bf16 are rotated where they are"() {
    const device = await gpu();
    const frequencies = Frequencies.plain(1e4, 32);
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const shape = [1, 5, 2, 32];
    // Half a unit in the last place of 11 and of 8 bits.
    for (const [element, half] of [["f16", 2 ** -11], ["bf16", 2 ** -8]]) {
      const x = await device.tensor(numbers(320), shape, element);
      equal([x.element, x.shape[1]], [element, 5]);
      const before = { values: await x.read(), shape };
      near(before.values, numbers(320), half, "rounded");
      await rope.rotate({ q: x, positions: 7 });
      const exact = referenceRotate(frequencies, before, { pairing: "half-split", positions: 7 });
      near(await x.read(), exact, (i) => half * Math.abs(exact[i]) + tolerances(before, frequencies, "half-split", () => 0)(i) + 2 ** -25, element);
    }
  },

  async "out of place, by positions from a buffer, and back again"() {
    const device = await gpu();
    const frequencies = Frequencies.plain(1e4, 16);
    const rope = await Rope.create(device, frequencies, { pairing: "interleaved" });
    const shape = [2, 3, 1, 16];
    const before = { values: numbers(96), shape };
    const listed = Int32Array.from([5, -3, 1000000, 0, 1, 2]);
    const [q, qOut, positions] = [await device.tensor(before.values, shape), await device.zeros(shape), await device.integers(listed, [2, 3, 1, 1])];
    const step = await rope.prepare({ q, qOut, positions: { perToken: positions } });
    check(step.shaders.length === 1 && step.shaders[0].startsWith("rope_rotate"), step.shaders.join());
    await device.run(step);
    const exact = referenceRotate(frequencies, before, { pairing: "interleaved", positions: listed });
    near(await qOut.read(), exact, tolerances(before, frequencies, "interleaved", () => 0));
    // The same step again, after the positions have changed.
    await positions.write(new Int32Array(6));
    await device.run(step);
    near(await qOut.read(), before.values, tolerances(before, frequencies, "interleaved", () => 0));
    await positions.write(listed);
    await device.run(step);
    await rope.rotate({ q: qOut, positions: { perToken: positions }, direction: "inverse" });
    near(await qOut.read(), before.values, (i) => 3 * tolerances(before, frequencies, "interleaved", () => 0)(i));
  },

  async "keys go to the rows of a cache"() {
    const device = await gpu();
    const frequencies = Frequencies.plain(1e4, 8);
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const [k, kCache] = [await device.tensor(numbers(8), [1, 1, 1, 8]), await device.zeros([1, 4, 1, 8], "f16")];
    const startPerRow = await device.integers(Int32Array.of(2), [1, 1, 1, 1]);
    await rope.rotate({ k, kCache, rows: { startPerRow }, positions: { startPerRow } });
    const got = await kCache.read();
    const exact = referenceRotate(frequencies, { values: numbers(8), shape: [1, 1, 1, 8] }, { pairing: "half-split", positions: 2 });
    near(got, Array.from({ length: 32 }, (_, i) => (i >> 3 === 2 ? exact[i & 7] : 0)), 2 ** -10);
  },

  async "the rope of a layer, and slices of a packed projection"() {
    const device = await gpu();
    const layer = new ModelRope('{"model_type": "llama", "head_dim": 8, "rope_theta": 10000}').layer(0);
    const rope = await Rope.forLayer(device, layer, 16);
    equal(rope.frequencies.rotaryDim, 8);
    const packed = await device.tensor(numbers(2 * 3 * 8), [1, 2, 3, 8]);
    await rope.rotate({ q: packed.heads(0, 1), k: packed.heads(1, 2), positions: 3 });
    const exact = referenceRotate(rope.frequencies, { values: numbers(48), shape: [1, 2, 3, 8] }, { pairing: "half-split", positions: 3 });
    near(await packed.read(), Array.from(exact, (x, i) => ((i >> 3) % 3 === 2 ? numbers(48)[i] : x)), 1e-6);
  },
};
