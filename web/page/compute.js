// The same few operations on a GPU and on the CPU, with tensors `{values, shape}` in and out.
import { Rope } from "./pkg/phasor.js";
import init, { referenceAttention, referenceContextualBias, referenceRotate, referenceTable } from "./pkg/reference.js";

/** Runs `work` with a function that notes what is to be freed afterwards, and frees it. */
async function freeing(work) {
  const owned = [];
  const own = async (promise) => {
    const thing = await promise;
    owned.push(thing);
    return thing;
  };
  try {
    return await work(own);
  } finally {
    for (const thing of owned) thing.free();
  }
}

const PAIRING = { pairing: "half-split" };

/** With the package's kernels. */
export class OnDevice {
  constructor(gpu) {
    this.gpu = gpu;
  }

  /** Cosines and sines, each `[positions, pairs]`, times the attention factor. */
  table(frequencies, positions) {
    return freeing(async (own) => {
      const rope = await own(Rope.create(this.gpu, frequencies, PAIRING));
      const where = await own(this.gpu.integers(positions, [1, positions.length, 1, 1]));
      const table = await own(rope.tableFor(where));
      const values = await (await own(table.tensor)).read();
      const pairs = frequencies.rotaryDim / 2;
      // A row has its cosines, then its sines.
      const [cos, sin] = [0, 1].map((half) => {
        const part = new Float32Array(positions.length * pairs);
        for (let row = 0; row < positions.length; row++) {
          part.set(values.subarray((2 * row + half) * pairs, (2 * row + half + 1) * pairs), row * pairs);
        }
        return part;
      });
      return { cos, sin };
    });
  }

  /** `x` `[1, tokens, heads, channels]` with each token turned to its position; half-split pairs. */
  rotate(frequencies, x, positions) {
    return freeing(async (own) => {
      const rope = await own(Rope.create(this.gpu, frequencies, PAIRING));
      const where = await own(this.gpu.integers(positions, [1, positions.length, 1, 1]));
      const q = await own(this.#tensor(x));
      await rope.rotate({ q, positions: { perToken: where } });
      return { values: await q.read(), shape: x.shape };
    });
  }

  /** What contextual position encoding adds to logits; gates are the sigmoid of `gateLogits` `[1, tokens, 1, keys]`. */
  contextualBias({ query, gateLogits, positionEmbeddings }) {
    return freeing(async (own) => {
      const bias = await own(this.gpu.contextualBias({
        query: await own(this.#tensor(query)),
        logits: await own(this.#tensor(gateLogits)),
        positionEmbeddings: await own(this.#tensor(positionEmbeddings)),
      }));
      return bias.read();
    });
  }

  /** Causal attention of one head; with `cope`, in a fused kernel that keeps neither gates nor bias. */
  attention({ q, k, v, cope }) {
    return freeing(async (own) => {
      const [ownQ, ownK, ownV] = [await own(this.#tensor(q)), await own(this.#tensor(k)), await own(this.#tensor(v))];
      // For a few dozen tokens the schedule that compiles soonest is the fastest.
      const options = { q: ownQ, k: ownK, v: ownV, causal: true, schedule: "split" };
      if (cope) {
        const gateKeys = { shape: k.shape, values: k.values.map((x) => x * cope.sharpness) };
        options.cope = {
          query: await own(this.#tensor(cope.query)),
          positionEmbeddings: await own(this.#tensor(cope.positionEmbeddings)),
          gates: await own(this.#tensor(gateKeys)),
        };
      }
      return (await own(this.gpu.attention(options))).read();
    });
  }

  #tensor({ values, shape }) {
    return this.gpu.tensor(Float32Array.from(values), shape);
  }
}

/** With the package's reference: plain loops in f64, which are loaded for it. */
export class OnCpu {
  static async load() {
    await init();
    return new OnCpu();
  }

  async table(frequencies, positions) {
    return referenceTable(frequencies, positions);
  }

  async rotate(frequencies, x, positions) {
    return { values: referenceRotate(frequencies, x, { ...PAIRING, positions }), shape: x.shape };
  }

  async contextualBias({ query, gateLogits, positionEmbeddings }) {
    return referenceContextualBias(query, gateLogits, positionEmbeddings);
  }

  async attention({ q, k, v, cope }) {
    // The same sum, with the bias made first: the reference takes no gates of their own.
    const bias = cope && { shape: [1, q.shape[1], 1, k.shape[1]], values: cope.bias };
    return referenceAttention({ q, k, v, causal: true, ...(bias && { bias }) }).output;
  }
}
