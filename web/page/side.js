// One of the two models that are looked at: a preset or a text of the visitor's own, its layers, a length.
import { Frequencies, ModelRope } from "./pkg/phasor.js";
import { byId, choices } from "./dom.js";

const OWN = "own";
const NONE = "none";

export class Side {
  /** `prefix` is "a" or "b", as in the ids of its form; `changed` is called after each change. */
  constructor(prefix, presets, first, changed) {
    const part = (name) => byId(`${prefix}-${name}`);
    this.presets = presets;
    this.changed = changed;
    [this.preset, this.text, this.kind, this.length, this.error, this.table, this.words] =
      ["preset", "config", "kind", "length", "error", "table", "words"].map(part);
    const none = prefix === "b" ? [[NONE, "nothing"]] : [];
    choices(this.preset, [...none, ...presets.map(({ name }) => [name, name]), [OWN, "your own config.json"]], first);
    this.preset.addEventListener("change", () => this.#choose());
    this.text.addEventListener("input", () => {
      this.preset.value = OWN;
      this.#read();
    });
    for (const input of [this.kind, this.length]) input.addEventListener("change", () => this.changed());
    this.#fill();
    this.#parse();
  }

  /** Whether there is a model that can be shown. */
  get shown() {
    return this.preset.value !== NONE && this.model !== undefined;
  }

  /** What it is called. */
  get name() {
    return this.preset.value === OWN ? this.model?.modelType || "your own" : this.preset.value;
  }

  /** The rope of the chosen layers. */
  get rope() {
    return this.model.kinds[Number(this.kind.value)] ?? this.model.kinds[0];
  }

  /** The chosen length of the sequence, where frequencies depend on it. */
  get seqLen() {
    return this.rope.dependsOnLength ? Number(this.length.value) : 0;
  }

  /** Its frequencies. */
  get frequencies() {
    return this.rope.frequencies(this.seqLen);
  }

  /** Those without any scaling, where the file says of which base. */
  get unscaled() {
    const base = Number(this.rope.sources.find(({ setting }) => setting === "rope_theta")?.value);
    return base > 0 ? Frequencies.plain(base, this.rope.rotaryDim) : undefined;
  }

  #choose() {
    this.#fill();
    this.#read();
  }

  #fill() {
    const preset = this.presets.find(({ name }) => name === this.preset.value);
    if (preset) this.text.value = JSON.stringify(preset.config, undefined, 1);
    if (this.preset.value === NONE) this.text.value = "";
    this.text.closest("label").hidden = this.preset.value === NONE;
  }

  #read() {
    this.#parse();
    this.changed();
  }

  /** Reads the text. What is wrong with it is said beside it, and the last good model stays. */
  #parse() {
    this.error.textContent = "";
    this.text.removeAttribute("aria-invalid");
    if (this.preset.value === NONE) {
      this.model = undefined;
    } else {
      try {
        this.model = new ModelRope(this.text.value);
      } catch (error) {
        this.error.textContent = error.message;
        this.text.setAttribute("aria-invalid", "true");
        return;
      }
    }
    const kinds = this.model?.kinds ?? [];
    choices(this.kind, kinds.map((rope, i) => [i, this.#layers(rope, i)]), 0);
    this.kind.closest("label").hidden = kinds.length < 2;
    this.#lengths(kinds.some((rope) => rope.dependsOnLength));
  }

  #layers(rope, kind) {
    const layers = [...this.model.layersOf(kind)];
    const some = layers.slice(0, 4).join(", ") + (layers.length > 4 ? ", …" : "");
    const type = rope.layerType?.replaceAll("_", " ");
    return `${type ? `${type}: ` : ""}layers ${some}${rope.rotates ? "" : ", no rotation"}`;
  }

  #lengths(matter) {
    const context = this.model?.context ?? 131072;
    const lengths = [];
    for (let n = 1024; n <= 4 * context; n *= 2) lengths.push([n, `${n.toLocaleString("en")} tokens`]);
    choices(this.length, lengths, this.length.value || 1024);
    this.length.closest("label").hidden = !matter;
  }
}
