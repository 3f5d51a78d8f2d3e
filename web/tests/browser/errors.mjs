// Whatever a page hands over, it gets an answer or an Error that names what is wrong; and so it does from the device.
import { Frequencies, Gpu, LayerRope, ModelRope, Rope, RopeTable, Step, Tensor } from "/pkg/phasor.js";
import { referenceGate, referencePositions } from "/pkg/reference.js";
import { check, equal, failure, gpu, near, numbers } from "./common.mjs";

const frequencies = Frequencies.plain(1e4, 8);

export default {
  async "no WebGPU"() {
    for (const [gpu, why] of [[undefined, "navigator.gpu"], [{ requestAdapter: async () => null }, "turned on"]]) {
      Object.defineProperty(navigator, "gpu", { value: gpu, configurable: true });
      try {
        const { message } = await failure(() => Gpu.request(), "NoAdapter");
        check(message.includes(why), message);
      } finally {
        delete navigator.gpu;
      }
    }
  },

  async "nothing is as good as something"() {
    const device = await gpu();
    const empty = await device.tensor(new Float32Array(0), [1, 0, 1, 8]);
    await (await Rope.create(device, frequencies, { pairing: "half-split" })).rotate({ q: empty });
    equal((await empty.read()).length, 0);
    await device.run();
  },

  async "tensors that cannot be"() {
    const device = await gpu();
    equal((await failure(() => device.tensor(new Float32Array(3), [1, 1, 1, 4]), "Tensor")).argument, "shape");
    for (const values of [undefined, null, [1, 2, 3, 4], "1234", new Float64Array(4)]) {
      equal((await failure(() => device.tensor(values, [1, 1, 1, 4]), "Tensor")).argument, "values");
    }
    for (const shape of [undefined, 4, [4], [1, 1, 1, -4], [1, 1, 1, 0.5], [1, 1, 1, NaN], ["1", 1, 1, 4], [1, 1, 1, 4, 1], {}]) {
      equal((await failure(() => device.tensor(new Float32Array(4), shape), "Tensor")).argument, "shape");
    }
    await failure(() => device.tensor(new Float32Array(4), [1, 1, 1, 4], "f8"), "Tensor");
    await failure(() => device.tensor(new Float32Array(4), [1, 1, 1, 4], "i32"), "Tensor");
    await failure(() => device.integers([1], [1, 1, 1, 1]), "Tensor");
    await failure(async () => (await device.integers(Int32Array.of(1), [1, 1, 1, 1])).read(), "Tensor");
  },

  async "tensors that are too large"() {
    const device = await gpu();
    await failure(() => device.zeros([1, 1, 4096, 4000000000]), "Tensor");
    await failure(() => device.zeros([1, 1, 1, 4000000000], "bf16"), "Limit");
    const bytes = device.device.limits.maxBufferSize + 4;
    await failure(() => device.zeros([1, 1, 1, bytes / 4]), "Limit");
  },

  async "rotations that cannot be"() {
    const device = await gpu();
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const q = await device.tensor(numbers(16), [1, 2, 1, 8]);
    const narrow = await device.tensor(numbers(8), [1, 2, 1, 4]);
    const named = async (options, code, argument) => equal((await failure(() => rope.rotate(options), code)).argument, argument);
    await named({}, "Tensor", "options.q");
    await named(undefined, "Tensor", "options.q");
    await named(7, "Tensor", "options");
    await named({ q: narrow }, "Tensor", "q");
    await named({ q, k: narrow }, "Tensor", "k");
    await named({ q: new Float32Array(16) }, "Tensor", "options.q");
    await named({ q, positions: 1.5 }, "Tensor", "options.positions");
    await named({ q, positions: 2 ** 31 }, "Tensor", "options.positions");
    await named({ q, positions: 2 ** 31 - 1 }, "Position", "positions");
    await named({ q, positions: { perToken: q } }, "Tensor", "positions");
    await named({ q, postions: 3 }, "Tensor", "options.postions");
    await named({ q, direction: "up" }, "Tensor", "options.direction");
    await named({ q, kCache: q, k: narrow }, "Tensor", "options.rows");
    await failure(() => Rope.create(device, frequencies, { pairing: "neox" }), "Tensor");
    await failure(() => Rope.create(device, frequencies), "Tensor");
    await failure(() => Rope.create(device, frequencies, { pairing: "half-split", axes: [0, 300, 0, 0] }), "Tensor");
    await failure(() => device.run(rope), "Tensor");
    await failure(() => device.attention({ q, k: q }), "Tensor");
    await failure(() => device.prepareAttention({ q, k: q, v: q }), "Tensor");
  },

  async "numbers and texts that are none"() {
    const device = await gpu();
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const q = await device.tensor(numbers(16), [1, 2, 1, 8]);
    const model = new ModelRope('{"model_type": "llama", "num_hidden_layers": 2, "head_dim": 8, "rope_theta": 10000}');
    const settings = '{"rope_type": "default", "rope_theta": 10000}';
    const counts = [undefined, -1, 0.5, NaN, "1", 2 ** 32, [1], {}];
    const texts = [undefined, null, 7, {}, ["{}"]];
    for (const [argument, call, values] of [
      ["base", (value) => Frequencies.plain(value, 8), [undefined, "1e4", {}]],
      ["rotaryDim", (value) => Frequencies.plain(1e4, value), counts],
      ["attentionFactor", (value) => new Frequencies([1], value), ["1", NaN, {}]],
      ["inverse", (value) => new Frequencies(value), [undefined, 1, "1", [[1]], ["1"], new Int32Array(1)]],
      ["settings", (value) => Frequencies.fromSettings(value, 8), texts],
      ["headDim", (value) => Frequencies.fromSettings(settings, value), counts],
      ["seqLen", (value) => Frequencies.fromSettings(settings, 8, value), counts.slice(1)],
      ["config", (value) => new ModelRope(value), texts],
      ["kind", (value) => model.layersOf(value), counts],
      ["layer", (value) => model.layer(value), counts],
      ["name", (value) => model.layerType(value), texts],
      ["position", (value) => model.layer(0).queryScaleAt(value), [undefined, 0.5, "1", 2 ** 31]],
      ["seqLen", (value) => model.layer(0).frequencies(value), counts.slice(1)],
      ["seqLen", (value) => Rope.forLayer(device, model.layer(0), value), counts.slice(1)],
      ["start", (value) => rope.table(value, 1), [undefined, 0.5, "1", 2 ** 31]],
      ["tokens", (value) => rope.table(0, value), counts],
      ...["heads", "tokens", "batch"].flatMap((part) => [
        ["start", (value) => q[part](value, 1), counts],
        ["end", (value) => q[part](0, value), counts],
      ]),
      ["logit", (value) => referenceGate(value), [undefined, "1", {}]],
      ["gates", (value) => referencePositions(value, 1), [undefined, "1", [[1]]]],
      ["positions", (value) => referencePositions([1], value), counts],
    ]) {
      for (const value of values) {
        equal((await failure(() => call(value), "Tensor")).argument, argument, `what ${JSON.stringify(value)} is refused as`);
      }
    }
    check((await failure(() => new Frequencies([[1], [2]]), "Tensor")).message.includes("was [an array, an array]"), "it says what was given");
    for (const nothing of [undefined, null]) equal(new Frequencies([1], nothing).attentionFactor, 1);
  },

  async "objects of another class"() {
    const device = await gpu();
    const tensor = await device.tensor(numbers(8), [1, 1, 1, 8]);
    const named = async (call, argument, kind) => {
      const error = await failure(call, "Tensor");
      equal(error.argument, argument);
      check(error.message.includes(`a ${kind} that`), error.message);
    };
    for (const other of [undefined, null, 7, {}, tensor]) {
      await named(() => Rope.create(other, frequencies, { pairing: "half-split" }), "gpu", "Gpu");
      await named(() => Rope.create(device, other, { pairing: "half-split" }), "frequencies", "Frequencies");
      await named(() => Rope.forLayer(device, other), "layer", "LayerRope");
    }
  },

  async "objects that only the package makes"() {
    for (const kind of [Gpu, Rope, Tensor, RopeTable, Step, LayerRope]) await failure(() => new kind(), "Tensor");
  },

  async "nothing works before init"() {
    for (const name of ["phasor", "reference"]) {
      const fresh = await import(`/pkg/${name}.js?fresh`);
      const call = name === "phasor" ? () => fresh.Frequencies.plain(1e4, 8) : () => fresh.referenceGate(0);
      check((await failure(call, "NotReady")).message.includes("await init()"), "it says what to do");
      for (const bytes of [5, new Uint8Array(8), "/nothing.wasm"]) {
        check((await failure(() => fresh.default({ module_or_path: bytes }), "NotReady")).message.includes("module_or_path"), "it says what to do");
      }
      await fresh.default();
      call();
    }
  },

  async "what was freed is refused"() {
    const device = await gpu();
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const q = await device.tensor(numbers(16), [1, 2, 1, 8]);
    q.free();
    check((await failure(() => rope.rotate({ q }), "Tensor")).message.includes("freed"), "says so");
    for (const use of [() => q.read(), () => q.shape, () => q.heads(0, 1)]) {
      equal((await failure(use, "Tensor")).argument, "this");
    }
    q.free();
    const gone = Frequencies.plain(1e4, 8);
    gone.free();
    equal((await failure(() => Rope.create(device, gone, { pairing: "half-split" }), "Tensor")).argument, "frequencies");
  },

  async "what the device refuses comes back as an error"() {
    const device = await gpu();
    // A buffer that was destroyed behind our back: the checks have passed, the device refuses the submission.
    const tensor = await device.tensor(numbers(16), [1, 2, 1, 8]);
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const step = await rope.prepare({ q: tensor });
    tensor.buffer.destroy();
    equal((await failure(() => device.run(step), "Device")).argument, "a submission");
    await failure(() => tensor.read(), "Device");
  },

  async "a page's own device and buffers"() {
    const adapter = await navigator.gpu.requestAdapter();
    const own = await adapter.requestDevice();
    const device = await Gpu.adopt(own);
    check(device.device === own, "it is the same device");
    check(navigator.gpu.requestAdapter === Object.getPrototypeOf(navigator.gpu).requestAdapter && !Object.hasOwn(navigator, "gpu"), "navigator.gpu is as it was");
    const buffer = own.createBuffer({ size: 128, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
    own.queue.writeBuffer(buffer, 64, numbers(16));
    const q = device.wrap(buffer, [1, 2, 1, 8], { offset: 16 });
    check(q.buffer === buffer && !Object.hasOwn(own, "createBuffer"), "it is the same buffer");
    near(await q.read(), numbers(16), 0);
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    await rope.rotate({ q, positions: 1, direction: "forward" });
    await rope.rotate({ q, positions: 1, direction: "inverse" });
    near(await q.read(), numbers(16), 1e-6);
    await failure(() => device.wrap(buffer, [1, 4, 1, 8], { offset: 16 }), "Tensor");
    await failure(() => device.wrap({}, [1, 1, 1, 1]), "Tensor");
    await failure(() => Gpu.adopt({}), "Tensor");
    const readOnly = own.createBuffer({ size: 128, usage: GPUBufferUsage.COPY_SRC });
    await failure(() => rope.rotate({ q: device.wrap(readOnly, [1, 2, 1, 8]) }), "Usage");
    own.destroy();
    await own.lost;
    await failure(() => device.zeros([1, 1, 1, 4]), "DeviceLost");
    await failure(() => rope.rotate({ q }), "DeviceLost");
    await failure(() => q.read(), "DeviceLost");
  },
};
