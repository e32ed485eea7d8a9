// The page as a folder of static files, and what lets it go on without a network.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

// Beside this machine's other builds; `cargo xtask web` says where.
const folder = process.env.MOTET_WEB_OUT ?? resolve(import.meta.dirname, "../target/web");

/** What the page may load: its own files and nothing else. */
const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Says the policy in the page itself: a static server need not know it. */
function contentPolicy(): Plugin {
  return {
    name: "content-policy",
    apply: "build",
    transformIndexHtml: () => [
      {
        tag: "meta",
        attrs: { "http-equiv": "Content-Security-Policy", content: policy },
        injectTo: "head-prepend",
      },
    ],
  };
}

/** The licences of all that a visitor is sent, as they ask to be told. */
function licences(): Plugin {
  const read = (file: string) => readFileSync(resolve(import.meta.dirname, file), "utf8").trim();
  const parts = [
    "This page is Motet's, under the MIT licence or the Apache licence 2.0, as you choose.\nIts curves are drawn by uPlot, whose licence is the last one below.",
    read("../LICENSE-MIT"),
    read("../LICENSE-APACHE"),
    `uPlot\n\n${read("node_modules/uplot/LICENSE")}`,
  ];
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "licences.txt", source: `${parts.join(`\n\n${"-".repeat(78)}\n\n`)}\n` });
    },
  };
}

/** A service worker that keeps all files of a build that the page loads, under a name that changes with any of them. */
function offline(): Plugin {
  return {
    name: "offline",
    apply: "build",
    writeBundle({ dir }) {
      const root = dir ?? folder;
      const all = readdirSync(root, { recursive: true, withFileTypes: true });
      const files = all
        .filter((entry) => entry.isFile() && !["sw.js", "social.png"].includes(entry.name))
        .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
        .sort();
      const digest = createHash("sha256");
      for (const file of files) digest.update(file).update(readFileSync(join(root, file)));
      const build = digest.digest("hex").slice(0, 16);
      writeFileSync(join(root, "sw.js"), serviceWorker(build, ["./", ...files]));
    },
  };
}

/**
 * Other folders of the same server may have pages of their own, also older ones of this kind: the name of what is
 * kept begins with the folder. A new build waits until no page of the old one is open, whose files would be gone.
 */
function serviceWorker(build: string, files: string[]): string {
  return `const OWN = "motet " + registration.scope + " ";
const NAME = OWN + ${JSON.stringify(build)};
const FILES = ${JSON.stringify(files)};
addEventListener("install", (event) => {
  // From the server: what the browser has kept of these addresses may be of an older build.
  const requests = FILES.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(requests)));
});
addEventListener("activate", (event) => {
  const old = (name) => name.startsWith(OWN) && name !== NAME;
  const clean = caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))));
  event.waitUntil(clean.then(() => clients.claim()));
});
addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin) return;
  // Not by caches.open(), which makes anew what a newer build has let go.
  const kept = caches.match(event.request, { cacheName: NAME, ignoreSearch: true, ignoreVary: true });
  event.respondWith(kept.then((response) => response ?? fetch(event.request)));
});
`;
}

export default defineConfig({
  // Works in any folder of any server.
  base: "./",
  build: {
    outDir: folder,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  preview: { port: 4173, strictPort: true },
  plugins: [contentPolicy(), licences(), offline()],
});
