// The thread on which explanations are made and a device is checked and measured.
import init, { bench, explain, verify } from "./measure/measure.js";

const ready = init();

onmessage = async ({ data: { id, what, options } }) => {
  const progress = (done, total, name) => postMessage({ id, progress: { done, total, name } });
  try {
    await ready;
    const work = { explain: () => explain(...options), verify: () => verify(...options, progress), bench: () => bench(progress) };
    postMessage({ id, result: await work[what]() });
  } catch (error) {
    postMessage({ id, error: error?.message ?? String(error) });
  }
};
