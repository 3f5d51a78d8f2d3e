// Part three: positions that count only what matters to the query.
import { activations } from "./activations.js";
import { byId, choices, element, latest, slider } from "./dom.js";
import { EMBEDDINGS, madeUp } from "./embeddings.js";
import { fixed, short } from "./format.js";
import { HeatMap } from "./heat-map.js";
import initReference, { referenceGate, referencePositions } from "./pkg/reference.js";
import { onTheme } from "./theme.js";

/** Attention weights come out of the kernel as its output if the values are a unit matrix, padded to whole lanes. */
const LANES = 4;

export async function startCope(compute, failed) {
  await initReference();
  const model = await activations();
  const count = model.tokens.length;
  choices(byId("cope-layer"), model.layers.map((layer) => [layer, `layer ${layer}`]), model.layers.at(-1));
  choices(byId("cope-head"), Array.from({ length: model.heads }, (_, i) => [i, `head ${i}`]), 1);
  choices(byId("cope-embeddings"), EMBEDDINGS.map(({ name, label }) => [name, label]), EMBEDDINGS[0].name);

  let picked = { query: count - 3, key: count - 12 };
  const pick = (query, key) => {
    picked = { query, key: Math.min(key, query) };
    showPicked();
  };
  const maps = Object.fromEntries(
    ["plain", "gates", "positions", "bias", "result"].map((name) => [name, new HeatMap(byId(`map-${name}`), count, pick)]));
  const words = model.tokens.map((token, i) => {
    const word = element("button", { type: "button", title: `token ${i}`, onclick: () => pick(i, picked.key) }, token);
    word.addEventListener("pointerenter", () => pick(picked.query, i));
    return word;
  });
  byId("cope-text").replaceChildren(...words);
  byId("cope-text").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const next = words[words.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  });

  let shown;
  const show = latest(async () => {
    shown = await attended(compute, model, {
      layer: Number(byId("cope-layer").value), head: Number(byId("cope-head").value), positions: positions.value,
      sharpness: sharpness.value, rotated: byId("cope-rotated").checked, embeddings: byId("cope-embeddings").value,
    });
    showMaps();
  }, failed);
  const positions = slider("cope-positions", (n) => `${n} positions`, show);
  const sharpness = slider("cope-sharpness", (x) => `× ${x}`, show);
  for (const id of ["cope-layer", "cope-head", "cope-embeddings", "cope-rotated"]) byId(id).addEventListener("change", show);

  function showMaps() {
    const highest = positions.value - 1;
    const largest = Math.max(...shown.bias.map(Math.abs), 1e-9);
    // Weights by their root: most are small, and all of them matter.
    maps.plain.paint(shown.plain, Math.sqrt);
    maps.result.paint(shown.result, Math.sqrt);
    maps.gates.paint(shown.gates, (gate) => gate);
    maps.positions.paint(shown.positions, (position) => position / highest);
    maps.bias.paint(shown.bias, (bias) => bias / largest);
    byId("cope-range").textContent = `Positions run from 0 to ${highest}, the bias from −${short(largest)} to ${short(largest)}.`;
    showPicked();
  }

  function showPicked() {
    if (!shown) return;
    const { query, key } = picked;
    for (const map of Object.values(maps)) map.mark(query, key);
    for (const [i, word] of words.entries()) {
      word.style.setProperty("--weight", i > query ? 0 : Math.sqrt(shown.result[query * count + i]));
      word.className = [i === query && "query", i === key && "key", i > query && "later"].filter(Boolean).join(" ");
      word.setAttribute("aria-pressed", i === query);
      // One stop of the tab key for the whole text; arrow keys go from word to word.
      word.tabIndex = i === query ? 0 : -1;
    }
    const at = query * count + key;
    const facts = [
      ["query", `${model.tokens[query].trim()} (${query})`], ["key", `${model.tokens[key].trim()} (${key})`],
      ["logit", fixed(shown.logits[at])], ["gate", fixed(shown.gates[at])], ["position", fixed(shown.positions[at], 2)],
      ["bias", fixed(shown.bias[at])], ["plain", percent(shown.plain[at])], ["with CoPE", percent(shown.result[at])],
    ];
    byId("cope-numbers").replaceChildren(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  }

  onTheme(() => shown && showMaps());
  await show();
}

/** Everything that is shown of a head, each `[tokens, tokens]`. */
export async function attended(compute, model, { layer, head, positions, sharpness, rotated, embeddings }) {
  const count = model.tokens.length;
  const own = model.head(layer, head);
  const places = Int32Array.from({ length: count }, (_, i) => i);
  const turned = async (x) => (rotated ? compute.rotate(model.frequencies, x, places) : x);
  const [q, k] = [await turned(own.q), await turned(own.k)];
  const logits = causalLogits(q, k);
  const positionEmbeddings = madeUp(embeddings, own.q, positions);
  const gateLogits = { shape: [1, count, 1, count], values: logits.map((logit) => (logit > MASKED ? logit * sharpness : MASKED)) };
  // A query meets the embeddings as it was before its rotation: positions that are counted have no place in the text.
  const bias = await compute.contextualBias({ query: own.q, gateLogits, positionEmbeddings });
  const gates = gateLogits.values.map(referenceGate);
  const counted = rows(gates, count).map((row) => referencePositions(row, positions));
  const v = unit(count);
  const weights = async (cope) => firstColumns(await compute.attention({ q, k, v, cope }), v.shape[3], count);
  const plain = await weights();
  const result = await weights({ query: own.q, positionEmbeddings, sharpness, bias });
  return { logits, gates, positions: counted.flatMap((row) => [...row]), bias, plain, result };
}

/** What stands for a logit that no query sees. */
const MASKED = -1e30;

/** Scaled products of queries and the keys up to their own place. */
function causalLogits({ values: q, shape: [, count, , channels] }, { values: k }) {
  const logits = new Float32Array(count * count).fill(MASKED);
  for (let t = 0; t < count; t++) {
    for (let s = 0; s <= t; s++) {
      let sum = 0;
      for (let c = 0; c < channels; c++) sum += q[t * channels + c] * k[s * channels + c];
      logits[t * count + s] = sum / Math.sqrt(channels);
    }
  }
  return logits;
}

const rows = (values, count) => Array.from({ length: count }, (_, t) => Float64Array.from(values.slice(t * count, (t + 1) * count)));

/** A unit matrix as values `[1, keys, 1, at least keys]`. */
function unit(count) {
  const width = Math.ceil(count / LANES) * LANES;
  const values = new Float32Array(count * width);
  for (let i = 0; i < count; i++) values[i * width + i] = 1;
  return { values, shape: [1, count, 1, width] };
}

const firstColumns = (values, width, count) => Float32Array.from({ length: count * count }, (_, i) => values[Math.floor(i / count) * width + (i % count)]);

const percent = (x) => `${fixed(100 * x, 1)} %`;
