// Making elements, and doing what comes in bursts once.

/** An element with properties, attributes where it has no such property, and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** The element of an id. */
export const byId = (id) => document.getElementById(id);

/** Fills a list of choices: `[value, label]` each. */
export function choices(select, options, chosen = select.value) {
  select.replaceChildren(...options.map(([value, label]) => element("option", { value: String(value) }, label)));
  if (options.some(([value]) => String(value) === String(chosen))) select.value = String(chosen);
}

/**
 * Work that may be asked for again before it is done: while it runs, all further requests become one, which begins when it
 * ends. An error goes to `failed`.
 */
export function latest(work, failed) {
  let running = false;
  let again = false;
  return async function request() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      try {
        await work();
      } catch (error) {
        failed(error);
      }
    } while (again);
    running = false;
  };
}

/** Calls `work` once an element comes near the window. */
export function whenNear(watched, work) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    work();
  }, { rootMargin: "400px" });
  observer.observe(watched);
}

/** Shows a slider's value in its `output`, and tells of each change. */
export function slider(id, show, changed) {
  const input = byId(id);
  const output = document.querySelector(`output[for="${id}"]`);
  const update = () => {
    output.value = show(input.valueAsNumber);
  };
  input.addEventListener("input", () => {
    update();
    changed();
  });
  update();
  return { input, update, get value() { return input.valueAsNumber; } };
}
