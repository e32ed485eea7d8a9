// The page in Debian's Chromium, as `cargo xtask check web` has built it.

import { defineConfig } from "@playwright/test";

const root = process.getuid?.() === 0;
const port = process.env.MOTET_WEB_PORT ?? "4173";
const address = `http://localhost:${port}/`;

export default defineConfig({
  testDir: "tests",
  outputDir: process.env.MOTET_WEB_RESULTS ?? "../target/web-results",
  // One browser at a time: two cores draw and simulate.
  workers: 1,
  timeout: 90_000,
  // The check names what failed once.
  retries: 1,
  expect: { timeout: 30_000 },
  reporter: "line",
  use: {
    baseURL: address,
    browserName: "chromium",
    launchOptions: {
      executablePath: process.env.MOTET_CHROMIUM ?? "/usr/bin/chromium",
      // Chromium refuses its sandbox to root, as which containers run.
      // Containers have little shared memory.
      args: ["--disable-dev-shm-usage", ...(root ? ["--no-sandbox"] : [])],
    },
  },
  webServer: {
    command: `npm run serve -- --port ${port}`,
    url: address,
    reuseExistingServer: false,
  },
});
