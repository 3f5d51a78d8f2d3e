// Explanations, the check and the measurement: work for a thread of its own, so that the page stays at hand.

/** A worker and the calls that wait for its answers. */
class Assistant {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #waiting = new Map();
  #count = 0;

  constructor() {
    this.#worker.onmessage = ({ data: { id, progress, result, error } }) => {
      const call = this.#waiting.get(id);
      if (!call) return;
      if (progress) return call.progress?.(progress);
      this.#waiting.delete(id);
      if (error === undefined) call.resolve(result);
      else call.reject(new Error(error));
    };
    this.#worker.onerror = (event) => this.#end(event.message || "the worker did not start");
  }

  call(what, options, progress) {
    const id = this.#count++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, progress });
      this.#worker.postMessage({ id, what, options });
    });
  }

  /** Ends it, whatever it is doing. */
  stop() {
    this.#worker.terminate();
    this.#end("stopped");
  }

  #end(reason) {
    for (const { reject } of this.#waiting.values()) reject(new Error(reason));
    this.#waiting.clear();
  }
}

let teller;
/** What `phasor explain` says of a config: `{title, groups, warnings}`. */
export async function explain(name, config, seqLen) {
  teller ??= new Assistant();
  return JSON.parse(await teller.call("explain", [name, config, seqLen]));
}

/** Starts `"verify"` (its option: whether it is to be quick) or `"bench"`; `result` is its JSON text, and `stop()` ends it. */
export function start(what, options, progress) {
  const runner = new Assistant();
  const result = runner.call(what, options, progress).finally(() => runner.stop());
  return { result, stop: () => runner.stop() };
}
