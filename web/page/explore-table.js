// Cosines or sines as an image: a row for each pair, a column for each position.
import { between, colour } from "./theme.js";
import { fixed } from "./format.js";

/** Paints a table `[positions, pairs]` into a figure's canvas, and says what lies under the pointer. */
export function paintTable(figure, { name, values, positions, frequencies, part }) {
  const canvas = figure.querySelector("canvas");
  const [columns, rows] = [positions.length, frequencies.rotaryDim / 2];
  const factor = frequencies.attentionFactor;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  const [low, middle, high] = ["low", "paper", "high"].map(colour);
  for (let pair = 0; pair < rows; pair++) {
    for (let column = 0; column < columns; column++) {
      const value = values[column * rows + pair] / factor;
      image.data.set([...between(middle, value < 0 ? low : high, Math.abs(value)), 255], 4 * (pair * columns + column));
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.setAttribute("aria-label", `${part === "cos" ? "Cosine" : "Sine"} of ${rows} pairs of ${name}, positions ${positions[0]} to ${positions[columns - 1]}`);
  figure.querySelector(".name").textContent = name;
  const [first, last] = figure.querySelectorAll(".ends span");
  [first.textContent, last.textContent] = [positions[0], positions[columns - 1]].map((p) => `position ${p.toLocaleString("en")}`);
  const readout = figure.querySelector(".readout");
  readout.textContent = "";
  canvas.onpointermove = ({ offsetX, offsetY }) => {
    const column = Math.min(columns - 1, Math.max(0, Math.floor((offsetX / canvas.clientWidth) * columns)));
    const pair = Math.min(rows - 1, Math.max(0, Math.floor((offsetY / canvas.clientHeight) * rows)));
    readout.textContent = `pair ${pair}, position ${positions[column].toLocaleString("en")}: ${part} ${fixed(values[column * rows + pair])}`;
  };
}
