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
import type { Added, Answer, Ask, Files, Layout, Moment, Opened } from "./protocol";

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
    return { id, value: await act(ask) };
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

type Value = Opened | Layout | Added | Moment | string | Uint8Array | null;

async function act(ask: Ask): Promise<Value> {
  switch (ask.op) {
    case "open":
      return open(ask.text, ask.name, ask.files);
    case "layout":
      return withFiles(ask.files, (files) => plain(layoutOf(ask.text, ask.name, files)));
    case "advance":
      return advance(opened(), ask.to, ask.budget);
    case "switch":
      opened().switch(ask.node, ask.on);
      return null;
    case "air":
      return withFiles(ask.files, (files) => plain(opened().take_air(ask.text, ask.name, files)));
    case "add":
      return withFiles(ask.files, (files) => ({
        layout: plain(opened().add_mote(ask.text, ask.name, files)),
        flows: opened().flow_names(),
      }));
    case "loss":
      opened().set_frame_loss(ask.share);
      return null;
    case "decode":
      return explain(opened(), ask.from, ask.start, ask.length);
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

/** Reads captures and explains frames: loaded when it is first needed. */
const explainer = () =>
  import("../generated/motet_web_explain.js").then(async (module) => {
    await module.default();
    return module;
  });

async function explain(own: Lab, from: number, start: number, length: number): Promise<string> {
  const frame = own.captured_frame(from, start, length);
  const { capture, bytes } = frame;
  frame.free();
  const text = (await explainer()).explain(capture, start, bytes);
  if (text === undefined) throw new Error("there is no such frame");
  return text;
}

async function withFiles<T>(files: Files, use: (files: LabFiles) => T): Promise<T> {
  const given = new LabFiles();
  try {
    for (const [name, whole] of Object.entries(files)) {
      const bytes = await unzipped(whole);
      given.add(name, bytes);
      if (isCapture(bytes)) await addFrames(given, name, bytes);
    }
    return use(given);
  } finally {
    given.free();
  }
}

/** Traces are published gzipped; the lab here reads plain ones. What cannot be unzipped is left to the lab to refuse. */
async function unzipped(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    const plain = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip"));
    const reader = plain.getReader();
    const parts: BlobPart[] = [];
    let length = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      length += next.value.length;
      if (length > PLAIN_MAX) return bytes;
      parts.push(next.value as Uint8Array<ArrayBuffer>);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  } catch {
    return bytes;
  }
}

/** The lab reads no captures by itself: attackers play back the frames in them. */
async function addFrames(given: LabFiles, name: string, bytes: Uint8Array): Promise<void> {
  const { frames } = await explainer();
  try {
    given.add_frames(name, frames(bytes));
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw error;
    given.refuse(name, error instanceof Error ? error.message : String(error));
  }
}

/** Whether a file begins as pcap's and pcapng's do. */
function isCapture(bytes: Uint8Array): boolean {
  if (bytes.length < 4) return false;
  return MAGICS.has(new DataView(bytes.buffer, bytes.byteOffset).getUint32(0));
}

async function open(text: string, name: string, files: Files): Promise<Opened> {
  lab?.free();
  lab = undefined;
  const own = await withFiles(files, (given) => new Lab(text, name, given));
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
/** Bytes of a trace, unzipped: as many as the command reads. */
const PLAIN_MAX = 64 << 20;
/** Of pcap with microseconds and nanoseconds, in both orders of bytes, and of pcapng. */
const MAGICS = new Set([0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a]);
