// What goes wrong, and what the page then says and does.

import { rmSync, writeFileSync } from "node:fs";
import { expect, type Page, test } from "@playwright/test";
import { DEFAULTS, SPEED, write } from "../src/scenario";
import { BUILT, moteOne, seconds, serve, visit, watch } from "./common";

interface Refusal {
  error: string;
  fatal: boolean;
}

/** A page whose lab answers some questions so, by their names; `refuse` says which. */
async function withRefusals(page: Page): Promise<(wrong: Record<string, Refusal>) => Promise<void>> {
  await page.addInitScript(() => {
    const Real = Worker;
    window.Worker = class extends Real {
      override postMessage(message: { id: number; ask: { op: string } }): void {
        const refusals = (window as never as { refusals?: Record<string, Refusal> }).refusals;
        const wrong = refusals?.[message.ask.op];
        if (wrong) this.dispatchEvent(new MessageEvent("message", { data: { id: message.id, ...wrong } }));
        else super.postMessage(message);
      }
    };
  });
  return (wrong) => page.evaluate((refusals) => void Object.assign(window, { refusals }), wrong);
}

async function goesOn(page: Page): Promise<void> {
  const before = await seconds(page);
  await expect.poll(() => seconds(page)).toBeGreaterThan(before);
}

const DEAD = { error: "the lab failed, which is a mistake in it: here", fatal: true };

test("a question that is refused ends no run", async ({ page }) => {
  const wrong = watch(page);
  const refuse = await withRefusals(page);
  await visit(page);
  await refuse({ decode: { error: "there is no such frame", fatal: false } });
  await page.locator("#latest button").first().click();
  await expect(page.locator("#notice")).toHaveText(/There is no such frame/);
  await expect(page.locator("#again")).toBeHidden();
  await goesOn(page);
  await refuse({});
  await page.locator("#latest button").first().click();
  await expect(page.locator("#decoded")).toContainText("mac");
  await expect(page.locator("#notice")).toBeHidden();
  expect(wrong).toEqual([]);
});

for (const op of ["advance", "decode"]) {
  test(`a lab that dies of "${op}" is begun again by a button`, async ({ page }) => {
    const wrong = watch(page);
    const refuse = await withRefusals(page);
    await visit(page);
    await refuse({ [op]: DEAD });
    if (op === "decode") await page.locator("#latest button").first().click();
    await expect(page.locator("#notice")).toContainText("The lab failed, which is a mistake in it: here");
    await refuse({});
    // What is asked of it now is answered, too.
    await page.locator("#save-capture").click();
    await expect(page.locator("#notice")).toContainText("The lab failed");
    await page.locator("#again").click();
    await expect(page.locator("body")).toHaveAttribute("data-run", "2");
    await expect(page.locator("#notice")).toBeHidden();
    await goesOn(page);
    expect(wrong).toEqual([]);
  });
}

test("a lab that dies while a mote is moved", async ({ page }) => {
  const refuse = await withRefusals(page);
  await visit(page);
  const { x, y } = await moteOne(page);
  await refuse({ layout: DEAD });
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x, y + 40, { steps: 4 });
  await expect(page.locator("#notice")).toContainText("The lab failed");
  await refuse({});
  await page.mouse.up();
  await expect(page.locator("#layout")).toHaveValue("placed");
  await expect(page.locator("body")).toHaveAttribute("data-run", "2");
  await goesOn(page);
});

test("a lab that cannot be loaded says so, and can be begun again", async ({ browser }) => {
  let isThere = false;
  const { server, address } = await serve(BUILT, (path) => isThere || !path.endsWith(".wasm"));
  const context = await browser.newContext({ serviceWorkers: "block" });
  const page = await context.newPage();
  await page.goto(address);
  await expect(page.locator("#notice")).toContainText("The lab could not be loaded");
  isThere = true;
  await page.locator("#again").click();
  await expect(page.locator("#notice")).toBeHidden();
  await goesOn(page);
  await context.close();
  server.close();
});

test("a picture that fails is not the last one", async ({ page }) => {
  await visit(page);
  await page.evaluate(() => {
    const pen = CanvasRenderingContext2D.prototype;
    const { arc } = pen;
    let left = 3;
    pen.arc = function (...all) {
      if (left-- > 0) throw new Error("no picture");
      arc.apply(this, all);
    };
  });
  await goesOn(page);
});

test("a click on a mote chooses it, and begins nothing anew", async ({ page }) => {
  const wrong = watch(page);
  await visit(page);
  const { x, y } = await moteOne(page);
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 2, y + 2);
  await page.mouse.up();
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /mote 1 is chosen/);
  // Longer than a change takes to begin another run.
  await goesOn(page);
  await page.waitForTimeout(400);
  await expect(page.locator("#layout")).toHaveValue("chain");
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
  expect(wrong).toEqual([]);
});

test("a finger that the system takes away has moved no mote", async ({ browser }) => {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  const wrong = watch(page);
  await visit(page);
  const { x, y } = await moteOne(page);
  const finger = await context.newCDPSession(page);
  await finger.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] });
  for (const down of [20, 40]) {
    await finger.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x, y: y + down }] });
  }
  await finger.send("Input.dispatchTouchEvent", { type: "touchCancel", touchPoints: [] });
  await page.waitForTimeout(400);
  await expect(page.locator("#layout")).toHaveValue("chain");
  await expect(page.locator("body")).toHaveAttribute("data-run", "1");
  expect(wrong).toEqual([]);
  await context.close();
});

test("an address that says two things: the page says which it took", async ({ page }) => {
  const own = await write({ ...DEFAULTS }, SPEED, "[topology]\nchain = 2\n[[flow]]\n");
  await visit(page, `#hops=5&${own}`);
  const notice = page.locator("#notice");
  await expect(notice).toHaveText(/hops=5: the address holds a whole scenario, too, which counts/);
  await expect(page.locator("#own")).toBeVisible();
  await page.goto("about:blank");
  await visit(page, "#seed=3&seed=4&distance=20&hops=1&cit=1");
  await expect(notice).toContainText("seed=3: it is said again, and the last counts");
  await expect(notice).toContainText("distance=20: the other settings leave it without effect");
  await expect(notice).toContainText("cit=1: the other settings leave it without effect");
  await expect(page.locator("#seed")).toHaveValue("4");
  await expect(page.locator("#cit")).toBeDisabled();
  await page.locator("#hops").fill("2");
  await expect(page.locator("#cit")).toBeEnabled();
  await expect(page.locator("#cit")).toBeChecked();
  await expect(notice).toBeHidden();
});

test("a refusal names the knob", async ({ page }) => {
  // From everywhere on this floor the border router is heard: nobody passes on anything.
  await visit(page, "#layout=placed&places=0,0;10,0;0,10");
  await page.locator("#cit").check();
  await expect(page.locator("#notice")).toContainText("Relays keep frames in the radio: no mote has to pass on frames of others");
  await page.locator("#cit").uncheck();
  await expect(page.locator("#notice")).toBeHidden();
  await page.locator("#places").fill("0,0;500,0");
  await expect(page.locator("#notice")).toContainText("Mote 1 hears nobody: move it nearer to another");
});

test("a scenario or a file that the page does not take", async ({ page }, info) => {
  const wrong = watch(page);
  await visit(page);
  await page.locator("#edit").click();
  const error = page.locator("#toml-error");
  await page.locator("#toml").fill(`# ${"x".repeat(1_200_000)}`);
  await page.locator("#use").click();
  await expect(error).toHaveText("the scenario has 1.2 MB, but this page takes 1 MB");
  await page.locator("#toml").fill('[topology]\nmatrix = "gone.txt"\n[[flow]]\n');
  const file = info.outputPath("gone.txt");
  writeFileSync(file, "- -60\n-60 -\n");
  await page.locator("#files").setInputFiles(file);
  await page.locator("#use").click();
  await expect(page.locator("#own")).toBeVisible();
  await page.locator("#edit").click();
  rmSync(file);
  await page.locator("#use").click();
  await expect(error).toContainText("gone.txt cannot be read");
  await page.locator("#close").click();
  await goesOn(page);
  expect(wrong).toEqual([]);
});

test("a scenario that no address can hold still runs", async ({ page }) => {
  await page.addInitScript(() => {
    window.history.replaceState = () => {
      throw new DOMException("too long");
    };
  });
  await visit(page);
  await page.locator("#hops").fill("2");
  await expect(page.locator("#notice")).toContainText("The address does not hold this scenario: too long");
  await expect(page.locator("#map")).toHaveAttribute("aria-label", /3 motes/);
});
