// Attention and contextual position encoding on the device.
import { referenceAttention, referenceContextualBias } from "/pkg/reference.js";
import { check, equal, gpu, near, numbers, safetensors } from "./common.mjs";

const article = await safetensors("article");

/** `[batch, heads, tokens, n]` in a file, as `[batch, tokens, heads, n]`. */
function headsSecond({ shape: [batch, heads, tokens, n], values }) {
  const shape = [batch, tokens, heads, n];
  const turned = Float32Array.from(values, (_, i) => {
    const [c, h, t, b] = [i % n, Math.floor(i / n) % heads, Math.floor(i / n / heads) % tokens, Math.floor(i / n / heads / tokens)];
    return values[((b * heads + h) * tokens + t) * n + c];
  });
  return { shape, values: turned };
}

/** A `[channels, positions]` matrix, or one with an axis of 1 before it. */
function matrix({ shape, values }) {
  const [channels, positions] = shape.slice(-2);
  return { shape: [1, channels, 1, positions], values };
}

const upload = async ({ shape, values }, element) => (await gpu()).tensor(Float32Array.from(values), shape, element);

/** Queries, keys and values with grouped heads, and position embeddings. */
const host = (tokens, keys, channels = 16) => ({
  q: { shape: [1, tokens, 4, channels], values: numbers(tokens * 4 * channels, 2) },
  k: { shape: [1, keys, 2, channels], values: numbers(keys * 2 * channels, 3) },
  v: { shape: [1, keys, 2, channels], values: numbers(keys * 2 * channels, 4) },
});
const embeddings = (positions, channels = 16) => ({ shape: [1, channels, 1, positions], values: numbers(channels * positions, 5) });

const onDevice = async (tensors, element) => Object.fromEntries(
  await Promise.all(Object.entries(tensors).map(async ([name, tensor]) => [name, await upload(tensor, element)])));

export default {
  async "the article's contextual bias"() {
    const names = Object.keys(article).filter((name) => /^cope\..*\.out$/.test(name)).map((name) => name.slice(0, -4));
    equal(names.length, 5, "the number of cases");
    for (const name of names) {
      const [query, logits, out] = ["query", "logits", "out"].map((part) => headsSecond(article[`${name}.${part}`]));
      const positionEmbeddings = matrix(article[`${name}.position_embeddings`]);
      const bias = await (await gpu()).contextualBias(await onDevice({ query, logits, positionEmbeddings }));
      const got = await bias.read();
      const exact = referenceContextualBias(query, logits, positionEmbeddings);
      near(got, exact, 2e-5, name);
      // PyTorch's float32 sums up to `keys` gates one after the other; a position's error is worth the largest step of q·E.
      const [keys, channels] = [logits.shape[3], query.shape[3]];
      const largest = Math.max(...exact.map(Math.abs));
      near(got, out.values, 2 * largest * keys * keys * 2 ** -23 + largest * channels * 2 ** -23 + 2e-5, `${name} against the article`);
    }
  },

  async "attention of a prompt, by each schedule"() {
    const device = await gpu();
    const tensors = host(9, 9);
    const gpuTensors = await onDevice(tensors);
    for (const settings of [{}, { causal: true }, { causal: true, window: 3 }, { scale: 0.3, standing: 2, causal: true }]) {
      const wanted = referenceAttention({ ...tensors, ...settings });
      for (const schedule of [undefined, "tiles", "rows", "split"]) {
        const lse = await device.zeros([1, 9, 4, 1]);
        const got = await device.attention({ ...gpuTensors, ...settings, schedule, lse });
        // Softmax of 9 keys and sums of as many products of numbers within 1: some dozen roundings.
        near(await got.read(), wanted.output, 1e-5, `${schedule} ${JSON.stringify(settings)}`);
        near(await lse.read(), wanted.lse, 1e-5, `lse of ${schedule}`);
      }
    }
  },

  async "with contextual position encoding"() {
    const device = await gpu();
    const tensors = host(9, 9);
    const positionEmbeddings = embeddings(6);
    const wanted = referenceAttention({ ...tensors, causal: true, cope: { positionEmbeddings, biasScale: 0.5 } });
    const plain = referenceAttention({ ...tensors, causal: true });
    check(wanted.output.some((x, i) => Math.abs(x - plain.output[i]) > 0.01), "the encoding changes something");
    const cope = { positionEmbeddings: await upload(positionEmbeddings), biasScale: 0.5 };
    for (const schedule of [undefined, "split"]) {
      const gateSum = await device.zeros([1, 9, 4, 2]);
      const got = await device.attention({ ...(await onDevice(tensors)), causal: true, cope, schedule, gateSum });
      near(await got.read(), wanted.output, 2e-5, String(schedule));
      const sums = await gateSum.read();
      near(sums.filter((_, i) => i % 2 === 0).map((whole, i) => whole + sums[2 * i + 1]),
        Array.from({ length: 36 }, (_, i) => wanted.gateSum[2 * i] + wanted.gateSum[2 * i + 1]), 1e-5, `gates of ${schedule}`);
    }
  },

  async "a decode step is prepared once and run for each token"() {
    const device = await gpu();
    const tensors = host(1, 12);
    const output = await device.zeros([1, 1, 4, 16]);
    const keyRanges = await device.integers(Int32Array.of(0), [1, 1, 1, 1]);
    const step = await device.prepareAttention({ ...(await onDevice(tensors)), output, keyRanges });
    for (const length of [1, 7, 12]) {
      await keyRanges.write(Int32Array.of(length));
      await device.run(step);
      const first = (tensor) => ({ shape: [1, length, 2, 16], values: tensor.values.slice(0, length * 32) });
      const wanted = referenceAttention({ q: tensors.q, k: first(tensors.k), v: first(tensors.v) });
      near(await output.read(), wanted.output, 1e-5, `${length} keys`);
    }
  },

  async "keys and values in f16"() {
    const device = await gpu();
    const tensors = host(5, 8);
    const [k, v] = [await upload(tensors.k, "f16"), await upload(tensors.v, "f16")];
    const rounded = { q: tensors.q, k: { ...tensors.k, values: await k.read() }, v: { ...tensors.v, values: await v.read() } };
    const got = await device.attention({ q: await upload(tensors.q), k, v, causal: true });
    near(await got.read(), referenceAttention({ ...rounded, causal: true }).output, 1e-5);
  },

  async "masks and biases"() {
    const device = await gpu();
    const tensors = host(5, 8);
    const keep = { shape: [1, 5, 1, 8], values: numbers(40, 7).map((x) => (x > -0.4 ? 1 : 0)) };
    const bias = { shape: [1, 1, 4, 8], values: numbers(32, 8) };
    const got = await device.attention({
      ...(await onDevice({ ...tensors, bias })), keep: await device.integers(Int32Array.from(keep.values), keep.shape),
    });
    near(await got.read(), referenceAttention({ ...tensors, keep, bias }).output, 1e-5);
  },
};
