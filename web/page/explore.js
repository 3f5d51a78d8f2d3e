// Part one: what a model's rope is, and how two of them differ.
import { bandOf, drawDivisors, drawSimilarity, drawWavelengths } from "./explore-charts.js";
import { paintTable } from "./explore-table.js";
import { showWords } from "./explore-words.js";
import { legend } from "./chart.js";
import { byId, latest, slider } from "./dom.js";
import { short } from "./format.js";
import { onTheme } from "./theme.js";
import { Side } from "./side.js";

/** How many positions the image of cosines and sines shows. */
const COLUMNS = 512;
/** How many distances the curve of similarity is drawn through. */
const POINTS = 400;

export function startExplore(compute, presets, failed) {
  const show = latest(() => showAll(), failed);
  const sides = [["a", presets[0].name], ["b", "none"]].map(([prefix, first]) => new Side(prefix, presets, first, () => {
    show();
    sides.forEach(showWords);
  }));
  const reach = slider("reach", (power) => `${short(2 ** power)} tokens`, show);
  const start = slider("start", (power) => short(startOf(power)), show);
  const part = byId("part");
  part.addEventListener("change", show);
  onTheme(show);

  async function showAll() {
    const shown = sides.filter((side) => side.shown);
    const models = shown.map((side) => ({
      name: side.name, context: side.model.context, rotates: side.rope.rotates,
      frequencies: side.frequencies, unscaled: side.unscaled, colour: sides.indexOf(side),
    }));
    for (const place of document.querySelectorAll(".models")) place.replaceChildren(...legend(models.map(({ name }) => name)));
    drawWavelengths(byId("wavelengths"), models);
    drawDivisors(byId("divisors"), models);
    byId("bands").textContent = models.map((model) => `${model.name}: ${bandOf(model)}.`).join(" ");
    await showSimilarity(models);
    await showTables(models);
  }

  async function showSimilarity(models) {
    const furthest = 2 ** reach.value;
    const step = Math.max(1, furthest / POINTS);
    const distances = [...new Set(Array.from({ length: POINTS + 1 }, (_, i) => Math.min(furthest, Math.round(i * step))))];
    const curves = [];
    for (const model of models) {
      const { cos } = await compute.table(model.frequencies, Int32Array.from(distances));
      curves.push({ ...model, points: distances.map((distance, row) => ({ distance, similarity: mean(cos, row, model.frequencies) })) });
    }
    drawSimilarity(byId("similarity"), curves);
  }

  async function showTables(models) {
    const first = startOf(start.value);
    const positions = Int32Array.from({ length: COLUMNS }, (_, i) => first + i);
    for (const [i, side] of sides.entries()) {
      const model = models.find(({ colour }) => colour === i);
      side.table.hidden = !model;
      if (!model) continue;
      const table = await compute.table(model.frequencies, positions);
      paintTable(side.table, { ...model, values: table[part.value], positions, part: part.value });
    }
  }

  sides.forEach(showWords);
  return show();
}

/** The slider's place as a position: 0, then powers of two. */
const startOf = (power) => (power === 0 ? 0 : 2 ** (power + 7));

/** The mean cosine over all pairs at a row of a table, without the attention factor. */
function mean(cos, row, { rotaryDim, attentionFactor }) {
  const pairs = rotaryDim / 2;
  let sum = 0;
  for (let i = 0; i < pairs; i++) sum += cos[row * pairs + i];
  return sum / pairs / attentionFactor;
}
