//! The types of what pages hand over, for `phasor.d.ts`.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** `[batch, tokens, heads, channels]`. */
export type Shape = [number, number, number, number] | Uint32Array;
/** How queries, keys and values may be stored. Arithmetic is f32 whatever the storage. */
export type FloatType = "f32" | "f16" | "bf16";
/** How an element is stored. */
export type ElementType = FloatType | "i32";
/** Which two channels make a pair: one from each half (NeoX, `rotate_half`), or neighbours (GPT-J). */
export type Pairing = "half-split" | "interleaved";
/** Which way pairs turn: the encoding, what undoes it, or its transpose. */
export type Direction = "forward" | "inverse" | "adjoint";

/** What every function of this package throws, or refuses its promise with. */
export interface PhasorError extends Error {
  name: "PhasorError";
  /** What kind of mistake, or what the device has done. */
  code:
    | "Setting" | "Tensor" | "Overlap" | "Usage" | "Position" | "Limit"
    | "NoAdapter" | "DeviceLost" | "OutOfMemory" | "Device" | "Panic";
  /** Which argument or field, where there is one. */
  argument?: string;
}

/** A setting, its value, and the key it was read from or the rule that gave it. */
export interface Source { setting: string; value: string; from: string }

export interface WrapOptions {
  /** `"f32"` if left out. */
  element?: ElementType;
  /** Where in the buffer the first element lies, counted in elements; 0 if left out. */
  offset?: number;
  /** From one index of an axis to the next, in elements; without gaps if left out. */
  strides?: Shape;
}

export interface RopeOptions {
  /** The checkpoint decides, not the model. */
  pairing: Pairing;
  /** The first channel of a head that turns; 0 if left out. */
  firstChannel?: number;
  /** For each pair, by which of a token's positions it turns; all by the only one if left out. */
  axes?: number[];
}

/** Numbers of a token: one to a row of the batch, from which its tokens count on, or one to each token. */
export type TokenNumbers = { startPerRow: Tensor } | { perToken: Tensor };

/** What to rotate, from where to where, by which angles. Queries, keys, or both in one dispatch. */
export interface RotateOptions {
  /** Queries `[batch, tokens, heads, channels]`. */
  q?: Tensor;
  /** Where their rotation goes; in place if left out. */
  qOut?: Tensor;
  /** Keys `[batch, tokens, heads, channels]`. */
  k?: Tensor;
  /** Where their rotation goes; in place if left out. */
  kOut?: Tensor;
  /** A cache `[batch, rows, heads, channels]` that they go to instead, to the rows that `rows` says. */
  kCache?: Tensor;
  rows?: TokenNumbers;
  /** Where the tokens stand: the first one's position (0 if left out), or numbers on the device. */
  positions?: number | TokenNumbers;
  /** The one position of every token: a shift of what was rotated before. */
  samePosition?: number;
  /** `"forward"` if left out. */
  direction?: Direction;
  /** Cosines and sines to read instead of making them. */
  table?: RopeTable;
}

/** `out[t] = sum over s of softmax(scale * q[t]·k[s] + bias[t, s] + contextual[t, s])[s] * v[s]`. */
export interface AttentionOptions {
  /** `[batch, tokens, heads, channels]`. */
  q: Tensor;
  /** `[batch, keys, kv heads, channels]`; each key head serves `heads / kv heads` query heads in a row. */
  k: Tensor;
  /** `[batch, keys, kv heads, value channels]`. */
  v: Tensor;
  /** `[batch, tokens, heads, value channels]`. */
  output?: Tensor;
  /** Where the log-sum-exp of each query's logits goes: f32 `[batch, tokens, heads, 1]`. */
  lse?: Tensor;
  /** Where the sum of each query's gates goes: f32 `[batch, tokens, heads, 2]`, whole part and fraction. */
  gateSum?: Tensor;
  /** `1 / sqrt(channels)` if left out. */
  scale?: number;
  /** Hides keys to the right of a query's place. */
  causal?: boolean;
  /** How many keys up to its own place a query sees at most. */
  window?: number;
  /** Where queries stand among the keys: the last one at the last key if left out, at the last of its row, or query 0 here. */
  standing?: "last" | "row-last" | number;
  /** Keys that each row has: i32 `[batch, 1, 1, 1]` lengths, or `[batch, 1, 1, 2]` first and one past the last. */
  keyRanges?: Tensor;
  /** A key is seen where this is not 0: i32 `[batch, tokens, heads, keys]`, or with 1 in place of the first three. */
  keep?: Tensor;
  /** Added to the logits, in the shapes of `keep`. */
  bias?: Tensor;
  /** Contextual position encoding (Golovneva et al., 2024). */
  cope?: ContextualOptions;
  /** How the work is cut, instead of as the device suggests. */
  schedule?: "tiles" | "rows" | "split";
}

export interface ContextualOptions {
  /** `[1, channels, 1 or heads, positions]`. */
  positionEmbeddings: Tensor;
  /** The queries that meet them, as those before a rotation; `q` if left out. */
  query?: Tensor;
  /** What gates are made from: the logits if left out, `q·v`, or keys of their own. */
  gates?: "logits" | "values" | Tensor;
  /** Whether gates are made with the bias; true if left out. */
  gatesSeeBias?: boolean;
  /** The sum of the gates of keys to the right of these: f32 `[batch, tokens, heads, 2]`. */
  gateSum?: Tensor;
  /** 1 if left out. */
  biasScale?: number;
}

export interface ContextualBiasOptions {
  /** `[batch, tokens, heads, channels]`. */
  query: Tensor;
  /** `[batch, tokens, heads, keys]`; masked ones at or below -1e30. */
  logits: Tensor;
  /** `[1, channels, 1 or heads, positions]`. */
  positionEmbeddings: Tensor;
  /** In the logits' shape, or the logits themselves. */
  output?: Tensor;
  /** 1 if left out. */
  scale?: number;
}
"#;
