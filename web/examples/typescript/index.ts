// The package as a TypeScript program uses it: compiled by the tests, against the types that the build emits.
import init, { Frequencies, Gpu, ModelRope, Rope, type PhasorError, type Step } from "phasor";
import initReference, { referenceRotate } from "phasor/reference";

await init();

/** Rotates queries by the rope of a model's first layer, on the GPU if there is one. */
export async function rotated(config: string, values: Float32Array, tokens: number): Promise<Float32Array | Float64Array> {
  const layer = new ModelRope(config).layer(0);
  const shape: [number, number, number, number] = [1, tokens, values.length / tokens / layer.headDim, layer.headDim];
  try {
    const gpu = await Gpu.request();
    const rope = await Rope.forLayer(gpu, layer, tokens);
    using q = await gpu.tensor(values, shape);
    await rope?.rotate({ q });
    return await q.read();
  } catch (error) {
    if ((error as PhasorError).code !== "NoAdapter") throw error;
    await initReference();
    return referenceRotate(layer.frequencies(tokens), { values, shape }, { pairing: layer.pairing });
  }
}

/** One decode step: prepared once, run for every token. */
export async function decodeStep(gpu: Gpu, rows: number): Promise<Step[]> {
  const rope = await Rope.create(gpu, Frequencies.plain(500_000, 128), { pairing: "half-split" });
  const q = await gpu.zeros([1, 1, 32, 128]);
  const k = await gpu.zeros([1, 1, 8, 128]);
  const [kCache, vCache] = [await gpu.zeros([1, rows, 8, 128], "f16"), await gpu.zeros([1, rows, 8, 128], "f16")];
  const length = await gpu.integers(Int32Array.of(0), [1, 1, 1, 1]);
  const output = await gpu.zeros([1, 1, 32, 128]);
  const keyRanges = await gpu.integers(Int32Array.of(1), [1, 1, 1, 1]);
  return [
    await rope.prepare({ q, k, kCache, rows: { startPerRow: length }, positions: { startPerRow: length } }),
    await gpu.prepareAttention({ q, k: kCache, v: vCache, keyRanges, output, causal: true, standing: "row-last" }),
  ];
}

// @ts-expect-error: a misspelt option is a mistake that the compiler sees.
void ((rope: Rope) => rope.rotate({ positons: 3 }));
// @ts-expect-error: so is a word that means nothing.
void ((gpu: Gpu) => Rope.create(gpu, Frequencies.plain(1e4, 64), { pairing: "neox" }));
