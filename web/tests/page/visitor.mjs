// What a visitor does and sees.

export function check(condition, what) {
  if (!condition) throw new Error(what);
}

/** Waits until what a function of the page gives is true. */
export const until = (page, condition, ...values) => page.waitForFunction(condition, { timeout: 60_000 }, ...values);

/** The text of an element as it is seen. */
export const text = (page, selector) => page.$eval(selector, (element) => element.innerText ?? element.value);

/** Loads the page and waits for its first result; milliseconds from the request to it, download included. */
export async function load({ page, url }) {
  await page.setViewport({ width: 1100, height: 900 });
  await page.goto(url);
  await until(page, () => document.documentElement.dataset.first);
  return Number(await page.evaluate(() => document.documentElement.dataset.first));
}

/** Replaces a text box's text, as by a paste. */
export async function paste(page, selector, words) {
  await page.$eval(selector, (box, words) => {
    box.value = words;
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }, words);
}

/** Waits until an element's text matches. */
export const says = (page, selector, pattern) =>
  until(page, (selector, source) => new RegExp(source).test(document.querySelector(selector).innerText), selector, pattern.source);

/** Scrolls to a part, which begins its work, and waits until its charts or pictures are there. */
export async function visit(page, part, shown) {
  await page.$eval(`#${part}`, (element) => element.scrollIntoView({ behavior: "instant" }));
  await page.waitForSelector(shown, { timeout: 60_000 });
}

/** How many different colours a canvas shows. */
export const colours = (page, selector) => page.$eval(selector, (canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
});

/** Nothing of the page is wider than the window. */
export async function fits(page) {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(wide <= window, `the page is ${wide} pixels wide in a window of ${window}`);
}

/** Presses a key so many times on an element. */
export async function press(page, selector, key, times = 1) {
  await page.focus(selector);
  for (let i = 0; i < times; i++) await page.keyboard.press(key);
}
