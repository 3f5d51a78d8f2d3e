// The page: finds what computes, shows the first model, and the rest as the visitor comes near.
import init from "./pkg/phasor.js";
import { startCheck } from "./check.js";
import { startCope } from "./cope.js";
import { findDevice } from "./device.js";
import { byId, element, whenNear } from "./dom.js";
import { startExplore } from "./explore.js";
import { startRotation } from "./rotation.js";

/** Says in a part of the page what went wrong in it. */
const failedIn = (id) => (error) => {
  console.error(error);
  byId(id).querySelector(".failure").textContent = error.message;
};

async function start() {
  const presets = fetch(new URL("presets.json", import.meta.url)).then((response) => response.json());
  await init();
  const device = await findDevice();
  byId("device").replaceChildren(`Computed on ${device.on}.`);
  if (device.why) {
    byId("device").append(element("strong", {}, ` No GPU is used: ${device.why}. `), device.todo);
  }
  await startExplore(device.compute, await presets, failedIn("explore"));
  document.documentElement.dataset.first = performance.now().toFixed();
  for (const [id, start] of [["rotation", startRotation], ["cope", startCope]]) {
    whenNear(byId(id), () => start(device.compute, failedIn(id)).catch(failedIn(id)));
  }
  startCheck(device);
}

start().catch((error) => {
  console.error(error);
  byId("device").textContent = `This page could not start: ${error.message}`;
});
