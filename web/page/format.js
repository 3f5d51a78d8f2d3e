// Numbers and words for people.

/** A number with so many significant digits, thousands apart; without an exponent where it is not huge. */
export function short(x, digits = 3) {
  if (x === 0) return "0";
  if (!Number.isFinite(x)) return "never";
  const size = Math.abs(x);
  if (size >= 1e15 || size < 1e-4) return x.toExponential(digits - 1);
  if (size >= 10 ** (digits - 1)) return Math.round(x).toLocaleString("en");
  return Number(x.toPrecision(digits)).toString();
}

/** A number with so many digits behind the point. */
export const fixed = (x, digits = 3) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");

/** A whole number in few letters: 10K, 1M. */
export const compact = (n) => n.toLocaleString("en", { notation: "compact" });

/** A time in the unit that suits it. */
export function seconds(s) {
  if (s < 1e-3) return `${short(s * 1e6)} µs`;
  return s < 1 ? `${short(s * 1e3)} ms` : `${short(s)} s`;
}
