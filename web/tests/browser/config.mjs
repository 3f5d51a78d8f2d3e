// Configs of real models against what transformers makes of them.
import { Frequencies, ModelRope } from "/pkg/phasor.js";
import { check, equal, failure } from "./common.mjs";

export default {
  async "frequencies and attention factors of transformers"() {
    const { cases } = await (await fetch("/data/rope_types.json")).json();
    equal(cases.length, 21, "the number of cases");
    for (const { name, config, layer_type, seq_len, rope_type, inv_freq, attention_factor } of cases) {
      const model = new ModelRope(JSON.stringify(config));
      const layer = layer_type ? model.layerType(layer_type) : model.layer(0);
      equal(layer.ropeType, rope_type, name);
      const got = layer.frequencies(seq_len ?? 0);
      equal(got.inverse.length, inv_freq.length, name);
      // transformers computes frequencies in float32.
      got.inverse.forEach((w, i) => check(Math.abs(w / inv_freq[i] - 1) <= 2e-6 || w === inv_freq[i], `${name}: pair ${i} is ${w}`));
      check(Math.abs(got.attentionFactor / attention_factor - 1) <= 1e-12, `${name}: ${got.attentionFactor}`);
      equal(model.warnings, [], name);
    }
  },

  "a model's layers, and where each number came from"() {
    const model = new ModelRope(JSON.stringify({
      model_type: "llama", hidden_size: 2048, num_attention_heads: 32, num_hidden_layers: 16, max_position_embeddings: 131072,
      rope_theta: 500000, rope_scaling: { rope_type: "llama3", factor: 32, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 },
    }));
    equal([model.modelType, model.layers, model.context, model.kinds.length], ["llama", 16, 131072, 1]);
    equal([...model.layersOf(0)], Array.from({ length: 16 }, (_, i) => i));
    const layer = model.layer(3);
    equal([layer.rotates, layer.pairing, layer.headDim, layer.rotaryDim, layer.rotaryOffset], [true, "half-split", 64, 64, 0]);
    check(layer.sources.some(({ setting, value, from }) => setting === "factor" && value === "32" && from === "rope_scaling.factor"), "where the factor came from");
  },

  "Python's numbers that JSON has not are no reason to refuse a file"() {
    const text = '{"model_type": "llama", "head_dim": 64, "hidden_size": 64, "num_attention_heads": 1, "limit": [0.0, Infinity, NaN, -Infinity], "note": "an \\"Infinity\\""}';
    equal(new ModelRope(text).layer(0).headDim, 64);
  },

  async "a broken config says what is wrong with it"() {
    const scaled = (scaling) => () => new ModelRope(JSON.stringify({ model_type: "llama", head_dim: 64, rope_scaling: scaling }));
    equal((await failure(scaled({ rope_type: "linear" }), "Setting")).argument, "rope_scaling.factor");
    check((await failure(scaled({ rope_type: "linear", factor: "eight" }), "Setting")).message.startsWith('rope_scaling.factor: was "eight", may be'), "the value is shown");
    check((await failure(() => new ModelRope('{"model_type": '), "Setting")).message.includes("no JSON"), "no JSON");
    check((await failure(() => new ModelRope("[1, 2]"), "Setting")).message.includes("[1,2]"), "an array");
  },

  async "settings on their own"() {
    const yarn = Frequencies.fromSettings('{"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 2048, "attn_factor": 0.707}', 64);
    check(Math.abs(yarn.attentionFactor - 0.903022023) < 1e-9, "the attention factor");
    equal(Frequencies.plain(10000, 4).inverse[1], 0.01);
    equal(new Frequencies([1, 0.5]).rotaryDim, 4);
    await failure(() => new Frequencies([]), "Setting");
    await failure(() => new Frequencies([1, NaN]), "Setting");
    await failure(() => new Frequencies("all"), "Tensor");
    await failure(() => Frequencies.plain(10000, 3), "Setting");
  },
};
