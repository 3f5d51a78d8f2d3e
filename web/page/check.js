// Part four: is this device right, and how fast is it?
import { byId, element } from "./dom.js";
import { seconds, short } from "./format.js";
import { start } from "./measure.js";

const BUTTONS = ["run-verify", "run-bench"];

export function startCheck(device) {
  const stop = byId("run-stop");
  const [bar, now] = [byId("run-bar"), byId("run-now")];
  let running;

  async function run(what, options, tell) {
    busy(true);
    const begun = performance.now();
    running = start(what, options, ({ done, total, name }) => {
      [bar.max, bar.value] = [total, done];
      now.textContent = `${name}: ${done} of ${total}`;
    });
    try {
      const json = await running.result;
      const took = `It took ${seconds((performance.now() - begun) / 1000)}.`;
      show(tell(JSON.parse(json)), took, json);
    } catch (error) {
      byId("run-verdict").replaceChildren(element("p", { className: error.message === "stopped" ? "" : "error" },
        error.message === "stopped" ? "Stopped: nothing was found out." : error.message));
    }
    busy(false);
  }

  function busy(is) {
    for (const id of BUTTONS) byId(id).disabled = is;
    stop.disabled = !is;
    byId("run-progress").hidden = !is;
    bar.removeAttribute("value");
    now.textContent = "starting";
    if (is) {
      byId("run-verdict").replaceChildren();
      byId("run-json").hidden = true;
    }
  }

  if (device.why) {
    for (const id of BUTTONS) byId(id).disabled = true;
    byId("run-verdict").replaceChildren(element("p", {}, `There is no device to check: ${device.why}.`));
    return;
  }
  byId("run-verify").addEventListener("click", () => run("verify", [byId("run-quick").checked], verified));
  byId("run-bench").addEventListener("click", () => run("bench", [], measured));
  stop.addEventListener("click", () => running.stop());
  byId("run-copy").addEventListener("click", async ({ target }) => {
    await navigator.clipboard.writeText(byId("run-text").value);
    target.textContent = "Copied";
  });
}

function show(told, took, json) {
  byId("run-verdict").replaceChildren(...told, element("p", { className: "note" }, took));
  byId("run-text").value = json;
  byId("run-copy").textContent = "Copy as JSON";
  byId("run-json").hidden = false;
}

function verified({ passed, values, variants, refused, device }) {
  const wrong = variants.filter((variant) => !variant.passed);
  const share = ({ worst_error, worst_bound }) => (worst_error === 0 ? 0 : worst_error / worst_bound);
  const nearest = variants.reduce((a, b) => (share(b) > share(a) ? b : a));
  const name = device.name || "This device";
  const verdict = passed
    ? `${name} is right. ${values.toLocaleString("en")} numbers from ${variants.length} shader variants were compared with float64; every one is within its bound, and the nearest used ${short(100 * share(nearest), 2)}\u00a0% of it.`
    : `${name} is wrong: ${wrong.length} of ${variants.length} shader variants gave a number beyond its bound.`;
  const beyond = refused.length ? ` Of what the library does, its limits allow all but this: ${refused.join("; ")}.` : "";
  const list = wrong.slice(0, 10).map(({ shader, worst_case, worst_error, worst_bound }) =>
    element("li", {}, `${shader}, ${worst_case}: off by ${short(worst_error)} where ${short(worst_bound)} is allowed`));
  return [element("p", { className: passed ? "good" : "error" }, verdict + beyond), element("ul", {}, ...list)];
}

function measured(measurements) {
  const [rotation, ...attention] = measurements;
  const find = ({ operations }, start) => operations.find(({ name }) => name.startsWith(start));
  const slowest = Math.max(...rotation.operations.filter(({ name }) => name.startsWith("rotation")).map((o) => o.over_baseline));
  const parts = [];
  if (Number.isFinite(slowest)) parts.push(`Rotating queries and keys takes ${short(slowest)} times as long as copying them, in the slowest of its forms.`);
  for (const measurement of attention) {
    const [plain, cope] = ["fused, plain", "fused, CoPE"].map((name) => find(measurement, name));
    if (plain && cope) parts.push(`${measurement.subject === "decode" ? "A decode step" : "Attention"} with CoPE takes ${short(cope.time.minimum / plain.time.minimum)} times as long as without.`);
  }
  const rows = measurements.flatMap(({ subject, operations }) => operations.map(({ name, time, gigabytes_per_second, over_baseline }) =>
    row([`${subject}: ${name}`, seconds(time.minimum), `${short(gigabytes_per_second)} GB/s`, short(over_baseline)])));
  const header = row(["operation", "shortest time", "memory", "× baseline"], "th");
  const clocks = rotation.clock === "device" ? "" : " Timed from outside, as the browser gives no device clock: short operations look slower than they are.";
  return [element("p", { className: "good" }, parts.join(" ") + clocks),
    element("div", { className: "wide" }, element("table", {}, element("thead", {}, header), element("tbody", {}, ...rows)))];
}

const row = (cells, tag = "td") => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
