// Memory is given back when it is said to be.
import { Frequencies, Rope, Tensor } from "/pkg/phasor.js";
import { check, equal, gpu, near, numbers } from "./common.mjs";

/** Bytes of buffers that were made and not destroyed, from now on. */
function watch(device) {
  const live = new Map();
  const { createBuffer } = device;
  device.createBuffer = (descriptor) => {
    const buffer = createBuffer.call(device, descriptor);
    live.set(buffer, descriptor.size);
    const { destroy } = buffer;
    buffer.destroy = () => { live.delete(buffer); destroy.call(buffer); };
    return buffer;
  };
  return { sizes: () => [...live.values()], stop: () => delete device.createBuffer };
}

export default {
  async "100 cycles of making and freeing do not grow"() {
    const device = await gpu();
    const frequencies = Frequencies.plain(1e4, 64);
    const rope = await Rope.create(device, frequencies, { pairing: "half-split" });
    const values = numbers(64 * 64);
    const cycle = async () => {
      const [q, k] = [await device.tensor(values, [1, 64, 1, 64]), await device.tensor(values, [1, 64, 1, 64])];
      const table = await rope.table(0, 64);
      await rope.rotate({ q, k, table });
      const out = await device.attention({ q, k, v: k, causal: true });
      const step = await rope.prepare({ q });
      await out.read();
      [step, q, k, table, out].forEach((object) => object.free());
    };
    for (let i = 0; i < 5; i++) await cycle();
    const { wasm } = await import("./memory.mjs");
    const [pages, watched] = [wasm(), watch(device.device)];
    for (let i = 0; i < 100; i++) await cycle();
    watched.stop();
    equal(wasm(), pages, "WASM's memory");
    // What is left to the garbage collector are parameters of a few hundred bytes each.
    const large = watched.sizes().filter((size) => size > 1024);
    equal(large, [], "buffers that were not destroyed");
  },

  async "memory lives as long as a slice or a step of it"() {
    const device = await gpu();
    const watched = watch(device.device);
    const whole = await device.tensor(numbers(1024), [1, 4, 4, 64]);
    const rope = await Rope.create(device, Frequencies.plain(1e4, 64), { pairing: "half-split" });
    const part = whole.tokens(1, 2);
    const step = await rope.prepare({ q: part });
    const large = () => watched.sizes().filter((size) => size > 2048).length;
    whole.free();
    equal(large(), 1, "buffers while a slice and a step live");
    near(await part.read(), numbers(1024).slice(256, 512), 0);
    part.free();
    await device.run(step);
    equal(large(), 1, "buffers while a step lives");
    step.free();
    equal(large(), 0, "buffers afterwards");
    watched.stop();
  },

  async "a read that is under way outlives its tensor"() {
    const tensor = await (await gpu()).tensor(numbers(64), [1, 1, 1, 64]);
    const read = tensor.read();
    tensor.free();
    near(await read, numbers(64), 0);
  },

  "`using` is `free`"() {
    check(typeof Symbol.dispose !== "symbol" || Tensor.prototype[Symbol.dispose] === Tensor.prototype.free, "Symbol.dispose");
  },
};
