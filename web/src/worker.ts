// Owns the lab, so that a long step never stops the page from answering.

import init, {
  Files as LabFiles,
  Lab,
  fate_names,
  layout as layoutOf,
  panicked,
  sort_names,
  state_names,
  type Layout as LabLayout,
} from "../generated/motet_web.js";
import type { Answer, Ask, Files, Layout, Moment, Opened } from "./protocol";

const ready = init().then(
  () => undefined,
  (error: unknown) => `the lab could not be loaded: ${error instanceof Error ? error.message : String(error)}`,
);
let lab: Lab | undefined;

addEventListener("message", (event: MessageEvent<{ id: number; ask: Ask }>) => {
  const { id, ask } = event.data;
  void answer(id, ask).then((said) => postMessage(said));
});

async function answer(id: number, ask: Ask): Promise<Answer> {
  const lack = await ready;
  if (lack !== undefined) return { id, error: lack, fatal: true };
  try {
    return { id, value: act(ask) };
  } catch (error) {
    return { id, ...wrong(error) };
  }
}

/** What the lab refused is its own sentence; all else is a mistake of ours, or too little memory. */
function wrong(error: unknown): { error: string; fatal: boolean } {
  if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) {
    return { error: error instanceof Error ? error.message : String(error), fatal: false };
  }
  const place = panicked().replace(/\s+/g, " ") || error.message;
  return { error: `the lab failed, which is a mistake in it: ${place}`, fatal: true };
}

function act(ask: Ask): Opened | Layout | Moment | string | Uint8Array {
  switch (ask.op) {
    case "open":
      return open(ask.text, ask.name, ask.files);
    case "layout":
      return withFiles(ask.files, (files) => plain(layoutOf(ask.text, ask.name, files)));
    case "advance":
      return advance(opened(), ask.to, ask.budget);
    case "decode":
      return opened().decode(ask.from, ask.start, ask.length);
    case "capture":
      return opened().capture();
    case "records":
      return opened().records();
  }
}

function opened(): Lab {
  if (!lab) throw new Error("no scenario is open");
  return lab;
}

function withFiles<T>(files: Files, use: (files: LabFiles) => T): T {
  const given = new LabFiles();
  try {
    for (const [name, bytes] of Object.entries(files)) given.add(name, bytes);
    return use(given);
  } finally {
    given.free();
  }
}

function open(text: string, name: string, files: Files): Opened {
  lab?.free();
  lab = undefined;
  const own = withFiles(files, (given) => new Lab(text, name, given));
  lab = own;
  return {
    title: own.title,
    runs: own.runs,
    seconds: own.duration_s,
    flows: own.flow_names(),
    layout: plain(own.layout()),
    sorts: sort_names(),
    fates: fate_names(),
    states: state_names(),
  };
}

function plain(layout: LabLayout): Layout {
  const { nodes, positions, links } = layout;
  layout.free();
  return { nodes, positions, links };
}

function advance(own: Lab, to: number, budget?: number): Moment {
  const points: Float64Array[] = [];
  let over = false;
  const look = () => points.push(Float64Array.of(own.now_us, ...own.flows()));
  if (budget === undefined) {
    over = own.advance(to);
    look();
  } else {
    const until = performance.now() + budget;
    do {
      over = own.advance(Math.min(own.now_us + CHUNK, to));
      look();
    } while (!over && own.now_us < to && performance.now() < until);
  }
  return {
    now: own.now_us,
    joined: own.joined_us,
    over,
    missed: own.missed,
    frames: own.take_frames(),
    turns: own.take_turns(),
    nodes: own.nodes(),
    points,
  };
}

/** Virtual time between two looks at the clock and the curves, µs. */
const CHUNK = 20_000;
