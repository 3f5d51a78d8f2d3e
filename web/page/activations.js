// What SmolLM2-135M-Instruct made of a paragraph: queries and keys of two layers, before their rotation.
import { Frequencies } from "./pkg/phasor.js";
import { safetensors } from "./safetensors.js";

let read;
/** The activations, fetched once. */
export const activations = () => (read ??= safetensors(new URL("data/smollm2.safetensors", import.meta.url)).then(arranged));

function arranged({ tensors, metadata }) {
  const tokens = words(metadata.text);
  const [, count] = tensors.token_ids.shape;
  if (tokens.length !== count) throw new Error(`the text has ${tokens.length} pieces, and the model read ${count} tokens`);
  const layers = Object.keys(tensors).map((name) => name.match(/^layer(\d+)\.q$/)?.[1]).filter(Boolean).map(Number);
  const [, , heads, channels] = tensors[`layer${layers[0]}.q`].shape;
  return {
    tokens,
    layers: layers.sort((a, b) => a - b),
    heads,
    channels,
    frequencies: Frequencies.plain(Number(metadata.rope_theta), Number(metadata.head_dim)),
    /** `{q, k}`, each `[1, tokens, 1, channels]`, of a query head and the key head that serves it. */
    head(layer, head) {
      const [q, k] = ["q", "k"].map((name) => tensors[`layer${layer}.${name}`]);
      const shared = heads / k.shape[2];
      return { q: oneHead(q, head), k: oneHead(k, Math.floor(head / shared)) };
    },
  };
}

/**
 * A text as the pieces before byte-pair encoding: words with the space before them, and punctuation. A token never joins
 * two of these, so where there are as many tokens as pieces, each piece is one token.
 */
export const words = (text) => text.match(/ ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+/gu) ?? [];

function oneHead({ shape: [, tokens, heads, channels], values }, head) {
  const own = new Float32Array(tokens * channels);
  for (let t = 0; t < tokens; t++) {
    const start = (t * heads + head) * channels;
    own.set(values.subarray(start, start + channels), t * channels);
  }
  return { shape: [1, tokens, 1, channels], values: own };
}
