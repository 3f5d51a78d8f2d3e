// Light and dark: the style sheet's colours for what is painted, and a word when they change.

const dark = matchMedia("(prefers-color-scheme: dark)");

/** A colour of the style sheet as `[red, green, blue]`, 0 to 255. */
export function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return [1, 3, 5].map((i) => Number.parseInt(text.slice(i, i + 2), 16));
}

/** A colour between two, `t` from 0 to 1. */
export const between = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);

/** Calls `paint` when the colours change. */
export const onTheme = (paint) => dark.addEventListener("change", paint);
