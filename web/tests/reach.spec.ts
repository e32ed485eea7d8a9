// That everybody gets at everything: by keys, on a phone, in the dark, without motion.

import { expect, type Page, test } from "@playwright/test";
import { seconds, seenFirst, visit, watch } from "./common";

const CONTROLS = "button, input, select, textarea, a[href], [tabindex='0']";

/** What the Tab key has to reach, each by its place in the page. */
function controls(page: Page): Promise<number[]> {
  return page.evaluate((selector) => {
    const all = [...document.querySelectorAll<HTMLElement>(selector)];
    const isThere = (one: HTMLElement) => one.checkVisibility() && !one.matches(":disabled");
    return all.flatMap((one, place) => (isThere(one) ? [place] : []));
  }, CONTROLS);
}

test("the Tab key comes to every control, and it is seen where it is", async ({ page }) => {
  await visit(page);
  await page.locator("#play").click();
  await expect(page.locator("#play")).toHaveText("Play");
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await page.mouse.click(2, 2);
  const wanted = await controls(page);
  const reached: number[] = [];
  for (let press = 0; press < wanted.length; press++) {
    await page.keyboard.press("Tab");
    const [place, outline] = await page.evaluate((selector) => {
      const at = document.activeElement as HTMLElement;
      const all = [...document.querySelectorAll<HTMLElement>(selector)];
      return [all.indexOf(at), getComputedStyle(at).outlineStyle] as const;
    }, CONTROLS);
    reached.push(place);
    expect(outline, `control ${place}`).not.toBe("none");
  }
  expect(reached).toEqual(wanted);
});

test("keys act once, also where a button has the focus", async ({ page }) => {
  const wrong = watch(page);
  await visit(page);
  await page.locator("#zoom-in").focus();
  await page.keyboard.press("s");
  await expect(page.locator("#play")).toHaveText("Play");
  const before = await seconds(page);
  await page.keyboard.press("S");
  await expect.poll(() => seconds(page)).toBeGreaterThan(before);
  await page.keyboard.press("r");
  await expect(page.locator("body")).toHaveAttribute("data-run", "2");
  // A space presses the button that has the focus, once.
  await page.locator("#play").focus();
  await page.keyboard.press("Space");
  await expect(page.locator("#play")).toHaveText("Pause");
  await page.keyboard.press("Space");
  await expect(page.locator("#play")).toHaveText("Play");
  await page.locator("#step").focus();
  await page.keyboard.press("Space");
  await expect(page.locator("#play")).toHaveText("Play");
  // Letters that are typed stay letters.
  await page.locator("#delay").focus();
  await page.keyboard.press("r");
  await page.waitForTimeout(100);
  await expect(page.locator("body")).toHaveAttribute("data-run", "2");
  expect(wrong).toEqual([]);
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`on a phone of 360 pixels nothing is cut off, ${colorScheme}`, async ({ browser }) => {
    const context = await browser.newContext({ colorScheme, viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    const page = await context.newPage();
    for (const hash of ["", "#layout=line", "#layout=floor&motes=30", "#layout=placed&places=0,0;35,0;70,0&hops=99"]) {
      await page.goto("about:blank");
      await visit(page, hash);
      await page.locator("#play").tap();
      const beyond = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("body *")]
          .filter((one) => one.checkVisibility() && !one.closest(".unseen, pre, dialog"))
          .filter((one) => one.getBoundingClientRect().right > 360.5 || one.getBoundingClientRect().left < -0.5)
          .map((one) => one.id || one.outerHTML.slice(0, 80)),
      );
      expect(beyond).toEqual([]);
    }
    await page.locator("#edit").tap();
    const box = (await page.locator("#editor").boundingBox())!;
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(360);
    await context.close();
  });
}

test("who wants less motion begins it by hand", async ({ browser }) => {
  const context = await browser.newContext({ reducedMotion: "reduce" });
  const page = await context.newPage();
  const wrong = watch(page);
  await page.goto("/");
  await expect(page.locator("#progress")).toHaveText("paused, since this system asks for less motion");
  await expect(page.locator("#play")).toHaveText("Play");
  expect(await seconds(page)).toBe(0);
  await page.locator("#step").click();
  await expect.poll(() => seconds(page)).toBeGreaterThan(0);
  await page.locator("#play").click();
  await seenFirst(page);
  expect(wrong).toEqual([]);
  await context.close();
});
