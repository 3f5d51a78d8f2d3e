// The device that computes: a GPU by WebGPU, or the CPU, and why.
import { Gpu } from "./pkg/phasor.js";
import { OnCpu, OnDevice } from "./compute.js";

/** What to do where there is no WebGPU, by what is missing. */
function advice() {
  if (!globalThis.isSecureContext) {
    return ["browsers give WebGPU only to pages from https or from localhost", "Open this page from one of those."];
  }
  if (!navigator.gpu) {
    return ["this browser has no WebGPU, or it is turned off",
      "Chrome, Edge, Safari 26 and Firefox have it on current systems; on Linux it may have to be turned on in the browser's flags."];
  }
  return undefined;
}

/** A device's name as far as the browser tells it. */
function nameOf(gpu) {
  const { vendor, architecture, description } = gpu.device?.adapterInfo ?? {};
  return description || [vendor, architecture].filter(Boolean).join(" ") || "a GPU without a name";
}

/** `{compute, on, why, todo}`: how to compute, on what, and if that is the CPU, why and what would change it. */
export async function findDevice() {
  let [why, todo] = advice() ?? [];
  if (!why) {
    try {
      const gpu = await Gpu.request();
      const on = `${nameOf(gpu)}, by WebGPU${gpu.isSoftware ? " (a GPU that software imitates)" : ""}`;
      return { compute: new OnDevice(gpu), on };
    } catch (error) {
      why = `the browser has WebGPU but gives no device (${error.message})`;
      todo = "Often the graphics driver is too old, or hardware acceleration is turned off in the browser's settings.";
    }
  }
  return { compute: new OnCpu(), on: "the CPU", why, todo };
}
