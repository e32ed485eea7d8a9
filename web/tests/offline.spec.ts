// What a browser keeps of the page: without a network, beside other pages, and once there is a newer one.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, type Page, test } from "@playwright/test";
import { BUILT, seenFirst, serve, visit } from "./common";

/** Waits until `what` holds in the page. Playwright's waitForFunction() takes a promise for a yes, so it cannot ask this. */
async function until(page: Page, what: () => Promise<boolean>): Promise<void> {
  await expect.poll(() => page.evaluate(what)).toBe(true);
}

async function isKept(page: Page): Promise<void> {
  await until(page, async () => (await navigator.serviceWorker.ready).active?.state === "activated");
}

/** Names of what is kept, and the icon of the folder that the page is in. */
function kept(page: Page): Promise<{ names: string[]; icon: string | undefined }> {
  return page.evaluate(async () => {
    const names = await caches.keys();
    const own = names.find((name) => name.includes(new URL("./", location.href).href));
    // caches.open() would make a cache anew that the worker has let go since its name was read.
    const icon = own === undefined ? undefined : await caches.match("./icon.svg", { cacheName: own });
    return { names, icon: await icon?.text() };
  });
}

test("without a network", async ({ browser }) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await visit(page);
  await isKept(page);
  await context.setOffline(true);
  await page.reload();
  await seenFirst(page);
  await context.close();
});

test("two folders of one server, and a newer page in one of them", async ({ browser }) => {
  const root = mkdtempSync(join(tmpdir(), "motet-web-"));
  const { server, address } = await serve(root);
  for (const folder of ["one", "two"]) cpSync(BUILT, join(root, folder), { recursive: true });
  const context = await browser.newContext();
  const open = async (folder: string) => {
    const page = await context.newPage();
    await page.goto(`${address}${folder}/`);
    await seenFirst(page);
    await isKept(page);
    return page;
  };
  const two = await open("two");
  await two.evaluate(async () => void (await caches.open("somebody else's")));
  const one = await open("one");
  const before = await kept(one);
  expect(before.names).toHaveLength(3);
  expect(before.icon).toContain("<svg");
  // A newer build: a file and with it the worker have changed.
  const icon = `${before.icon}<!-- newer -->`;
  writeFileSync(join(root, "one/icon.svg"), icon);
  const worker = join(root, "one/sw.js");
  writeFileSync(worker, readFileSync(worker, "utf8").replace(/registration\.scope \+ " ";\nconst NAME = OWN \+ "/, "$&newer"));
  await one.evaluate(async () => void (await (await navigator.serviceWorker.getRegistration())!.update()));
  await until(one, async () => (await navigator.serviceWorker.getRegistration())!.waiting?.state === "installed");
  // The page that is open keeps what it was made with.
  await expect.poll(async () => (await kept(one)).names.length).toBe(4);
  await one.close();
  // The browser lets go of a closed page a little later; a page opened before that keeps the older build. What another
  // page sees of the registration comes late: a worker that waits may still be installing there. So the caches tell.
  await until(two, async () => (await caches.keys()).length === 3);
  const again = await open("one");
  expect((await kept(again)).names).toHaveLength(3);
  const after = await kept(again);
  expect(after.icon).toBe(icon);
  expect(after.names).toContain("somebody else's");
  expect(after.names.filter((name) => name.includes(`${address}two/`))).toHaveLength(1);
  await context.close();
  server.close();
  rmSync(root, { recursive: true });
});
