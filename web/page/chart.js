// Charts in the page's own type and colours, as wide as their place.
import * as Plot from "./vendor/plot.js";

/** The two models' colours. */
export const COLOURS = ["var(--a)", "var(--b)"];

const WIDEST = 720;

/** Draws what `options` gives into a figure's `.chart`, and again when its width changes. */
export function draw(figure, options, description) {
  const place = figure.querySelector(".chart");
  const render = () => {
    const width = Math.min(place.clientWidth || WIDEST, WIDEST);
    const chart = Plot.plot({
      width, height: Math.round(Math.min(300, Math.max(200, width * 0.45))), marginLeft: 52, marginBottom: 36,
      style: { background: "none", fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
      ...options,
    });
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", description);
    // An image has no parts with names of their own.
    for (const part of chart.querySelectorAll("[aria-label], [aria-description]")) {
      part.removeAttribute("aria-label");
      part.removeAttribute("aria-description");
    }
    place.replaceChildren(chart);
  };
  place.render = render;
  if (!place.watched) {
    place.watched = new ResizeObserver(() => {
      if (place.clientWidth !== place.drawnAt) {
        place.drawnAt = place.clientWidth;
        place.render();
      }
    });
    place.watched.observe(place);
  }
  place.drawnAt = place.clientWidth;
  render();
}

/** What is said of the point nearest to the pointer: for eyes only, as the chart is one image. */
export const tip = (points, options) =>
  Plot.tip(points, Plot.pointerX({ fill: "var(--paper)", ariaHidden: "true", ...options }));

/** A name in the colour of its line, for every line of a chart. */
export const legend = (names) => names.map((name, i) => {
  const span = document.createElement("span");
  span.className = `key key-${"ab"[i]}`;
  span.textContent = name;
  return span;
});

export { Plot };
