// Part two: pairs as hands of a clock, and a product that knows only a distance.
import { Plot, draw, tip } from "./chart.js";
import { byId, choices, latest, slider } from "./dom.js";
import { fixed, short } from "./format.js";
import { activations } from "./activations.js";

/** How far apart query and key can be moved, and the curve is drawn. */
const FURTHEST = 256;
/** The two places at which the curve is computed: at the beginning of a text, and far within one. */
const PLACES = [0, 100_000];
const LAYER = 0;
const RADIUS = 100;

export async function startRotation(compute, failed) {
  const model = await activations();
  const named = model.tokens.map((token, i) => [i, `${token.trim()} (${i})`]);
  choices(byId("turn-head"), Array.from({ length: model.heads }, (_, i) => [i, `head ${i}`]), 3);
  choices(byId("turn-query"), named, 47);
  choices(byId("turn-key"), named, 39);

  const tell = (n) => n.toLocaleString("en");
  const showHead = latest(() => showCurve(), failed);
  const showAll = () => {
    showHands();
    return showHead();
  };
  const pair = slider("turn-pair", String, () => showHands());
  const query = slider("turn-m", tell, () => moved(query, key));
  const key = slider("turn-n", tell, () => moved(key, query));
  const together = byId("turn-together");
  for (const id of ["turn-head", "turn-query", "turn-key"]) byId(id).addEventListener("change", showAll);
  let distance = query.value - key.value;

  /** One of the two was moved: the other follows if the two are to stay as far apart as they were. */
  function moved(one, other) {
    if (together.checked) {
      const wanted = one === query ? one.value - distance : one.value + distance;
      other.input.valueAsNumber = wanted;
      other.update();
      // At the end of its range the other one stops, and holds this one back.
      one.input.valueAsNumber = one === query ? other.value + distance : other.value - distance;
      one.update();
    }
    distance = query.value - key.value;
    showAll();
  }

  const head = () => model.head(LAYER, Number(byId("turn-head").value));
  const channelsOf = ({ values }, token) => values.subarray(token * model.channels, (token + 1) * model.channels);
  /** The query and the key that were chosen. */
  const chosen = () => {
    const { q, k } = head();
    return [channelsOf(q, Number(byId("turn-query").value)), channelsOf(k, Number(byId("turn-key").value))];
  };

  function showHands() {
    const [q, k] = chosen();
    const i = pair.value;
    const half = model.channels / 2;
    const w = model.frequencies.inverse[i];
    const hands = [[q, query.value], [k, key.value]].map(([x, position]) => ({ x: x[i], y: x[i + half], angle: w * position }));
    const longest = Math.max(...hands.map(({ x, y }) => Math.hypot(x, y)), 1e-9);
    for (const [hand, name] of hands.map((hand, i) => [hand, "qk"[i]])) {
      const turned = turn(hand);
      place(byId(`hand-${name}`), turned, longest);
      place(byId(`hand-${name}-0`), hand, longest);
    }
    const part = product(hands.map(turn));
    byId("turn-pair-says").textContent =
      `Pair ${i} makes a turn in ${short((2 * Math.PI) / w)} tokens. The query's hand was turned by ${turns(hands[0].angle)}, the key's by ${turns(hands[1].angle)}, `
      + `and of all that their product sees only the difference: ${turns(hands[0].angle - hands[1].angle)}. This pair adds ${fixed(part)} to q·k.`;
    byId("hands").setAttribute("aria-label", `Query and key of pair ${i} as two hands, turned by ${turns(hands[0].angle)} and ${turns(hands[1].angle)}`);
  }

  /** q·k over distances, with the key at each of two places, by one rotation on the device for each. */
  async function curve(q, k, place) {
    const count = FURTHEST + 1;
    const values = new Float32Array(2 * count * model.channels);
    const positions = new Int32Array(2 * count);
    for (let distance = 0; distance < count; distance++) {
      values.set(q, distance * model.channels);
      values.set(k, (count + distance) * model.channels);
      positions[distance] = place + distance;
      positions[count + distance] = place;
    }
    const turned = await compute.rotate(model.frequencies, { values, shape: [1, 2 * count, 1, model.channels] }, positions);
    return Array.from({ length: count }, (_, distance) => ({
      distance, product: dot(channelsOf(turned, distance), channelsOf(turned, count + distance)),
    }));
  }

  async function showCurve() {
    const [q, k] = chosen();
    const [near, far] = [await curve(q, k, PLACES[0]), await curve(q, k, PLACES[1])];
    // The query does not see what comes after it: of distances to the right there is nothing to show.
    const here = near[Math.abs(query.value - key.value)];
    const behind = query.value >= key.value;
    const marks = [
      Plot.ruleY([0], { strokeOpacity: 0.4 }),
      Plot.lineY(near, { x: "distance", y: "product", stroke: "var(--a)", strokeWidth: 1.5 }),
      Plot.dot(far.filter((_, i) => i % 4 === 0), { x: "distance", y: "product", stroke: "var(--b)", r: 2.5 }),
      behind && Plot.dot([here], { x: "distance", y: "product", fill: "var(--ink)", r: 5 }),
      tip(near, {
        x: "distance", y: "product",
        title: ({ distance, product: p }) => `${distance} tokens apart\nq·k = ${fixed(p, 4)} at the beginning\nq·k = ${fixed(far[distance].product, 4)} at ${tell(PLACES[1])}`,
      }),
    ];
    draw(byId("products"), { x: { label: "distance m − n in tokens →" }, y: { label: "↑ q·k of the head", grid: true, ticks: 5 }, marks },
      "The head's product of query and key against their distance, at two places of a text");
    const apart = Math.max(...near.map(({ product: p }, i) => Math.abs(p - far[i].product)));
    const largest = Math.max(...near.map(({ product: p }) => Math.abs(p)));
    byId("turn-head-says").textContent = behind
      ? `At ${query.value - key.value} tokens the whole head of ${model.channels / 2} pairs comes to q·k = ${fixed(here.product)}. Computed ${tell(PLACES[1])} tokens further into a text, nowhere on this curve does it differ by more than ${short(apart, 2)} (the largest product is ${short(largest)}).`
      : "Here the key stands to the right of the query: a causal model would not look at it.";
  }

  await showAll();
}

const turn = ({ x, y, angle }) => ({ x: x * Math.cos(angle) - y * Math.sin(angle), y: x * Math.sin(angle) + y * Math.cos(angle) });
const product = ([a, b]) => a.x * b.x + a.y * b.y;
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** An angle in turns. */
const turns = (angle) => `${fixed(angle / (2 * Math.PI), 2)} turns`;

/** Draws a hand from the middle of the clock; up is up. */
function place(line, { x, y }, longest) {
  line.setAttribute("x2", fixed((x / longest) * RADIUS, 2));
  line.setAttribute("y2", fixed((-y / longest) * RADIUS, 2));
}
