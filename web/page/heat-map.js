// A square of numbers [queries, keys] as colours, with one of its cells marked by pointer or arrow keys.
import { between, colour } from "./theme.js";

/** How large a cell is painted. */
const CELL = 6;

export class HeatMap {
  /** In a figure with a canvas; `pick(query, key)` is called for the cell under the pointer, or chosen by arrow keys. */
  constructor(figure, count, pick) {
    this.count = count;
    this.canvas = figure.querySelector("canvas");
    this.canvas.width = this.canvas.height = count * CELL;
    this.marked = [0, 0];
    const cell = (along, length) => Math.min(count - 1, Math.max(0, Math.floor((along / length) * count)));
    const point = ({ offsetX, offsetY }) => pick(cell(offsetY, this.canvas.clientHeight), cell(offsetX, this.canvas.clientWidth));
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const [query, key] = this.marked.map((at, axis) => Math.min(count - 1, Math.max(0, at + step[axis])));
      pick(query, key);
    });
  }

  /** Paints what `scale` makes of the numbers: from 0 to 1, or from -1 where there are negative ones. */
  paint(values, scale) {
    const { count } = this;
    const [low, none, high, unseen] = ["low", "paper", "high", "veil"].map(colour);
    this.image = new ImageData(count * CELL, count * CELL);
    for (let y = 0; y < count * CELL; y++) {
      const query = Math.floor(y / CELL);
      for (let x = 0; x < count * CELL; x++) {
        const key = Math.floor(x / CELL);
        const share = key > query ? undefined : Math.max(-1, Math.min(1, scale(values[query * count + key])));
        const shade = share === undefined ? unseen : between(none, share < 0 ? low : high, Math.abs(share));
        this.image.data.set([...shade, 255], 4 * (y * count * CELL + x));
      }
    }
    this.mark(...this.marked);
  }

  /** Frames a cell. */
  mark(query, key) {
    this.marked = [query, key];
    if (!this.image) return;
    const context = this.canvas.getContext("2d");
    context.putImageData(this.image, 0, 0);
    context.strokeStyle = `rgb(${colour("ink").join(" ")})`;
    context.globalAlpha = 0.35;
    context.strokeRect(0.5, query * CELL + 0.5, (query + 1) * CELL - 1, CELL - 1);
    context.globalAlpha = 1;
    context.strokeRect(key * CELL - 0.5, query * CELL - 0.5, CELL + 1, CELL + 1);
  }
}
