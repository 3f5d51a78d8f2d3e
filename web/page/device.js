// The device that computes: a GPU by WebGPU, or the CPU, and why.
import { Gpu } from "./pkg/phasor.js";
import { OnCpu, OnDevice } from "./compute.js";

/** Why there is no WebGPU, and what to do; nothing where there is. */
async function obstacle() {
  if (!globalThis.isSecureContext) {
    return ["browsers give WebGPU only to pages from https or from localhost", "Open this page from one of those."];
  }
  if (!navigator.gpu) {
    return ["this browser has no WebGPU, or it is turned off",
      "Chrome, Edge, Safari 26 and Firefox have it on current systems; on Linux it may have to be turned on in the browser’s flags."];
  }
  if (!(await navigator.gpu.requestAdapter())) {
    return ["this browser has WebGPU, but no GPU that it would use it on",
      "Turn on hardware acceleration in the browser’s settings, or bring the graphics driver up to date; on Linux WebGPU may have to be turned on in the browser’s flags."];
  }
  return [];
}

/** A device's name as far as the browser tells it. */
function nameOf(gpu) {
  const { vendor, architecture, description } = gpu.device?.adapterInfo ?? {};
  return description || [vendor, architecture].filter(Boolean).join(" ") || "a GPU without a name";
}

/** `{compute, on, why, todo}`: how to compute, on what, and if that is the CPU, why and what would change it. */
export async function findDevice() {
  let [why, todo] = await obstacle();
  if (!why) {
    try {
      const gpu = await Gpu.request();
      const on = `${nameOf(gpu)}, by WebGPU${gpu.isSoftware ? " (a GPU that software imitates)" : ""}`;
      return { compute: new OnDevice(gpu), on };
    } catch (error) {
      why = `the GPU gave no device (${error.message})`;
      todo = "Often it is enough to load the page again, or to bring the graphics driver up to date.";
    }
  }
  return { compute: await OnCpu.load(), on: "the CPU", why, todo };
}
