// Reads what a page hands over: options objects, numbers, words, typed arrays. Whatever it is, it is an answer or an error
// that names the argument. `options.rs` takes the answers on, in the order of the tables here.

/** An error as the library's are. */
export const failed = (code, argument, message) => Object.assign(new Error(message), { name: "PhasorError", code }, argument && { argument });

/** What an array holds, as far as one needs to see. */
const list = (values) => [
  ...Array.from(values.slice(0, 5), (value) => (Array.isArray(value) ? "an array" : typeof value === "number" ? value : typeof value)),
  ...(values.length > 5 ? [`… ${values.length} in all`] : []),
].join(", ");

/** Throws the error for a value that cannot be. */
export function refuse(value, name, mayBe) {
  const was = {
    undefined: () => "left out",
    number: () => value,
    string: () => `"${value}"`,
    // An object's own words may be long, or fail.
    object: () => (Array.isArray(value) ? `[${list(value)}]` : "object"),
  }[typeof value];
  throw failed("Tensor", name, `${name}: was ${was ? was() : typeof value}, may be ${mayBe}`);
}

/** What `read` makes of a value, which is `undefined` for what is refused. */
const reader = (mayBe, read) => (value, name) => {
  const answer = read(value);
  return answer === undefined ? refuse(value, name, mayBe) : answer;
};

const where = (holds) => (value) => (holds(value) ? value : undefined);
const isWhole = (value, first, end) => Number.isInteger(value) && value >= first && value < end;
const isCount = (value) => isWhole(value, 0, 2 ** 32);

const number = reader("a finite number", where(Number.isFinite));
const whole = reader("a whole number within the range of an i32", where((value) => isWhole(value, -(2 ** 31), 2 ** 31)));
const count = reader("a whole number, not negative", where(isCount));
const real = reader("a number", where((value) => typeof value === "number"));
const text = reader("a text", where((value) => typeof value === "string"));
const flag = reader("true or false", where((value) => typeof value === "boolean"));
const floats = reader("a Float32Array", where((value) => value instanceof Float32Array));
const isIntegers = (value) => value instanceof Int32Array;
const integers = reader("an Int32Array", where(isIntegers));
const hostPositions = reader("a whole number or an Int32Array", where(isIntegers));
const doubles = reader("a Float64Array, a Float32Array or an array of numbers", (value) =>
  value instanceof Float64Array || value instanceof Float32Array || (Array.isArray(value) && [...value].every((x) => typeof x === "number"))
    ? Float64Array.from(value) : undefined);
const shape = reader("an array of 4 whole numbers", (value) =>
  (Array.isArray(value) || value instanceof Uint32Array) && value.length === 4 && [...value].every(isCount) ? Uint32Array.from(value) : undefined);

/** One of some words, as its place among them. */
const word = (...words) => reader(words.map((name) => `"${name}"`).join(" or "), (value) => {
  const place = words.indexOf(value);
  return place < 0 ? undefined : place;
});

/** An object of this package, which the page keeps: a second handle to the same thing is passed on. */
const handle = (name) => reader(`a ${name} that has not been freed`, (value) => {
  try {
    return value[`__${name}`]();
  } catch {
    // It has no such function, or has been freed.
  }
});

const tensor = handle("Tensor");

const optional = (read) => (value, name) => (value == null ? undefined : read(value, name));

/** An options object, none of whose properties is unknown: a misspelt one should not go unnoticed. */
const options = (fields) => (value, name) => {
  const given = value ?? {};
  if (typeof given !== "object") refuse(value, name, "an object");
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(fields, key)) {
      throw failed("Tensor", `${name}.${key}`, `${name}.${key}: was given, may be ${Object.keys(fields).join(", ")}`);
    }
  }
  const answers = [];
  try {
    for (const key in fields) answers.push(fields[key](given[key], `${name}.${key}`));
  } catch (error) {
    for (const answer of answers.flat(2)) answer?.free?.();
    throw error;
  }
  return answers;
};

/** Numbers from a tensor: one to a row from which its tokens count on, or one to a token. */
const numbers = (value, name) => {
  const answers = options({ startPerRow: optional(tensor), perToken: optional(tensor) })(value, name);
  if (!answers[0] === !answers[1]) refuse(value, name, "{startPerRow: tensor} or {perToken: tensor}");
  return answers;
};

const pairing = word("half-split", "interleaved");
const direction = optional(word("forward", "inverse", "adjoint"));
const element = optional(word("f32", "f16", "bf16", "i32"));
const host = options({ values: doubles, shape });

/** Properties of an object of whatever class. */
const properties = (fields) => (value, name) => Object.entries(fields).map(([key, read]) => read(value?.[key], `${name}.${key}`));

/** Everything that is read, by name. */
const kinds = {
  integers, doubles, shape, pairing, element, host, tensor, real, count, whole, text,
  countOr0: (value, name) => optional(count)(value, name) ?? 0,
  factor: (value, name) => optional(number)(value, name) ?? 1,
  step: handle("Step"),
  frequencies: properties({ inverse: doubles, attentionFactor: optional(number) }),
  values: floats,
  wrap: options({ element, offset: optional(count), strides: optional(shape) }),
  rope: options({ pairing, firstChannel: optional(count), axes: optional(doubles) }),
  rotate: options({
    q: optional(tensor), qOut: optional(tensor), k: optional(tensor), kOut: optional(tensor), kCache: optional(tensor),
    rows: optional(numbers),
    positions: optional((value, name) => (typeof value === "number" ? whole : numbers)(value, name)),
    samePosition: optional(whole), direction, table: optional(handle("RopeTable")),
  }),
  attention: options({
    q: tensor, k: tensor, v: tensor, output: optional(tensor), lse: optional(tensor), gateSum: optional(tensor),
    scale: optional(number), causal: optional(flag), window: optional(count),
    standing: optional((value, name) => (typeof value === "number" ? [whole(value, name)] : word("last", "row-last")(value, name))),
    keyRanges: optional(tensor), keep: optional(tensor), bias: optional(tensor),
    cope: optional(options({
      positionEmbeddings: tensor, query: optional(tensor),
      gates: optional((value, name) => (typeof value === "string" ? word("logits", "values") : tensor)(value, name)),
      gatesSeeBias: optional(flag), gateSum: optional(tensor), biasScale: optional(number),
    })),
    schedule: optional(word("tiles", "rows", "split")),
  }),
  bias: options({ query: tensor, logits: tensor, positionEmbeddings: tensor, output: optional(tensor), scale: optional(number) }),
  hostRotate: options({
    pairing, firstChannel: optional(count), direction,
    positions: optional((value, name) => (typeof value === "number" ? whole : hostPositions)(value, name)),
  }),
  hostAttention: options({
    q: host, k: host, v: host, scale: optional(number), causal: optional(flag), window: optional(count),
    standing: optional(whole), keep: optional(host), bias: optional(host),
    cope: optional(options({ positionEmbeddings: host, query: optional(host), biasScale: optional(number) })),
  }),
};

/** Reads a value as one of these. */
export const read = (kind, value, name) => kinds[kind](value, name);
