// The page as a visitor has it. What is measured is printed, and never a verdict: machines differ, and are shared.

import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type BrowserContext, expect, type Page, test } from "@playwright/test";
import { moteOne, seconds, visit, watch } from "./common";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

function figure(what: string, value: number, unit: string): void {
  const line = JSON.stringify({ what, value: Math.round(value * 100) / 100, unit });
  if (process.env.MOTET_WEB_FIGURES) appendFileSync(process.env.MOTET_WEB_FIGURES, `${line}\n`);
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const results = await (window as never as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run();
    return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
}

test("the first view: a file crosses three hops, slowly at first", async ({ page }) => {
  const wrong = watch(page);
  await visit(page);
  const first = await page.evaluate(() => performance.getEntriesByName("first-frame")[0].startTime);
  figure("first frame seen after load", first / 1000, "s");
  await expect(page.locator("#speed")).toHaveValue("-1");
  await expect(page.locator("#hops")).toHaveValue("3");
  await expect(page.locator("#progress")).toContainText("of 20 kB delivered");
  await expect(page.locator("#latest button").first()).toContainText("→");
  await expect(page.locator("#notice")).toBeHidden();
  await page.selectOption("#speed", "0");
  await expect(page.locator("#progress")).toContainText("20.0 of 20 kB delivered; the run is over");
  await expect(page.locator("#play")).toHaveText("Play");
  await page.selectOption("#speed", "0.05");
  await page.locator("#play").click();
  await expect(page.locator("body")).toHaveAttribute("data-run", "2");
  await expect(page.locator("#progress")).toContainText("0.0 of 20 kB delivered");
  await expect(page.locator("#play")).toHaveText("Pause");
  expect(wrong).toEqual([]);
});

test("fifty motes", async ({ page }) => {
  const wrong = watch(page);
  await visit(page, "#layout=floor&motes=49&kilobytes=0&speed=0.2");
  const rate = await page.evaluate(
    () =>
      new Promise<number>((give) => {
        let frames = 0;
        const begun = performance.now();
        const count = (now: number) => {
          frames++;
          if (now - begun < 3000) requestAnimationFrame(count);
          else give((frames * 1000) / (now - begun));
        };
        requestAnimationFrame(count);
      }),
  );
  figure("frame rate with 50 motes", rate, "frames/s");
  expect(rate).toBeGreaterThan(0);
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /50 motes/);
  expect(wrong).toEqual([]);
});

test("no violation of accessibility: light, dark, phone, dialog", async ({ browser }) => {
  const looks = [
    { colorScheme: "light" as const },
    { colorScheme: "dark" as const },
    { colorScheme: "light" as const, viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
  ];
  for (const look of looks) {
    // The judge is a script that the page's policy would refuse.
    const context = await browser.newContext({ ...look, bypassCSP: true, serviceWorkers: "block" });
    const page = await context.newPage();
    await visit(page, "#hops=99");
    await page.locator("#play").click();
    expect(await violations(page)).toEqual([]);
    await page.locator("#edit").click();
    expect(await violations(page)).toEqual([]);
    await context.close();
  }
});

test("keyboard alone", async ({ page }) => {
  const wrong = watch(page);
  await visit(page);
  // Behind the links to the project and the guide.
  for (let press = 0; press < 3; press++) await page.keyboard.press("Tab");
  await expect(page.locator("#play")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#play")).toHaveText("Play");
  await page.locator("#timeline").focus();
  const before = await seconds(page);
  await page.keyboard.press("s");
  await expect.poll(() => seconds(page)).toBeGreaterThan(before);
  await page.keyboard.press(",");
  await expect(page.locator("#decoded")).toContainText("mac");
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowLeft");
  await expect(page.locator("#follow")).toHaveAttribute("aria-pressed", "false");
  await page.keyboard.press("End");
  await expect(page.locator("#follow")).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("Space");
  await expect(page.locator("#play")).toHaveText("Pause");
  await page.locator("#map").focus();
  await page.keyboard.press(".");
  await page.keyboard.press("Shift+ArrowDown");
  await expect(page.locator("#layout")).toHaveValue("placed");
  await expect(page.locator("#places")).toHaveValue("0,0;35,10;70,0;105,0");
  await expect.poll(() => new URL(page.url()).hash).toContain("places=0,0;35,10;70,0;105,0");
  await page.keyboard.press("r");
  expect(wrong).toEqual([]);
});

test("a mote is dragged, and a frame is clicked", async ({ page }) => {
  const wrong = watch(page);
  await visit(page, "#layout=line&hops=2&speed=0.2");
  const box = (await page.locator("#map").boundingBox())!;
  // Node 1 is in the middle of a line of three.
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2 + 40, { steps: 5 });
  await page.mouse.up();
  await expect(page.locator("#layout")).toHaveValue("placed");
  await expect(page.locator("#places")).toHaveValue(/^0,0;35,[1-9][\d.]*;70,0$/);
  // The run goes on in the new air.
  await expect(page.locator("#notice")).toContainText("a mote was moved");
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
  await expect.poll(() => seconds(page)).toBeGreaterThan(0.15);
  await page.locator("#play").click();
  await page.locator("#latest button").first().click();
  await expect(page.locator("#decoded")).toContainText("mac");
  // Wide enough for any pause of TCP's.
  await page.locator("#zoom-out").click();
  await page.locator("#zoom-out").click();
  await page.locator("#timeline").scrollIntoViewIfNeeded();
  const rows = (await page.locator("#timeline").boundingBox())!;
  await page.locator("#decoded").evaluate((place) => (place.textContent = ""));
  // Somewhere in the shown span each mote sends or gets something.
  for (let share = 0.15; share < 0.85; share += 0.007) {
    await page.mouse.click(rows.x + rows.width * share, rows.y + 24 + 1.5 * 24);
    if ((await page.locator("#decoded").textContent()) !== "") break;
  }
  await expect(page.locator("#decoded")).toContainText("mac");
  expect(wrong).toEqual([]);
});

/** Mote 1 of three hops, down by 60 pixels. */
async function dragByFinger(page: Page): Promise<void> {
  const { x, y } = await moteOne(page);
  const finger = await page.context().newCDPSession(page);
  await finger.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] });
  for (const down of [20, 40, 60]) {
    await finger.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x, y: y + down }] });
  }
  await finger.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
}

test("a phone", async ({ browser }) => {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  const wrong = watch(page);
  await visit(page);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(360);
  await page.locator("#play").tap();
  await expect(page.locator("#play")).toHaveText("Play");
  await expect(page.locator("#map")).toBeInViewport();
  await page.locator("#latest button").first().tap();
  await expect(page.locator("#decoded")).toContainText("mac");
  await dragByFinger(page);
  await expect(page.locator("#layout")).toHaveValue("placed");
  expect(wrong).toEqual([]);
  await context.close();
});

test("dark where the visitor wants it", async ({ browser }) => {
  const ground = async (colorScheme: "dark" | "light") => {
    const context: BrowserContext = await browser.newContext({ colorScheme });
    const page = await context.newPage();
    await visit(page);
    const colour = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await context.close();
    return colour.match(/\d+/g)!.slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  };
  expect(await ground("dark")).toBeLessThan(150);
  expect(await ground("light")).toBeGreaterThan(600);
});

test("an address with nonsense: the page says what it ignored", async ({ page }) => {
  const wrong = watch(page);
  await visit(page, "#hops=99&colour=red&loss=x&delay=-1&seed=7&toml=!!&layout=placed&places=1,2;NaN,3&speed=fast");
  const notice = page.locator("#notice");
  for (const part of [
    "hops=99: must be a whole number from 1 to 12",
    "colour=red: there is no such setting",
    "loss=x: must be a number from 0 to 50",
    "delay=-1: must be auto or a whole number from 0 to 2000",
    "toml=!!: is no scenario that this page has packed",
    "places=1,2;NaN,3: must be 2 to 100 places",
    "layout=placed: it needs places",
    "speed=fast: must be auto, 0.01",
  ]) {
    await expect(notice).toContainText(part);
  }
  await expect(page.locator("#seed")).toHaveValue("7");
  await expect(page.locator("#hops")).toHaveValue("3");
  expect(wrong).toEqual([]);
});

test("the address holds the knobs", async ({ page }) => {
  await visit(page);
  await page.locator("#hops").fill("2");
  await page.locator("#delay").fill("40");
  await page.locator("#tcphc").check();
  await page.locator("#cit").check();
  await page.locator("#loss").fill("2.5");
  await expect.poll(() => new URL(page.url()).hash).toBe("#hops=2&delay=40&cit=1&tcphc=1&loss=2.5");
  await page.reload();
  await visit(page, new URL(page.url()).hash);
  await expect(page.locator("#delay")).toHaveValue("40");
  await expect(page.locator("#cit")).toBeChecked();
  await expect(page.locator("#notice")).toBeHidden();
  await page.locator("#hops").fill("50");
  await expect(page.locator("#knob-error")).toContainText("Hops must be a whole number from 1 to 12");
});

test("a scenario of the visitor's own", async ({ page }) => {
  await visit(page);
  await page.locator("#edit").click();
  await page.locator("#toml").fill("[topology]\nchains = 3\n[[flow]]\n");
  await page.locator("#use").click();
  await expect(page.locator("#toml-error")).toContainText("chains");
  await page.selectOption("#example", "ble-six.toml");
  await page.locator("#use").click();
  await expect(page.locator("#own")).toBeVisible();
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /7 motes/);
  await expect.poll(() => new URL(page.url()).hash).toContain("toml=");
  await page.reload();
  await expect(page.locator("#own")).toBeVisible();
  await expect(page.locator("#notice")).toBeHidden();
  await page.locator("#back").click();
  await expect(page.locator("#own")).toBeHidden();
});

test("what is saved", async ({ page }) => {
  await visit(page);
  const saved = async (button: string) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(button).click()]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const scenario = await saved("#save-scenario");
  expect(scenario.name).toBe("live.toml");
  expect(scenario.bytes.toString()).toContain("chain = 3");
  const capture = await saved("#save-capture");
  expect(capture.name).toBe("air.pcap");
  expect(capture.bytes.length).toBeGreaterThan(24);
  const records = await saved("#save-records");
  expect(JSON.parse(records.bytes.toString().split("\n")[0])).toHaveProperty("record", "run");
});
