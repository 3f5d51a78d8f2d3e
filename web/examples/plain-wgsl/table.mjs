// Cosines and sines of a range of positions by phasor's own kernel, without WebAssembly: its WGSL, as
// `phasor shaders --emit kernels` writes it, and WebGPU.
//
// Beside each kernel lies a JSON file with its bindings, its constants and its workgroup. What the uniform holds is
// declared at the top of the WGSL.

const KERNEL = "rope_table.lane1.positions_none";

/** How far pairs turn per token, in units of 2^-32 turn: by fours, whole units, the rest as float32, and an axis (0: text). */
function turns(inverse) {
  const words = new Uint32Array(12 * Math.ceil(inverse.length / 4));
  const floats = new Float32Array(words.buffer);
  inverse.forEach((w, i) => {
    const units = ((w / (2 * Math.PI)) % 1) * 2 ** 32;
    const at = 12 * (i >> 2) + (i & 3);
    words[at] = Math.round(units);
    floats[at + 4] = units - Math.round(units);
  });
  return words;
}

/** The kernel's uniform: rows, pairs, first position, step to the next row's, attention factor; the rest is for buffers of positions. */
function parameters(rows, pairs, start, factor) {
  const view = new DataView(new ArrayBuffer(48));
  [rows, pairs].forEach((n, i) => view.setUint32(4 * i, n, true));
  [start, 1].forEach((n, i) => view.setInt32(8 + 4 * i, n, true));
  view.setFloat32(16, factor, true);
  return view.buffer;
}

function buffer(device, data, usage) {
  const made = device.createBuffer({ size: data.byteLength, usage: usage | GPUBufferUsage.COPY_DST });
  device.queue.writeBuffer(made, 0, data);
  return made;
}

/** The kernel's pipeline, from its text and its description. */
export async function pipeline(device, kernels) {
  const [code, kernel] = await Promise.all([
    fetch(new URL(`${KERNEL}.wgsl`, kernels)).then((response) => response.text()),
    fetch(new URL(`${KERNEL}.json`, kernels)).then((response) => response.json()),
  ]);
  const entries = kernel.bindings.map(({ binding, type }) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } }));
  const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
  const compute = { module: device.createShaderModule({ code }), entryPoint: kernel.entry_point, constants: kernel.constants };
  return { pipeline: await device.createComputePipelineAsync({ layout, compute }), workgroup: kernel.workgroup };
}

/** `[rows, {cos, sin}, pairs]` for the positions from `start` on, as a Float32Array. */
export async function table(device, { pipeline, workgroup }, inverse, start, rows, factor = 1) {
  const pairs = inverse.length;
  const size = rows * 2 * pairs * 4;
  const uniform = buffer(device, parameters(rows, pairs, start, factor), GPUBufferUsage.UNIFORM);
  const angles = buffer(device, turns(inverse), GPUBufferUsage.STORAGE);
  const out = device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
  const read = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  // All bindings of a kernel lie in group 0; its JSON file names them.
  const entries = [[0, uniform], [1, angles], [3, out]].map(([binding, buffer]) => ({ binding, resource: { buffer } }));

  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(Math.ceil(pairs / workgroup[0]), Math.ceil(rows / workgroup[1]));
  pass.end();
  encoder.copyBufferToBuffer(out, 0, read, 0, size);
  device.queue.submit([encoder.finish()]);

  await read.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(read.getMappedRange().slice(0));
  [uniform, angles, out, read].forEach((buffer) => buffer.destroy());
  return values;
}
