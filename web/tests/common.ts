// What the tests of the page share.

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Page } from "@playwright/test";

/** The page as it is built. */
export const BUILT = process.env.MOTET_WEB_OUT ?? join(import.meta.dirname, "../../target/web");

const KINDS: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
};

/** A server of a folder, but of what `isThere`; browsers may keep its files for an hour, as many servers say. */
export async function serve(folder: string, isThere = (_path: string) => true): Promise<{ server: Server; address: string }> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const file = join(folder, pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    try {
      if (!isThere(pathname)) throw new Error("away");
      const content = readFileSync(file);
      response.writeHead(200, { "Content-Type": KINDS[extname(file)] ?? "text/plain", "Cache-Control": "max-age=3600" });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((go) => server.listen(0, "localhost", go));
  return { server, address: `http://localhost:${(server.address() as AddressInfo).port}/` };
}

/** Collects what nobody should see: errors, and requests to other hosts. */
export function watch(page: Page): string[] {
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (!["data:", "blob:"].includes(protocol) && hostname !== "localhost") wrong.push(`foreign: ${request.url()}`);
  });
  return wrong;
}

/** Opens the page, and waits until a frame is on the air. */
export async function visit(page: Page, hash = ""): Promise<void> {
  await page.goto(`/${hash}`);
  await seenFirst(page);
}

export async function seenFirst(page: Page): Promise<void> {
  await page.waitForFunction(() => performance.getEntriesByName("first-frame").length > 0);
}

/** What the page's clock says, s. */
export async function seconds(page: Page): Promise<number> {
  return parseFloat((await page.locator("#clock").textContent()) ?? "");
}

/** Where mote 1 of the three hops of the first view is, in pixels of the screen. */
export async function moteOne(page: Page): Promise<{ x: number; y: number }> {
  await page.locator("#map").scrollIntoViewIfNeeded();
  const box = (await page.locator("#map").boundingBox())!;
  return { x: box.x + 52 + (box.width - 104) / 3, y: box.y + box.height / 2 };
}
