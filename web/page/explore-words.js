// What the command `phasor explain` says of a model, as HTML.
import { element } from "./dom.js";
import { explain } from "./measure.js";

/** Shows the words for a side's model in its place; those of a later call win. */
export async function showWords(side) {
  const place = side.words;
  place.hidden = !side.shown;
  if (!side.shown) return;
  const asked = (place.asked = Symbol());
  let told;
  try {
    told = await explain(side.name, side.text.value, side.seqLen || undefined);
  } catch (error) {
    // The form says what is wrong with a config; the words of the last good one stay.
    if (!side.error.textContent) place.replaceChildren(element("p", { className: "error" }, error.message));
    return;
  }
  if (place.asked !== asked) return;
  place.replaceChildren(element("h4", {}, told.title), ...told.groups.map(group), ...warnings(told.warnings));
}

function group({ which, what, words, numbers }) {
  const said = element("dl", {}, ...words.flatMap(({ label, lines }) => [element("dt", {}, label), element("dd", {}, ...body(lines))]));
  const rows = numbers.map(({ setting, value, from }) => row([setting, value, from]));
  const table = element("table", {}, element("thead", {}, row(["setting", "value", "from"], "th")), element("tbody", {}, ...rows));
  const more = element("details", {}, element("summary", {}, "Where each number comes from"), element("div", { className: "wide" }, table));
  return element("section", {}, element("h5", {}, `${which}: ${what}`), said, more);
}

/** Running text as it is, rows of several cells as a table. */
function body(lines) {
  const texts = lines.filter((cells) => cells.length === 1).map(([text]) => element("p", {}, text));
  const rows = lines.filter((cells) => cells.length > 1).map((cells) => row(cells));
  return rows.length ? [...texts, element("table", {}, element("tbody", {}, ...rows))] : texts;
}

const row = (cells, tag = "td") => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));

const warnings = (list) => (list.length ? [element("h5", {}, "Warnings"), element("ul", {}, ...list.map((text) => element("li", {}, text)))] : []);
