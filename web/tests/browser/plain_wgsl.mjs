// The example that uses a kernel's emitted WGSL without WebAssembly, against the article's table.
import { pipeline, table } from "/examples/plain-wgsl/table.mjs";
import { equal, near, safetensors } from "./common.mjs";

export default {
  async "a table by the emitted WGSL alone"() {
    const golden = await safetensors("article");
    const [cos, sin] = ["cos", "sin"].map((part) => golden[`tables.linear_d64_t96.${part}`]);
    const [rows, pairs] = cos.shape;
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const inverse = Array.from({ length: pairs }, (_, i) => 1e4 ** (-2 * i / 64));
    const kernel = await pipeline(device, new URL("/examples/plain-wgsl/kernels/", location.href));
    const got = await table(device, kernel, inverse, 0, rows);
    equal(got.length, 2 * rows * pairs, "the table's length");
    for (let row = 0; row < rows; row++) {
      // The article's own angles are float32: off by half a unit in a dozen operations.
      const tolerance = (i) => row * inverse[i] * 2 ** -24 * (Math.abs(Math.log(inverse[i])) + 12) + 2 ** -23 + 2e-7;
      const at = 2 * pairs * row;
      near(got.subarray(at, at + pairs), cos.values.subarray(row * pairs, (row + 1) * pairs), tolerance, `cosines of row ${row}`);
      near(got.subarray(at + pairs, at + 2 * pairs), sin.values.subarray(row * pairs, (row + 1) * pairs), tolerance, `sines of row ${row}`);
    }
    device.destroy();
  },
};
