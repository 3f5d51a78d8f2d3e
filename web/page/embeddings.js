// Position embeddings that were not learned but made up, since no open model was trained with CoPE.

/**
 * Each gives `f(p)`: what an average query of the head adds to the logit of a key at contextual position `p`. `label` says
 * what comes of it.
 */
export const EMBEDDINGS = [
  { name: "near", label: "prefer what is few counts back", f: (p) => -0.6 * p },
  { name: "third", label: "look for what is three counts back", f: (p) => 5 * Math.exp(-((p - 3) ** 2)) },
  { name: "far", label: "prefer what is many counts back", f: (p) => 0.3 * p },
  { name: "random", label: "random, as before any training", f: undefined },
];

/** Embeddings `[1, channels, 1, positions]` for a head whose queries are `[1, tokens, 1, channels]`. */
export function madeUp(name, { values: q, shape: [, tokens, , channels] }, positions) {
  const { f } = EMBEDDINGS.find((each) => each.name === name);
  const values = new Float32Array(channels * positions);
  const shape = [1, channels, 1, positions];
  if (!f) return { values: values.map(noise()), shape };
  // Along the mean query, so long that its product with the mean query is f.
  const mean = Float64Array.from({ length: channels }, (_, c) => {
    let sum = 0;
    for (let t = 0; t < tokens; t++) sum += q[t * channels + c];
    return sum / tokens;
  });
  const length = mean.reduce((sum, x) => sum + x * x, 0);
  for (let c = 0; c < channels; c++) {
    for (let p = 0; p < positions; p++) values[c * positions + p] = (mean[c] / length) * f(p);
  }
  return { values, shape };
}

/** Numbers from -0.3 to 0.3, the same every time. */
function noise() {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 0.3 * (state / 2 ** 31 - 1);
  };
}
