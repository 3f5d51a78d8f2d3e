#!/usr/bin/env node
// Serves the package, the tests and the golden data on localhost, opens the test page in a headless browser, and waits for
// the verdict that the page posts to /__report. No npm package is needed.
//
//   node run.mjs chromium|firefox [--page=FILE] [--timeout=SECONDS]
//
// Exit status: 0 if every test has passed, 1 if one has not, 2 if there was no report (no browser, a crash, too slow).
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
/** What the server shows, by the first part of the path. */
const ROOTS = {
  pkg: path.join(here, "../pkg"),
  tests: path.join(here, "browser"),
  examples: path.join(here, "../examples"),
  data: path.join(here, "../../tests/data"),
};
const MIME = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm",
  ".json": "application/json", ".wgsl": "text/plain; charset=utf-8",
};

/** How each browser is found and started with WebGPU on a machine without a GPU. */
const BROWSERS = {
  chromium: {
    // /usr/bin/chromium is a script: the program itself, so that the process is the browser's.
    programs: [process.env.CHROMIUM, "/usr/lib/chromium/chromium", "/usr/lib64/chromium-browser/chromium-browser",
      "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome",
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"],
    arguments: (profile, url) => ["--headless=new", `--user-data-dir=${profile}`, "--enable-unsafe-webgpu", "--no-first-run",
      "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
      "--disable-extensions", "--disable-default-apps", "--disable-dev-shm-usage", "--mute-audio",
      "--enable-logging=stderr", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), url],
    prepare: () => {},
    console: (line) => line.match(/:INFO:CONSOLE[:(]\d+\)?\] (.*)/)?.[1],
  },
  firefox: {
    programs: [process.env.FIREFOX, "/usr/lib/firefox-esr/firefox-esr", "/usr/lib/firefox/firefox", "/usr/bin/firefox",
      "/Applications/Firefox.app/Contents/MacOS/firefox"],
    arguments: (profile, url) => ["--headless", "--no-remote", "--profile", profile, url],
    prepare: (profile) => fs.writeFileSync(path.join(profile, "user.js"), Object.entries({
      "dom.webgpu.enabled": true,
      // Without it there is no software adapter.
      "gfx.webgpu.ignore-blocklist": true,
      "devtools.console.stdout.content": true,
      "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false,
      "toolkit.telemetry.enabled": false, "app.update.enabled": false, "app.normandy.enabled": false,
      "browser.startup.homepage_override.mstone": "ignore", "network.captive-portal-service.enabled": false,
      "network.connectivity-service.enabled": false, "services.settings.server": "", "extensions.update.enabled": false,
    }).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`).join("\n")),
    console: (line) => line.match(/^console\.\w+: (.*)/)?.[1] ?? line.match(/^(JavaScript error: .*)/)?.[1],
  },
};

/** Answers with the files below the roots, and hands the page's report over. */
function serve(report) {
  return http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (request.method === "POST" && pathname === "/__report") {
      let body = "";
      request.on("data", (data) => (body += data));
      request.on("end", () => { response.writeHead(204).end(); report(JSON.parse(body)); });
      return;
    }
    const [, root, ...rest] = decodeURIComponent(pathname).split("/");
    const base = ROOTS[root] ?? "";
    const file = path.join(base, ...rest);
    if (!base || !file.startsWith(base + path.sep) || !fs.statSync(file, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    const type = MIME[path.extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type, "cache-control": "no-store" });
    fs.createReadStream(file).pipe(response);
  });
}

const [name, ...options] = process.argv.slice(2);
const browser = BROWSERS[name];
const option = (key, fallback) => options.find((o) => o.startsWith(`--${key}=`))?.slice(key.length + 3) ?? fallback;
const program = browser?.programs.find((file) => file && fs.existsSync(file));
if (!program) {
  console.error(browser ? `no ${name} was found` : "usage: run.mjs chromium|firefox");
  process.exit(2);
}
const profile = fs.mkdtempSync(path.join(os.tmpdir(), `phasor-${name}-`));
browser.prepare(profile);
let settle;
const reported = new Promise((resolve) => (settle = resolve));
const server = serve((report) => settle({ report }));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://localhost:${server.address().port}/${option("page", "tests/index.html")}`;
const child = spawn(program, browser.arguments(profile, url), {
  stdio: ["ignore", "pipe", "pipe"], detached: true, env: { ...process.env, HOME: profile, MOZ_HEADLESS: "1" },
});
let log = "";
const listen = (stream) => {
  let rest = "";
  stream.on("data", (data) => {
    log += data;
    const lines = (rest + data).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const said = browser.console(line);
      if (said) console.log(`  ${said}`);
    }
  });
};
listen(child.stdout);
listen(child.stderr);
const outcome = await Promise.race([
  reported,
  new Promise((resolve) => child.once("exit", (code, signal) => resolve({ gone: `it ended (${code ?? signal})` }))),
  new Promise((resolve) => setTimeout(() => resolve({ gone: "it took too long" }), 1000 * option("timeout", "300"))),
]);
// The browser's own process group.
for (const signal of ["SIGTERM", "SIGKILL"]) {
  try { process.kill(-child.pid, signal); } catch { /* it is gone */ }
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
server.close();
server.closeAllConnections();
fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
if (!outcome.report) {
  console.error(`no report from ${name}: ${outcome.gone}\n${log.split("\n").slice(-30).join("\n")}`);
  process.exit(2);
}
const { tests } = outcome.report;
for (const test of tests) console.log(`${test.error ? "FAILED" : "passed"}  ${test.name}${test.error ? `\n        ${test.error}` : ""}`);
const failed = tests.filter((test) => test.error).length;
console.log(`${name}: ${tests.length - failed} of ${tests.length} tests passed`);
process.exit(failed || !tests.length ? 1 : 0);
