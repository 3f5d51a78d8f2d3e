#!/usr/bin/env node
// Uses the page as a visitor would, in a real browser: with WebGPU, then without.
//
//   node page.mjs chromium|firefox [--pictures=FOLDER]
//
// Exit status: 0 if every test has passed, 1 if one has not, 2 if there is no such browser.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { open } from "./page/browsers.mjs";
import { serve } from "./serve.mjs";
import { withGpu } from "./page/with-gpu.mjs";
import { withoutGpu } from "./page/without-gpu.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const [name, ...options] = process.argv.slice(2);
const pictures = options.find((option) => option.startsWith("--pictures="))?.slice("--pictures=".length);
const server = await serve(path.join(here, "../site"));
const url = `http://localhost:${server.address().port}/`;

/** Keeps a picture of what `what`, a page or an element of it, looks like, if pictures were asked for. */
async function picture(what, file) {
  if (!pictures) return;
  fs.mkdirSync(pictures, { recursive: true });
  await what.screenshot({ path: path.join(pictures, `${name}-${file}.png`) });
}

let [failed, passed] = [0, 0];

/** Runs tests in turn, on one page that is loaded once. */
async function run(title, gpu, tests) {
  const browser = await open(name, gpu);
  if (!browser) {
    console.error(`no ${name} was found`);
    process.exit(2);
  }
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => {
    // What Chromium itself says where there is no WebGPU.
    const expected = !gpu && message.text() === "No available adapters.";
    if (["error", "warn", "warning"].includes(message.type()) && !expected) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`uncaught: ${error.message}`));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(url)) wrong.push(`a request to ${request.url()}`);
  });
  page.on("response", (response) => response.status() >= 400 && wrong.push(`${response.status()} of ${response.url()}`));
  const all = { ...tests, "nothing went wrong unseen, and nothing was asked of another host": () => {
    if (wrong.length) throw new Error(wrong.join("; "));
  } };
  try {
    for (const [test, body] of Object.entries(all)) {
      const begun = Date.now();
      try {
        await body({ page, url, picture, browser: name });
        passed++;
        console.log(`passed  ${title}: ${test} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
      } catch (error) {
        failed++;
        console.log(`FAILED  ${title}: ${test}\n        ${error.stack}`);
        // Of a page that has not loaded there is no more to be known.
        if (test === Object.keys(all)[0]) break;
      }
    }
  } finally {
    await browser.close();
  }
}

try {
  await run("with WebGPU", true, withGpu);
  await run("without WebGPU", false, withoutGpu);
} finally {
  server.close();
  server.closeAllConnections();
}
console.log(`${name}: ${passed} of ${passed + failed} tests of the page passed`);
process.exit(failed ? 1 : 0);
