// Runs every test of every file and posts what came of it.
import init from "/pkg/phasor.js";
import initReference from "/pkg/reference.js";

const FILES = ["config.mjs", "reference.mjs", "rotation.mjs", "attention.mjs", "errors.mjs", "lifetimes.mjs", "plain_wgsl.mjs"];

const tests = [];
const stray = [];
addEventListener("error", (event) => stray.push(`uncaught: ${event.message}`));
addEventListener("unhandledrejection", (event) => stray.push(`unhandled: ${event.reason}`));

/** Runs one test to its end, whatever it does. */
async function run(name, test) {
  try {
    await test();
    tests.push({ name });
  } catch (error) {
    tests.push({ name, error: `${error?.stack ?? error} ${error?.message ?? ""}` });
  }
}

await run("the module loads", () => init());
await run("the reference loads", () => initReference());
for (const file of FILES) {
  await run(`${file} loads`, async () => {
    const { default: list } = await import(`./${file}`);
    for (const [name, test] of Object.entries(list)) await run(name, test);
  });
}
await run("nothing was left uncaught", async () => {
  await new Promise((resolve) => setTimeout(resolve, 100));
  if (stray.length) throw new Error(stray.join("; "));
});
await fetch("/__report", { method: "POST", body: JSON.stringify({ tests }) });
