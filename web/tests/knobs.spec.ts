// That no combination of knobs is a scenario which the lab refuses in words that are not on the page.

import { readFileSync } from "node:fs";
import { expect, test } from "@playwright/test";
import * as lab from "../generated/motet_web.js";
import { DEFAULTS, inWordsOfKnobs, type Knobs, story, toToml } from "../src/scenario";

/** Each value of each knob with each of the layouts; the other knobs as they are at first. */
const LAYOUTS: Partial<Knobs>[] = [
  { layout: "chain", hops: 1 },
  { layout: "chain", hops: 12 },
  { layout: "line", hops: 1 },
  { layout: "line", hops: 3 },
  { layout: "line", hops: 3, distance: 1 },
  { layout: "line", hops: 3, distance: 100 },
  { layout: "floor", motes: 4 },
  { layout: "floor", motes: 30 },
  { layout: "floor", motes: 100 },
  { layout: "placed", places: [[0, 0], [20, 0]] },
  { layout: "placed", places: [[0, 0], [35, 0], [70, 0]] },
];
const TURNED: Partial<Knobs>[] = [
  {},
  { hidden: false },
  { delay: 0 },
  { delay: 2_000 },
  { cit: true },
  { cit: true, tcphc: true, joining: true },
  { tcphc: true },
  { window: 1 },
  { window: 32 },
  { loss: 0.001 },
  { loss: 50 },
  { kilobytes: 0 },
  { kilobytes: 10_000 },
  { joining: true },
  { seed: 1_000_000 },
];

test("the lab takes what the knobs say, or the page says why not", () => {
  lab.initSync({ module: readFileSync(new URL("../generated/motet_web_bg.wasm", import.meta.url)) });
  let taken = 0;
  for (const layout of LAYOUTS) {
    for (const turned of TURNED) {
      const knobs: Knobs = { ...DEFAULTS, ...layout, ...turned };
      const what = JSON.stringify({ ...layout, ...turned });
      try {
        lab.layout(toToml(knobs), "live.toml", new lab.Files());
        taken++;
      } catch (error) {
        const said = inWordsOfKnobs((error as Error).message);
        expect(said, what).toMatch(/^(Relays keep frames in the radio: .*|mote \d+ hears nobody: .*)$/);
      }
      expect(story(knobs), what).toMatch(/^Motes? .* sends? .*\.$/);
    }
  }
  // All but lines whose motes are too far apart, and relays where nobody is one.
  expect(taken).toBeGreaterThan(0.8 * LAYOUTS.length * TURNED.length);
});
