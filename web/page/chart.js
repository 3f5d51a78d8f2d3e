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
    place.replaceChildren(Plot.plot({
      width, height: Math.round(Math.min(300, Math.max(200, width * 0.45))), marginLeft: 52, marginBottom: 36,
      style: { background: "none", fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
      ariaLabel: description, ariaDescription: description,
      ...options,
    }));
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

/** A name in the colour of its line, for every line of a chart. */
export const legend = (names) => names.map((name, i) => {
  const span = document.createElement("span");
  span.className = `key key-${"ab"[i]}`;
  span.textContent = name;
  return span;
});

export { Plot };
