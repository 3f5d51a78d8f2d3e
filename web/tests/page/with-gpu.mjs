// The page with WebGPU.
import fs from "node:fs";
import { createRequire } from "node:module";
import { check, colours, fits, load, paste, press, says, text, until, visit } from "./visitor.mjs";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Labels, contrast, keyboard access: what axe-core can see of them. */
async function accessible(page, when) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const said = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
  check(!said.length, `${when}: ${said.join("; ")}`);
}

const LINEAR = { model_type: "llama", hidden_size: 4096, num_attention_heads: 32, rope_scaling: { rope_type: "linear" } };

export const withGpu = {
  async "it loads and computes on a device"({ page, url }) {
    const first = await load({ page, url });
    console.log(`        first result after ${first} ms`);
    await says(page, "#device", /^Computed on .*WebGPU/);
    await page.waitForSelector("#similarity svg");
    check((await colours(page, "#a-table canvas")) > 50, "the image of cosines is blank");
    await says(page, "#a-words", /interpolated.*35-63.*divided by 8/);
    check((await text(page, "#bands")).includes("29 of 64 pairs are left alone, 35 are slowed, by up to 8"), "what scaling changes");
  },

  async "every preset is a model that the library reads"({ page }) {
    const names = await page.$$eval("#a-preset option", (options) => options.map(({ value }) => value).filter((value) => value !== "own"));
    check(names.length >= 8, `${names}`);
    for (const name of names) {
      await page.select("#a-preset", name);
      await says(page, "#a-words h4", new RegExp(name.replace(/[.]/g, "\\.")));
      check((await text(page, "#a-error")) === "", `${name}: ${await text(page, "#a-error")}`);
    }
  },

  async "layers of several kinds are told apart"({ page }) {
    await page.select("#a-preset", "Gemma 3 4B");
    await says(page, "#a-words", /sliding_attention/);
    await page.select("#a-kind", "1");
    await says(page, "#bands", /Gemma 3 4B: 128 are slowed, by up to 8/);
  },

  async "a broken config says what is wrong, beside the box"({ page }) {
    await paste(page, "#a-config", JSON.stringify(LINEAR));
    check((await text(page, "#a-error")).startsWith("rope_scaling.factor"), await text(page, "#a-error"));
    check((await page.$eval("#a-preset", (select) => select.value)) === "own", "an edited text is the visitor's own");
    await paste(page, "#a-config", '{"model_type": ');
    check((await text(page, "#a-error")).length > 10, "no JSON");
    check(await page.$eval("#a-config", (box) => box.getAttribute("aria-invalid") === "true"), "the box is marked");
    await paste(page, "#a-config", JSON.stringify({ ...LINEAR, rope_scaling: { rope_type: "linear", factor: 3 } }));
    check((await text(page, "#a-error")) === "", "a mended text is no longer wrong");
    await says(page, "#bands", /64 are slowed, by up to 3/);
  },

  async "two models side by side"({ page, picture }) {
    await page.select("#a-preset", "Llama 3.1 8B");
    await page.select("#b-preset", "Phi-3.5 mini");
    await says(page, "#b-words", /longrope/);
    await says(page, "#wavelengths .models", /Llama 3\.1 8B\s*Phi-3\.5 mini/);
    await page.waitForSelector("#b-table:not([hidden])");
    await page.select("#b-length", "8192");
    await says(page, "#bands", /slowed, by up to 64\.8/);
    await press(page, "#start", "ArrowRight", 10);
    await says(page, "#a-table .ends", /131,072/);
    await picture(await page.$("#explore"), "explore");
  },

  async "hands turn, and their product knows only the distance"({ page, picture }) {
    await visit(page, "rotation", "#products svg");
    const pair = async () => (await text(page, "#turn-pair-says")).match(/This pair adds (-?[\d.]+)/)[1];
    const before = await pair();
    await page.click("#turn-together");
    await press(page, "#turn-m", "ArrowRight", 20);
    await says(page, 'output[for="turn-n"]', /^32$/);
    check((await pair()) === before, `${await pair()} after moving both, ${before} before`);
    await page.click("#turn-together");
    await press(page, "#turn-m", "ArrowRight", 5);
    check((await pair()) !== before, "the distance has changed, and the product has not");
    await says(page, "#turn-head-says", /At 13 tokens/);
    const apart = Number((await text(page, "#turn-head-says")).match(/differ by more than ([\d.e-]+)/)[1]);
    // 64 products of numbers up to a few, with cosines and sines that are right to 2e-7.
    check(apart < 1e-4, `${apart} apart, 100,000 tokens further on`);
    await picture(await page.$("#rotation"), "rotation");
  },

  async "gates, positions, bias and what comes of them"({ page, picture }) {
    await visit(page, "cope", "#cope-numbers dd");
    check((await page.$$("#cope-text button")).length === 49, "a word for each token");
    for (const name of ["plain", "gates", "positions", "bias", "result"]) check((await colours(page, `#map-${name} canvas`)) > 20, `${name} is blank`);
    const before = await text(page, "#cope-numbers");
    await press(page, "#map-gates canvas", "ArrowLeft", 3);
    check((await text(page, "#cope-numbers")) !== before, "arrow keys move the mark");
    await page.focus('#cope-text [tabindex="0"]');
    await page.keyboard.press("ArrowLeft");
    await says(page, "#cope-numbers", /query\s*apart \(45\)/);
    await page.hover("#map-result canvas");
    await says(page, "#cope-numbers", /\(24\)/);
    await page.select("#cope-layer", "0");
    await page.select("#cope-head", "4");
    await press(page, "#cope-positions", "ArrowLeft", 4);
    await says(page, "#cope-range", /Positions run from 0 to 7/);
    // Gates of logits times 0 are all a half.
    await press(page, "#cope-sharpness", "Home");
    await says(page, "#cope-numbers", /gate\s*0\.500/);
    await press(page, "#cope-sharpness", "ArrowRight", 8);
    await picture(await page.$("#cope"), "cope");
  },

  async "words are the tokens that the model read"({ page }) {
    const differing = await page.evaluate(async () => {
      const { activations } = await import("/activations.js");
      const { safetensors } = await import("/safetensors.js");
      const { tokens } = await activations();
      const ids = [...(await safetensors("/data/smollm2.safetensors")).tensors.token_ids.values];
      // The same word wherever the same token is, and only there.
      return tokens.filter((word, i) => tokens.some((other, j) => (word === other) !== (ids[i] === ids[j])));
    });
    check(!differing.length, `${differing}`);
  },

  async "the device and the CPU come to the same"({ page }) {
    const largest = await page.evaluate(async () => {
      const { Gpu } = await import("/pkg/phasor.js");
      const { OnCpu, OnDevice } = await import("/compute.js");
      const { activations } = await import("/activations.js");
      const { EMBEDDINGS, madeUp } = await import("/embeddings.js");
      const { attended } = await import("/cope.js");
      const model = await activations();
      const [cpu, device] = [await OnCpu.load(), new OnDevice(await Gpu.request())];
      const apart = {};
      for (const layer of model.layers) {
        for (const { name } of EMBEDDINGS) {
          const settings = { layer, head: 5, positions: 9, sharpness: 2.5, rotated: true, embeddings: name };
          const [a, b] = [await attended(cpu, model, settings), await attended(device, model, settings)];
          for (const key of Object.keys(a)) apart[key] = Math.max(apart[key] ?? 0, ...Array.from(a[key], (x, i) => Math.abs(x - b[key][i]) / Math.max(1, Math.abs(x))));
        }
      }
      return apart;
    });
    // A logit of 64 products of float32, up to about a hundred, and what follows from it; a softmax multiplies what its logits err.
    for (const [name, error] of Object.entries(largest)) check(error <= 1e-3, `${name} differs by ${error}`);
    console.log(`        ${JSON.stringify(largest)}`);
  },

  async "light, dark, and as wide as a phone"({ page, picture, browser }) {
    await page.select("#b-preset", "none");
    await page.evaluate(() => scrollTo(0, 0));
    await accessible(page, "in light");
    await fits(page);
    await picture(page, "light");
    if (browser === "chromium") {
      // Firefox has no command for this.
      const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const light = await background();
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
      check((await background()) !== light, "dark is as light");
      await accessible(page, "in the dark");
      await picture(page, "dark");
      await picture(await page.$("#cope"), "dark-cope");
      await page.emulateMediaFeatures([]);
    }
    await page.setViewport({ width: 360, height: 740 });
    await until(page, () => document.querySelector("#wavelengths svg").clientWidth <= 360);
    await fits(page);
    await picture(page, "phone");
    await picture(await page.$("#cope"), "phone-cope");
    await page.setViewport({ width: 1100, height: 900 });
  },

  async "the check runs to its verdict, and its result is JSON"({ page, picture }) {
    // All of it is what `phasor verify` runs in the tests; a browser compiles shaders for minutes.
    await page.click("#run-quick");
    await page.click("#run-verify");
    await says(page, "#run-now", /\d+ of \d+/);
    await page.waitForSelector("#run-verdict p", { timeout: 500_000 });
    check((await text(page, "#run-verdict")).includes("is right."), await text(page, "#run-verdict"));
    const result = JSON.parse(await page.$eval("#run-text", ({ value }) => value));
    check(result.passed && result.values > 100_000 && result.variants.length > 20, "what the JSON says");
    await picture(await page.$("#check"), "check");
  },

  async "a measurement can be stopped"({ page }) {
    await page.click("#run-bench");
    await until(page, () => !document.querySelector("#run-stop").disabled);
    await page.click("#run-stop");
    await says(page, "#run-verdict", /Stopped/);
    check(!(await page.$eval("#run-bench", ({ disabled }) => disabled)), "another one can be begun");
  },
};
