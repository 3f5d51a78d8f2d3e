// The page where there is no WebGPU: everything shows all the same, computed on the CPU.
import { check, colours, load, says, text, visit } from "./visitor.mjs";

export const withoutGpu = {
  async "it says why there is no GPU, and what to do"({ page, url, picture }) {
    await load({ page, url });
    await says(page, "#device", /Computed on the CPU.*No GPU is used: .*(no WebGPU|no GPU).*[Tt]urned? on/);
    await picture(page, "without-gpu");
  },

  async "every part shows"({ page }) {
    for (const chart of ["wavelengths", "divisors", "similarity"]) await page.waitForSelector(`#${chart} svg`);
    check((await colours(page, "#a-table canvas")) > 50, "the image of cosines is blank");
    await says(page, "#a-words", /divided by 8/);
    await visit(page, "rotation", "#products svg");
    await says(page, "#turn-head-says", /At 8 tokens/);
    await visit(page, "cope", "#cope-numbers dd");
    for (const name of ["plain", "gates", "positions", "bias", "result"]) check((await colours(page, `#map-${name} canvas`)) > 20, `${name} is blank`);
    for (const part of ["explore", "rotation", "cope"]) check((await text(page, `#${part} .failure`)) === "", await text(page, `#${part} .failure`));
  },

  async "there is no device to check, and it says so"({ page }) {
    check(await page.$eval("#run-verify", ({ disabled }) => disabled), "the check cannot be begun");
    await says(page, "#run-verdict", /There is no device to check/);
  },
};
