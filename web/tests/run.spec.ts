// What a visitor does to a run while it goes on, and what the page does by itself.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page, test } from "@playwright/test";
import { BUILT, moteOne, seconds, seenFirst, visit, watch } from "./common";

/** A short run, as fast as it goes, up to its end. */
async function toItsEnd(page: Page, hash = "#kilobytes=5&speed=0"): Promise<void> {
  await page.goto(`/${hash}`);
  await expect(page.locator("#progress")).toContainText("the run is over");
  await expect(page.locator("#play")).toHaveText("Play");
}

for (const begin of ["Restart", "a knob", "Run this"]) {
  test(`after a run has ended, ${begin} runs from the beginning`, async ({ page }) => {
    const wrong = watch(page);
    await toItsEnd(page);
    await page.locator("#latest button").first().click();
    await expect(page.locator("#decoded")).toContainText("mac");
    await page.selectOption("#speed", "0.05");
    if (begin === "Restart") await page.locator("#restart").click();
    if (begin === "a knob") await page.locator("#hops").fill("2");
    if (begin === "Run this") {
      await page.locator("#edit").click();
      await page.locator("#use").click();
    }
    await expect(page.locator("body")).toHaveAttribute("data-run", "2");
    await expect(page.locator("#play")).toHaveText("Pause");
    await expect(page.locator("#decoded")).toHaveText("Choose a frame.");
    await expect(page.locator("#summary")).toBeHidden();
    await expect.poll(() => seconds(page)).toBeGreaterThan(0.01);
    expect(wrong).toEqual([]);
  });
}

test("a run that somebody paused stays paused when it begins anew", async ({ page }) => {
  await visit(page);
  await page.locator("#play").click();
  await page.locator("#restart").click();
  await expect(page.locator("body")).toHaveAttribute("data-run", "2");
  await expect(page.locator("#play")).toHaveText("Play");
});

test("the closing figures are the run's, and so is the summary", async ({ page }) => {
  const wrong = watch(page);
  await toItsEnd(page, "#kilobytes=20&speed=0");
  await expect(page.locator("#summary")).toBeVisible();
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-records").click()]);
  const records = readFileSync(await download.path(), "utf8").trim().split("\n");
  const flow = records.map((line) => JSON.parse(line)).find(({ record }) => record === "flow");
  const goodput = `${flow.goodput_kbps.toFixed(1)} kb/s`;
  await expect(page.locator("#summary-flows td").nth(1)).toHaveText(goodput);
  await expect(page.locator("#summary-flows td").nth(0)).toHaveText("20.0 kB");
  await expect(page.locator("#figures")).toContainText(`${goodput} over the whole run`);
  await expect(page.locator("#summary-run")).toContainText("sent again by links");
  expect(wrong).toEqual([]);
});

test("the speed is chosen by itself: slow at first, then faster", async ({ page }) => {
  await visit(page, "#kilobytes=0");
  await expect(page.locator("#speed")).toHaveValue("-1");
  const rate = async (ms: number) => {
    const before = await seconds(page);
    await page.waitForTimeout(ms);
    return (await seconds(page)) - before;
  };
  const slow = await rate(1_000);
  expect(slow).toBeLessThan(0.3);
  await expect.poll(() => rate(1_000), { timeout: 60_000 }).toBeGreaterThan(1);
});

test("nothing is waited for before the first frame", async ({ page }) => {
  // Motes that join are switched on within seconds: the first frame comes late.
  await visit(page, "#joining=1");
  const begun = await page.evaluate(() => performance.getEntriesByName("first-frame")[0].startTime);
  expect(begun).toBeLessThan(10_000);
  await expect(page.locator("#latest button").first()).toContainText("→");
});

test("a mote is clicked: its state, parent, queue, energy, neighbours", async ({ page }) => {
  const wrong = watch(page);
  await visit(page);
  const { x, y } = await moteOne(page);
  await page.mouse.click(x, y);
  await expect(page.locator("#mote-title")).toHaveText("Mote 1");
  const fact = (name: string) => page.locator("#mote-facts div", { has: page.locator("dt", { hasText: new RegExp(`^${name}`) }) }).locator("dd");
  await expect(fact("Parent")).toHaveText("0");
  await expect(fact("Queue")).toContainText("frames");
  await expect(fact("Energy")).toContainText(/[1-9]\d*\.\d mJ|0\.[1-9] mJ/);
  await expect(fact("Hears")).toContainText("0 (");
  await expect(fact("Radio")).not.toHaveText("–");
  await page.keyboard.press("r");
  expect(wrong).toEqual([]);
});

test("motes of RPL have a rank", async ({ page }) => {
  const text = 'duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 2\njoining = "rpl"\n[[flow]]\n';
  await visit(page);
  await page.locator("#edit").click();
  await page.locator("#toml").fill(text);
  await page.locator("#use").click();
  await page.selectOption("#speed", "0");
  await page.locator("#map").focus();
  await page.keyboard.press(".");
  await expect(page.locator("#mote-title")).toHaveText("Mote 1");
  await expect(page.locator("#mote-facts div", { hasText: "Rank" }).locator("dd")).toHaveText(/^\d{3,}$/);
});

test("a mote is switched off and on while the run goes on", async ({ page }) => {
  const wrong = watch(page);
  await visit(page, "#kilobytes=0&speed=1");
  const { x, y } = await moteOne(page);
  await page.mouse.click(x, y);
  await expect(page.locator("#mote-title")).toHaveText("Mote 1");
  await page.locator("#mote-power").click();
  await expect(page.locator("#notice")).toContainText("mote 1 was switched off");
  await expect(page.locator("#mote-facts")).toContainText("switched off");
  const delivered = async () => parseFloat((await page.locator("#progress").textContent()) ?? "");
  await page.waitForTimeout(500);
  const before = await delivered();
  await page.waitForTimeout(2_000);
  expect(await delivered()).toBe(before);
  await page.locator("#mote-power").click();
  await expect(page.locator("#mote-facts")).not.toContainText("switched off");
  await page.selectOption("#speed", "10");
  await expect.poll(delivered).toBeGreaterThan(before);
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
  // A frame of a run that was changed is read, too.
  await page.locator("#play").click();
  await page.locator("#latest button").first().click();
  await expect(page.locator("#decoded")).toContainText("mac");
  expect(wrong).toEqual([]);
});

test("frames are lost from a moment on", async ({ page }) => {
  await visit(page, "#kilobytes=0&speed=1");
  await page.locator("#mote-loss").fill("100");
  await page.locator("#mote-loss").press("Enter");
  await expect(page.locator("#notice")).toContainText("100 % of frames are lost");
  await expect(page.locator("#latest button").first()).toContainText("injected");
  await page.locator("#mote-loss").fill("300");
  await page.locator("#mote-loss").press("Enter");
  await expect(page.locator("#mote-loss")).toHaveAttribute("aria-invalid", "true");
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
});

test("a mote is added while the run goes on, and sends", async ({ page }) => {
  const wrong = watch(page);
  await visit(page, "#layout=line&hops=1&speed=1&kilobytes=0");
  await expect.poll(() => seconds(page)).toBeGreaterThan(2);
  const before = await seconds(page);
  await page.locator("#mote-add").click();
  await expect(page.locator("#notice")).toContainText("mote 2 was added, and sends");
  await expect(page.locator("#layout")).toHaveValue("placed");
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /3 motes; mote 2 is chosen/);
  // The run is the same one, and goes on.
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
  expect(await seconds(page)).toBeGreaterThanOrEqual(before);
  await expect(page.locator("#mote-facts")).not.toContainText("switched off");
  await expect(page.locator("#figures")).toContainText(/bulk 2 → host: window \d+ bytes, round trip [1-9]/, { timeout: 20_000 });
  // Frames of the mote that was added are read, too.
  await page.locator("#play").click();
  await page.locator("#latest button").first().click();
  await expect(page.locator("#decoded")).toContainText("mac");
  await page.locator("#restart").click();
  await expect(page.locator("body")).toHaveAttribute("data-run", "2");
  // Who sent before sends again, beside it; and so says the link.
  await expect(page.locator("#story")).toContainText("Motes 1 and 2 send");
  await expect(page.locator("#figures")).toContainText("bulk 1 → host");
  await expect(page.locator("#figures")).toContainText("bulk 2 → host");
  expect(new URL(page.url()).hash).toContain("senders=1,2");
  expect(wrong).toEqual([]);
});

test("a double click on a free place adds a mote there, and one on a mote does not", async ({ page }) => {
  const wrong = watch(page);
  await visit(page, "#speed=1&kilobytes=0");
  await expect.poll(() => seconds(page)).toBeGreaterThan(1);
  const { x, y } = await moteOne(page);
  await page.mouse.dblclick(x, y);
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /4 motes; mote 1 is chosen/);
  await page.mouse.dblclick(x, y + 60);
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /5 motes; mote 4 is chosen/);
  await expect(page.locator("#notice")).toContainText("mote 4 was added");
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
  expect(wrong).toEqual([]);
});

test("the link is copied", async ({ browser }) => {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  await visit(page, "#hops=2");
  await page.locator("#seed").fill("9");
  await page.locator("#copy-link").click();
  await expect(page.locator("#notice")).toContainText("The link is copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(new URL(copied).hash).toBe("#hops=2&seed=9");
  await context.close();
});

test("links to the project and the guide, and a picture for those who share the page", async ({ page }) => {
  await visit(page);
  await expect(page.locator("nav a")).toHaveText(["Project", "Guide"]);
  const picture = await page.locator('meta[property="og:image"]').getAttribute("content");
  const bytes = readFileSync(join(BUILT, picture!));
  // PNG: width and height behind the signature and the header's length and name.
  expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1200, 630]);
});
