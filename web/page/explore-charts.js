// The charts of part one.
import { COLOURS, Plot, draw, tip } from "./chart.js";
import { compact, short } from "./format.js";

const pairsOf = (model) => {
  const inverse = model.frequencies.inverse;
  const plain = model.unscaled?.inverse;
  return Array.from(inverse, (w, pair) => ({
    pair, wavelength: (2 * Math.PI) / w, plain: plain && (2 * Math.PI) / plain[pair], divisor: plain ? plain[pair] / w : 1,
  }));
};

/** What a scaling does to how many pairs, in words. */
export function bandOf(model) {
  if (!model.rotates) return "these layers do not rotate at all; the curves show the rope that their neighbours have";
  const rows = pairsOf(model);
  const still = rows.filter(({ wavelength }) => !Number.isFinite(wavelength)).length;
  const changed = rows.filter(({ divisor }) => Math.abs(divisor - 1) > 1e-9 && Number.isFinite(divisor));
  const kept = rows.length - still - changed.length;
  if (!changed.length && !still) return `all ${rows.length} pairs turn as the base alone says`;
  const most = changed.length ? changed.reduce((a, b) => (Math.abs(b.divisor) > Math.abs(a.divisor) ? b : a)).divisor : 1;
  const parts = [kept && `${kept} of ${rows.length} pairs are left alone`, changed.length && `${changed.length} are slowed, by up to ${short(most)}`,
    still && `${still} stand still`];
  return parts.filter(Boolean).join(", ");
}

/** Tokens per turn, pair by pair. */
export function drawWavelengths(figure, models) {
  const marks = models.flatMap((model) => {
    const rows = pairsOf(model).filter(({ wavelength }) => Number.isFinite(wavelength));
    const colour = COLOURS[model.colour];
    return [
      model.unscaled && Plot.lineY(rows, { x: "pair", y: "plain", stroke: colour, strokeOpacity: 0.45, strokeDasharray: "2 3" }),
      Plot.lineY(rows, { x: "pair", y: "wavelength", stroke: colour, strokeWidth: 1.75 }),
      model.context && Plot.ruleY([model.context], { stroke: colour, strokeDasharray: "6 4", strokeOpacity: 0.7 }),
      tip(rows, {
        x: "pair", y: "wavelength", stroke: colour,
        title: ({ pair, wavelength, divisor }) => `pair ${pair}\none turn in ${short(wavelength)} tokens${divisor === 1 ? "" : `\nslowed ${short(divisor)} times`}`,
      }),
    ];
  });
  draw(figure, {
    x: { label: "pair →" }, y: { type: "log", label: "↑ tokens per turn", tickFormat: compact, ticks: 6, grid: true }, marks,
  }, "Tokens per turn for each pair of channels, on a logarithmic scale");
}

/** What scaling divides each pair's frequency by. */
export function drawDivisors(figure, models) {
  const scaled = models.filter(({ unscaled }) => unscaled);
  const marks = scaled.flatMap((model) => {
    const rows = pairsOf(model).filter(({ divisor }) => Number.isFinite(divisor));
    const colour = COLOURS[model.colour];
    return [
      Plot.lineY(rows, { x: "pair", y: "divisor", stroke: colour, strokeWidth: 1.75, curve: "step" }),
      tip(rows, {
        x: "pair", y: "divisor", stroke: colour, title: ({ pair, divisor }) => `pair ${pair}\nslowed ${short(divisor)} times`,
      }),
    ];
  });
  draw(figure, { x: { label: "pair →" }, y: { label: "↑ slowed so many times", grid: true, ticks: 5, zero: false, nice: true }, marks: [Plot.ruleY([1], { strokeOpacity: 0.4 }), ...marks] },
    "How many times slower than without scaling each pair turns");
}

/** Similarity of a query and a key that are equal, by their distance. */
export function drawSimilarity(figure, curves) {
  const marks = curves.flatMap(({ points, colour }) => [
    Plot.lineY(points, { x: "distance", y: "similarity", stroke: COLOURS[colour], strokeWidth: 1.5 }),
    tip(points, {
      x: "distance", y: "similarity", stroke: COLOURS[colour],
      title: ({ distance, similarity }) => `${distance.toLocaleString("en")} tokens apart\nsimilarity ${similarity.toFixed(3)}`,
    }),
  ]);
  draw(figure, { x: { label: "distance in tokens →", tickFormat: compact, ticks: 5 }, y: { label: "↑ similarity", grid: true, ticks: 5 }, marks: [Plot.ruleY([0], { strokeOpacity: 0.4 }), ...marks] },
    "Mean cosine over all pairs against the distance of query and key");
}
