// Browsers with WebGPU on a machine without a GPU, and the same ones without WebGPU.
import fs from "node:fs";
import puppeteer from "puppeteer-core";

const BROWSERS = {
  chromium: {
    browser: "chrome",
    programs: [process.env.CHROMIUM, "/usr/lib/chromium/chromium", "/usr/lib64/chromium-browser/chromium-browser",
      "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome",
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"],
    settings: (gpu) => ({ args: [...(gpu ? ["--enable-unsafe-webgpu"] : []), "--disable-dev-shm-usage",
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])] }),
  },
  firefox: {
    browser: "firefox",
    programs: [process.env.FIREFOX, "/usr/lib/firefox-esr/firefox-esr", "/usr/lib/firefox/firefox", "/usr/bin/firefox",
      "/Applications/Firefox.app/Contents/MacOS/firefox"],
    // Without the second one there is no software adapter.
    settings: (gpu) => ({ extraPrefsFirefox: { "dom.webgpu.enabled": gpu, "gfx.webgpu.ignore-blocklist": gpu } }),
  },
};

/** Starts a browser; `undefined` if there is none of that name here. */
export async function open(name, gpu) {
  const { browser, programs, settings } = BROWSERS[name] ?? {};
  const executablePath = programs?.find((file) => file && fs.existsSync(file));
  // Software devices compile slowly: an answer may take its time.
  return executablePath && puppeteer.launch({ browser, executablePath, headless: true, protocolTimeout: 600_000, ...settings(gpu) });
}
