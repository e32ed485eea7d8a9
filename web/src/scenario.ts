// The scenario that is shown: knobs, the address that holds them, and the TOML that the lab reads.

/** Where motes are. */
export type Layout = "chain" | "line" | "floor" | "placed";

/** All that the knobs say. */
export interface Knobs {
  layout: Layout;
  hops: number;
  distance: number;
  motes: number;
  places: [number, number][];
  /** Which of the motes with places send; none: the last one. */
  senders: number[];
  hidden: boolean;
  /** ms; null: the stack measures it. */
  delay: number | null;
  cit: boolean;
  tcphc: boolean;
  window: number;
  loss: number;
  kilobytes: number;
  joining: boolean;
  seed: number;
}

/** What the address says. */
export interface Said {
  knobs: Knobs;
  speed: number;
  /** A scenario of the visitor's own, which then takes the place of the knobs. */
  toml: string | null;
  /** What was wrong in it, a sentence each. */
  ignored: string[];
}

export const DEFAULTS: Readonly<Knobs> = {
  layout: "chain",
  hops: 3,
  distance: 35,
  motes: 30,
  places: [],
  senders: [],
  hidden: true,
  delay: null,
  cit: false,
  tcphc: false,
  window: 4,
  loss: 0,
  kilobytes: 20,
  joining: false,
  seed: 1,
};

/** Slow at first, then ever faster. */
export const AUTO = -1;
/** Virtual seconds a second; 0: as fast as it goes. */
export const SPEEDS: readonly [number, string][] = [
  [AUTO, "by itself"],
  [0.01, "1/100"],
  [0.05, "1/20"],
  [0.2, "1/5"],
  [1, "1"],
  [10, "10"],
  [0, "as fast as it goes"],
];
export const SPEED = AUTO;

/** A knob that is a number: its bounds. */
export const NUMBERS = {
  hops: { min: 1, max: 12, whole: true },
  distance: { min: 1, max: 100, whole: false },
  motes: { min: 4, max: 100, whole: true },
  delay: { min: 0, max: 2_000, whole: true },
  window: { min: 1, max: 32, whole: true },
  loss: { min: 0, max: 50, whole: false },
  kilobytes: { min: 0, max: 10_000, whole: true },
  seed: { min: 0, max: 1_000_000, whole: true },
} as const;
export type NumberKey = keyof typeof NUMBERS;

const FLAGS = ["hidden", "cit", "tcphc", "joining"] as const;
const LAYOUTS: readonly Layout[] = ["chain", "line", "floor", "placed"];
export const PLACES_MAX = 100;
const METRES_MAX = 10_000;

/** Layouts that a knob is of; those that are not here are of all. */
const OF: Partial<Record<keyof Knobs, readonly Layout[]>> = {
  hops: ["chain", "line"],
  distance: ["line"],
  motes: ["floor"],
  hidden: ["chain"],
  places: ["placed"],
  senders: ["placed"],
};

/** Whether a knob changes anything, as the others are. */
export function applies(key: keyof Knobs, knobs: Readonly<Knobs>): boolean {
  if (key === "cit") return relays(knobs);
  return OF[key]?.includes(knobs.layout) ?? true;
}

/** Whether a mote may have to pass on what others send: one that is alone has nobody to do it for. */
function relays({ layout, hops, places }: Readonly<Knobs>): boolean {
  if (layout === "floor") return true;
  return layout === "placed" ? places.length > 2 : hops > 1;
}

/** The lab's sentence about the scenario of the knobs, in words that are on the page. */
export function inWordsOfKnobs(sentence: string): string {
  const plain = sentence.replace(/^live\.toml: /, "");
  if (plain.startsWith("stack.forwarding ")) {
    return "Relays keep frames in the radio: no mote has to pass on frames of others; turn it off, or move motes apart";
  }
  return plain.replace(/^\[topology\] cannot work: no node on its channel has a link with node (\d+):.*/, "mote $1 hears nobody: move it nearer to another");
}

/** The number that `text` is, if the knob may have it. */
export function numberOf(key: NumberKey, text: string): number | undefined {
  const { min, max, whole } = NUMBERS[key];
  const value = Number(text);
  const fits = text.trim() !== "" && value >= min && value <= max && (!whole || Number.isInteger(value));
  return fits ? value : undefined;
}

/** What that knob may have, in words. */
export function allowed(key: NumberKey): string {
  const { min, max, whole } = NUMBERS[key];
  return `a ${whole ? "whole " : ""}number from ${min} to ${max}`;
}

/** Places as `x,y;x,y`, the border router first. */
export function placesOf(text: string): [number, number][] | undefined {
  const places = text.split(";").map((one) => one.split(",").map((part) => (part.trim() === "" ? NaN : Number(part))));
  const fit = places.every((one) => one.length === 2 && one.every((n) => Math.abs(n) <= METRES_MAX));
  if (!fit || places.length < 2 || places.length > PLACES_MAX) return undefined;
  return places as [number, number][];
}

/** Numbers of motes as `2,5`. */
function motesOf(text: string): number[] | undefined {
  const motes = text.split(",").map((one) => (/^\d{1,3}$/.test(one) ? Number(one) : 0));
  const fit = motes.every((mote, at) => mote >= 1 && mote < PLACES_MAX && motes.indexOf(mote) === at);
  return fit ? motes : undefined;
}

export function placesText(places: readonly [number, number][]): string {
  return places.map(([x, y]) => `${round(x)},${round(y)}`).join(";");
}

function round(metres: number): number {
  return Math.round(metres * 10) / 10;
}

/** Reads what stands behind the `#` of an address. */
export async function read(hash: string): Promise<Said> {
  const said: Said = { knobs: { ...DEFAULTS }, speed: SPEED, toml: null, ignored: [] };
  const given = new globalThis.Map<string, string>();
  const ignore = (key: string, value: string, why: string) => said.ignored.push(`${shown(key)}=${shown(value)}: ${why}`);
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const before = given.get(key);
    if (before !== undefined) ignore(key, before, "it is said again, and the last counts");
    given.set(key, value);
  }
  for (const [key, value] of given) {
    const why = await take(said, key, value);
    if (!why) continue;
    ignore(key, value, why);
    given.delete(key);
  }
  if (said.knobs.layout === "placed" && said.knobs.places.length < 2) {
    said.ignored.push("layout=placed: it needs places");
    said.knobs.layout = DEFAULTS.layout;
  }
  const { layout, places } = said.knobs;
  if (layout === "placed" && said.knobs.senders.some((mote) => mote >= places.length)) {
    ignore("senders", given.get("senders") ?? "", `there are motes 1 to ${places.length - 1}`);
    said.knobs.senders = [];
    given.delete("senders");
  }
  for (const [key, value] of given) {
    if (!Object.hasOwn(DEFAULTS, key)) continue;
    if (said.toml !== null) ignore(key, value, "the address holds a whole scenario, too, which counts");
    else if (!applies(key as keyof Knobs, said.knobs) && value !== "0") ignore(key, value, "the other settings leave it without effect");
  }
  return said;
}

/** Takes one setting; gives what is wrong with it. */
async function take(said: Said, key: string, value: string): Promise<string | undefined> {
  const { knobs } = said;
  if (key === "delay" && value === "auto") {
    knobs.delay = null;
    return undefined;
  }
  if (Object.hasOwn(NUMBERS, key)) {
    const number = numberOf(key as NumberKey, value);
    if (number === undefined) return `must be ${key === "delay" ? "auto or " : ""}${allowed(key as NumberKey)}`;
    knobs[key as NumberKey] = number;
    return undefined;
  }
  if (FLAGS.some((flag) => flag === key)) {
    if (value !== "0" && value !== "1") return "must be 0 or 1";
    knobs[key as (typeof FLAGS)[number]] = value === "1";
    return undefined;
  }
  switch (key) {
    case "layout":
      if (!LAYOUTS.some((layout) => layout === value)) return `must be ${LAYOUTS.join(", ")}`;
      knobs.layout = value as Layout;
      return undefined;
    case "places": {
      const places = placesOf(value);
      if (!places) return `must be 2 to ${PLACES_MAX} places in metres, such as 0,0;35,0`;
      knobs.places = places;
      return undefined;
    }
    case "senders": {
      const senders = motesOf(value);
      if (!senders) return "must be numbers of motes, each once, such as 2,5";
      knobs.senders = senders;
      return undefined;
    }
    case "speed": {
      const speed = SPEEDS.find(([number]) => speedText(number) === value);
      if (!speed) return `must be ${SPEEDS.map(([number]) => speedText(number)).join(", ")}`;
      said.speed = speed[0];
      return undefined;
    }
    case "toml": {
      const text = await unpack(value);
      if (text === undefined) return "is no scenario that this page has packed";
      said.toml = text;
      return undefined;
    }
    default:
      return "there is no such setting";
  }
}

/** What is behind the `#` for this: only what differs from the defaults. */
export async function write(knobs: Knobs, speed: number, toml: string | null): Promise<string> {
  const all = new URLSearchParams();
  if (toml !== null) {
    all.set("toml", await pack(toml));
  } else {
    for (const key of Object.keys(DEFAULTS) as (keyof Knobs)[]) {
      const text = applies(key, knobs) ? textOf(knobs, key) : textOf(DEFAULTS, key);
      if (text !== textOf(DEFAULTS, key)) all.set(key, text);
    }
  }
  if (speed !== SPEED) all.set("speed", speedText(speed));
  return all.toString().replaceAll("%2C", ",").replaceAll("%3B", ";");
}

function speedText(speed: number): string {
  return speed === AUTO ? "auto" : String(speed);
}

function textOf(knobs: Readonly<Knobs>, key: keyof Knobs): string {
  const value = knobs[key];
  if (value === null) return "auto";
  if (typeof value === "boolean") return value ? "1" : "0";
  if (key === "places") return placesText(knobs.places);
  return String(value);
}

/** The scenario as the lab reads it. */
export function toToml(knobs: Readonly<Knobs>): string {
  const keeps = knobs.cit && applies("cit", knobs);
  const lines = [
    'name = "Live page"',
    "duration_s = 600",
    "warmup_s = 0",
    `seed = ${knobs.seed}`,
    "",
    "[topology]",
    ...topology(knobs),
    `joining = "${knobs.joining ? "advertised" : "static"}"`,
  ];
  if (knobs.layout !== "chain") lines.push("", "[path_loss]", `exponent = ${EXPONENT}`);
  const radio = [];
  // Only some radios can keep a frame until the next hop is free.
  if (keeps) radio.push('profile = "nrf52840"');
  if (knobs.loss > 0) radio.push(`frame_loss = ${Number((knobs.loss / 100).toFixed(6))}`);
  if (radio.length > 0) lines.push("", "[radio]", ...radio);
  lines.push("", "[stack]", `window_segments = ${knobs.window}`);
  if (knobs.delay !== null) lines.push(`retry_delay_ms = ${knobs.delay}`);
  if (keeps) lines.push('forwarding = "cit"');
  lines.push(`compression = "${knobs.tcphc ? "tcphc" : "none"}"`);
  for (const from of senders(knobs)) {
    lines.push("", "[[flow]]", `from = ${from}`, 'to = "host"');
    if (knobs.kilobytes > 0) lines.push(`bytes = ${knobs.kilobytes * 1000}`);
  }
  return lines.join("\n") + "\n";
}

/**
 * Motes that send a file each: the last one; on a floor, where numbers say nothing of distance, three of all;
 * of motes with places, those that were said to, as far as they are there.
 */
export function senders({ layout, hops, motes, places, senders }: Readonly<Knobs>): number[] {
  if (layout === "floor") return [motes, Math.round(0.6 * motes), Math.round(0.2 * motes)];
  if (layout !== "placed") return [hops];
  const own = senders.filter((mote) => mote < places.length);
  return own.length > 0 ? own : [places.length - 1];
}

/** These knobs with its motes at places of their own, who send as before. */
export function placedAt(knobs: Readonly<Knobs>, places: [number, number][]): Knobs {
  const before = senders(knobs);
  const isLast = before.length === 1 && before[0] === places.length - 1;
  return { ...knobs, layout: "placed", places, senders: isLast ? [] : before };
}

/** These knobs with a mote more at a place, which sends besides. */
export function withMote(knobs: Readonly<Knobs>, places: [number, number][], place: [number, number]): Knobs {
  return { ...knobs, layout: "placed", places: [...places, place], senders: [...senders(knobs), places.length] };
}

/** What happens in the scenario of the knobs, for who has just come. */
export function story(knobs: Readonly<Knobs>): string {
  const from = senders(knobs);
  const who = from.length > 1 ? `Motes ${from.join(", ").replace(/, (\d+)$/, " and $1")} send` : `Mote ${from[0]} sends`;
  const file = knobs.kilobytes > 0 ? ` a file of ${knobs.kilobytes} kB${from.length > 1 ? " each" : ""}` : " without end";
  return `${who}${file}, over TCP, to a host behind the router.${relays(knobs) ? ` The motes between pass ${from.length > 1 ? "their" : "its"} frames on.` : ""}`;
}

function topology(knobs: Readonly<Knobs>): string[] {
  switch (knobs.layout) {
    case "chain":
      return [`chain = ${knobs.hops}`, ...(knobs.hidden ? [] : ["hidden = false"])];
    case "floor":
      return [`floor = ${knobs.motes}`, "floor_hops = 3"];
    case "line":
    case "placed":
      return [`positions = [${places(knobs).map(([x, y]) => `[${round(x)}, ${round(y)}]`).join(", ")}]`];
  }
}

/** Where motes are in layouts that say so in metres. */
export function places(knobs: Readonly<Knobs>): [number, number][] {
  if (knobs.layout === "placed") return knobs.places;
  return Array.from({ length: knobs.hops + 1 }, (_, node): [number, number] => [node * knobs.distance, 0]);
}

async function pack(text: string): Promise<string> {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(packed: string): Promise<string | undefined> {
  try {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const plain = await through(bytes, new DecompressionStream("deflate-raw"));
    return new TextDecoder("utf-8", { fatal: true }).decode(plain);
  } catch {
    return undefined;
  }
}

/** The bytes behind a filter, unless they are more than any scenario has. */
async function through(bytes: Uint8Array<ArrayBuffer>, filter: CompressionStream | DecompressionStream) {
  const reader = new Blob([bytes]).stream().pipeThrough(filter).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    length += next.value.length;
    if (length > TEXT_MAX) throw new Error(`it is longer than ${TEXT_MAX / 1e6} MB`);
    parts.push(next.value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The beginning of what somebody wrote, for a sentence. */
function shown(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/** Of path loss indoors: a link is good up to some 45 m, and heard up to 55. */
const EXPONENT = 3.5;
/** Bytes that a scenario may have here, and what an address holds of it. */
export const TEXT_MAX = 1_000_000;
const SHOWN_MAX = 40;
