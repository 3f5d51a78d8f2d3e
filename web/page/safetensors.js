// Reading a safetensors file.

/** `{tensors: {name: {shape, values}}, metadata}` of a file's f32 and i32 tensors. */
export async function safetensors(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  const bytes = await response.arrayBuffer();
  const length = Number(new DataView(bytes).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length)));
  const arrays = { F32: Float32Array, I32: Int32Array };
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [start, end] }] of Object.entries(entries)) {
    if (arrays[dtype]) tensors[name] = { shape, values: new arrays[dtype](bytes.slice(8 + length + start, 8 + length + end)) };
  }
  return { tensors, metadata };
}
