// The operations without a device.
import { Frequencies } from "/pkg/phasor.js";
import { referenceAttention, referenceContextualBias, referenceGate, referencePositions, referenceRotate, referenceTable } from "/pkg/reference.js";
import { equal, failure, near } from "./common.mjs";

export default {
  "a rotation is what it says"() {
    const got = referenceRotate(new Frequencies([1]), { values: [1, 0], shape: [1, 1, 1, 2] }, { pairing: "half-split", positions: 3 });
    near(got, [Math.cos(3), Math.sin(3)], 1e-15);
    const { cos, sin } = referenceTable(new Frequencies([0.5], 2), Int32Array.of(0, 1));
    near([...cos, ...sin], [2, 2 * Math.cos(0.5), 0, 2 * Math.sin(0.5)], 1e-15);
  },

  "contextual positions count gates from the right"() {
    equal([...referencePositions([1, 0.5, 1], 3)], [2, 1.5, 1]);
    equal([referenceGate(0), referenceGate(-1e30)], [0.5, 0]);
  },

  "attention, causal"() {
    const x = { values: [1, 0, 0, 1], shape: [1, 2, 1, 2] };
    const { output, lse } = referenceAttention({ q: x, k: x, v: x, causal: true });
    near(output.slice(0, 2), [1, 0], 0);
    near([lse[0]], [Math.SQRT1_2], 1e-15);
  },

  async "what does not fit is refused"() {
    const frequencies = new Frequencies([1]);
    const x = { values: [1, 0], shape: [1, 1, 1, 2] };
    equal((await failure(() => referenceRotate(frequencies, { ...x, shape: [1, 1, 1, 3] }, { pairing: "half-split" }), "Tensor")).argument, "shape");
    await failure(() => referenceRotate(frequencies, x, {}), "Tensor");
    await failure(() => referenceRotate(frequencies, x, { pairing: "both" }), "Tensor");
    await failure(() => referenceRotate(frequencies, x, { pairing: "half-split", positons: 3 }), "Tensor");
    for (const positions of ["3", 0.5, [3], new Float32Array(1)]) {
      const error = await failure(() => referenceRotate(frequencies, x, { pairing: "half-split", positions }), "Tensor");
      equal(error.argument, "options.positions");
    }
    const last = 2 ** 31 - 1;
    const two = { values: [1, 0, 1, 0], shape: [1, 2, 1, 2] };
    referenceRotate(frequencies, x, { pairing: "half-split", positions: last });
    equal((await failure(() => referenceRotate(frequencies, two, { pairing: "half-split", positions: last }), "Position")).argument, "options.positions");
    for (const positions of [new Int32Array(0), new Int32Array(2)]) {
      await failure(() => referenceRotate(frequencies, x, { pairing: "half-split", positions }), "Tensor");
    }
    // Without a prototype, an object is one.
    referenceRotate(frequencies, x, Object.assign(Object.create(null), { pairing: "half-split" }));
    await failure(() => referenceAttention({ q: x, k: x }), "Tensor");
  },

  async "what no memory holds is refused"() {
    const empty = (...shape) => ({ values: [], shape });
    const long = empty(1, 1e9, 1, 0);
    equal((await failure(() => referenceAttention({ q: empty(1, 1, 1, 0), k: long, v: long }), "Tensor")).argument, "shape");
    const one = { values: [1, 2], shape: [1, 1, 1, 2] };
    const wide = empty(1, 0, 1, 2 ** 32 - 1);
    equal((await failure(() => referenceAttention({ q: one, k: empty(1, 0, 1, 2), v: wide }), "Tensor")).argument, "shape");
    const many = { values: new Float32Array(20000), shape: [1, 20000, 1, 1] };
    const channels = { values: new Float32Array(20000), shape: [1, 1, 1, 20000] };
    const key = { values: [1], shape: [1, 1, 1, 1] };
    equal((await failure(() => referenceAttention({ q: many, k: key, v: channels }), "Tensor")).argument, "q");
    const logits = { values: [1, 2, 3], shape: [1, 1, 1, 3] };
    await failure(() => referenceContextualBias(empty(1, 1, 1, 0), logits, wide), "Tensor");
    const pairs = { inverse: new Float64Array(1e5) };
    equal((await failure(() => referenceTable(pairs, new Int32Array(1e5)), "Tensor")).argument, "positions");
    equal(referenceGate(0), 0.5, "the module works on");
    await failure(() => referenceAttention(), "Tensor");
  },
};
