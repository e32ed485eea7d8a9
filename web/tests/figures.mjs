// How large the lab for a browser is, and how fast: `node figures.mjs MOTET GENERATED SCENARIOS`, a line of JSON.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

const [motet, generated, scenarios] = process.argv.slice(2).map((path) => resolve(path));
const wasm = readFileSync(join(generated, "motet_web_bg.wasm"));
const explainer = readFileSync(join(generated, "motet_web_explain_bg.wasm"));
const lab = await import(pathToFileURL(join(generated, "motet_web.js")).href);
lab.initSync({ module: wasm });

const NAME = "three-hops.toml";
const text = readFileSync(join(scenarios, NAME), "utf8");
const files = new lab.Files();

const inBrowser = (seconds) => lab.run(text, NAME, files, 1, seconds);
const asCommand = (seconds) =>
  spawnSync(motet, ["run", NAME, "--json", "-", "--seeds", "1", "--duration", String(seconds)], { cwd: scenarios });

/** The least of some: what others do on the machine only adds. */
function least(run, seconds) {
  const times = Array.from({ length: 12 }, () => {
    const begun = performance.now();
    run(seconds);
    return performance.now() - begun;
  });
  return Math.min(...times);
}

/** 60 s without what any run takes to begin: a process, a compilation. */
const span = (run) => (least(run, 66) - least(run, 6));

const [browser, native] = [span(inBrowser), span(asCommand)];
console.log(
  JSON.stringify({
    raw: wasm.length,
    gzip: gzipSync(wasm, { level: 9 }).length,
    brotli: brotliCompressSync(wasm).length,
    explainer_brotli: brotliCompressSync(explainer).length,
    browser_ms: browser,
    native_ms: native,
  }),
);
