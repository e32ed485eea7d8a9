// The page: one run at a time, its clock, and what is shown of it.

import { Curves } from "./curves";
import { EXAMPLES } from "./examples";
import { filesOf, save } from "./files";
import { type Frame, History } from "./history";
import { KnobForm } from "./knobs";
import { Failed, LabWorker } from "./lab";
import { Latest, line } from "./latest";
import { Map } from "./map";
import { MotePanel, placeBeside } from "./mote";
import { Pace } from "./pace";
import { FLOW, type Files, type Moment, type Opened } from "./protocol";
import { AUTO, DEFAULTS, inWordsOfKnobs, type Knobs, placedAt, places, PLACES_MAX, read, SPEED, SPEEDS, senders, story, toToml, withMote, write } from "./scenario";
import { closing, show as showSummary, type Summary, summaryOf } from "./summary";
import { clock, swatches, theme } from "./theme";
import { Timeline } from "./timeline";

function part<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const map = new Map(part("map"));
const timeline = new Timeline(part("rows"), part("timeline"), part("spacer"));
const curves = new Curves([...document.querySelectorAll<HTMLElement>(".curve")]);
const form = new KnobForm(part("knobs"));
const mote = new MotePanel(part("mote"));
const pace = new Pace();
const latest = new Latest(part("latest"));

/** What is run. */
let knobs: Knobs = { ...DEFAULTS };
let toml: string | null = null;
let files: Files = {};

/** The run. */
let lab = new LabWorker();
let opened: Opened | undefined;
let history = new History(0, [], [], []);
let nodes: Float64Array = new Float64Array();
let bytes: number[] = [];
/** Counts openings, so that answers of a run that is gone are known. */
let run = 0;

/** Time, µs: what is shown, and how far the lab is. */
let shown = 0;
let done = 0;
let over = false;
let busy = false;
let missed = 0;
/** A visitor who wants less motion on the screen starts the run by hand. */
const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
let plays = !isCalm;
let speed = SPEED;
/** Virtual seconds a second at the moment; 0: as fast as it goes. */
let rate = 0;
/** Whether the run paused because it was over, and not because somebody paused it. */
let rests = false;
/** Whether the time before the first frame was left out. */
let skipped = false;
/** The mote that is chosen once the next run has begun. */
let chosenNext: number | undefined;
/** What the run gave, once it is over and seen to its end. */
let summary: Summary | undefined;
let drawnAt = 0;
let toldAt = 0;
let colours = theme();

/** The lab is so far ahead of what is shown that a frame under way has a known end, µs. */
const AHEAD = 20_000;
/** How long what became of a frame stays on the map, ms of wall-clock time. */
const FADE = 900;
/** Wall-clock time that the lab has at a stretch where it goes as fast as it can, ms. */
const BUDGET = 40;
/** How often texts change, ms. */
const TELL_EVERY = 250;

function text(): string {
  return toml ?? toToml(knobs);
}

function name(): string {
  return toml === null ? "live.toml" : "scenario.toml";
}

/** The lab, or a new one where that is gone. */
function living(): LabWorker {
  if (lab.isOver) lab = new LabWorker();
  return lab;
}

/** Opens the scenario as it is now, and begins at its beginning. */
async function restart(): Promise<void> {
  const own = ++run;
  // A run that has ended by itself has paused nobody.
  if (rests) setPlaying(true);
  // Until the next run is there, nothing goes on.
  opened = undefined;
  // A lab that is long at work for the former run is not waited for.
  if (lab.silence > SILENCE_MAX) lab.end(new Failed("the run was begun anew"));
  try {
    const answer = await living().ask({ op: "open", text: text(), name: name(), files });
    if (own === run) begin(answer);
  } catch (error) {
    if (own === run) refuse(error);
  }
}

function begin(answer: Opened): void {
  opened = answer;
  // Which run is shown, for whoever waits for the next.
  document.body.dataset.run = String(run);
  map.letGo();
  history = new History(answer.layout.nodes, answer.fates, answer.sorts, answer.states);
  [nodes, bytes] = [new Float64Array(), []];
  [shown, done, missed, over, busy, skipped] = [0, 0, 0, false, false, false];
  summary = undefined;
  part("summary").hidden = true;
  pace.begin();
  rate = speed === AUTO ? pace.next(0) : speed;
  timeline.selected = undefined;
  part("decoded").textContent = CHOOSE;
  mote.begin(toml === null ? knobs.loss : undefined);
  map.movable = toml === null;
  part("map-drag").hidden = !map.movable;
  map.show(answer.layout);
  if (chosenNext !== undefined) map.selected = Math.min(chosenNext, answer.layout.nodes - 1);
  chosenNext = undefined;
  timeline.show(history);
  curves.show(answer.flows);
  part("states").replaceChildren(...swatches(answer.states));
  say("run", answer.runs > 1 ? `The scenario has ${answer.runs} runs; this is the first.` : "");
  say("answer", "");
  part("story").textContent = toml === null ? story(knobs) : `${answer.title}: ${answer.flows.slice(0, 3).join(", ")}`;
  tell();
  // The first frame is waited for: not for the next picture, too.
  if (plays) void advance(STEP);
}

/** Says in a sentence what went wrong. Only a lab that is gone ends a run; another one begins at a button. */
function refuse(error: unknown): void {
  const isGone = error instanceof Failed;
  // One that was replaced has nothing to say any more.
  if (isGone && !lab.isOver) return;
  if (isGone) {
    opened = undefined;
    busy = false;
  }
  const message = error instanceof Error ? error.message : String(error);
  const sentence = toml === null ? inWordsOfKnobs(message) : message;
  say("answer", sentence.charAt(0).toUpperCase() + sentence.slice(1));
  part("again").hidden = !isGone;
}

/** What the page has to say: of the address, of the run, and what became of what was asked last. */
const said = { address: "", run: "", answer: "" };

function say(about: keyof typeof said, what: string): void {
  said[about] = what;
  const all = Object.values(said).filter((one) => one !== "").join("\n");
  if (part("said").textContent !== all) part("said").textContent = all;
  part("notice").hidden = all === "";
  part("again").hidden = true;
}

/** Lets the lab go on to `to`, unless it is asked already. */
async function advance(to: number, budget?: number): Promise<void> {
  if (busy || over || !opened) return;
  busy = true;
  const own = run;
  try {
    const moment = await lab.ask(budget === undefined ? { op: "advance", to } : { op: "advance", to, budget });
    if (own === run) take(moment);
  } catch (error) {
    if (own !== run) return;
    [over, busy] = [true, false];
    refuse(error);
  }
}

function take(moment: Moment): void {
  busy = false;
  done = moment.now;
  over = moment.over;
  missed = moment.missed;
  nodes = moment.nodes;
  history.add(moment.frames, moment.turns);
  map.setParents(nodes);
  skipToFirst();
  curves.add(moment.points);
  const last = moment.points[moment.points.length - 1];
  if (last && last.length > 1) bytes = opened!.flows.map((_, flow) => last[1 + flow * FLOW.size + FLOW.bytes]);
}

/** Draws, and moves time on by what has passed since the last time. */
function frame(now: number): void {
  // First of all, so that a picture that fails is not the last one.
  requestAnimationFrame(frame);
  const passed = Math.min(100, now - drawnAt);
  drawnAt = now;
  if (plays && opened) {
    rate = speed === AUTO ? pace.next(passed) : speed;
    if (rate === 0) {
      shown = over ? done : Math.max(shown, done - AHEAD);
      void advance(Infinity, BUDGET);
    } else {
      const by = passed * 1000 * rate;
      shown = Math.min(shown + by, over ? done : Math.max(shown, done - AHEAD));
      if (history.frames.length === 0) void advance(done + STEP);
      else if (done < shown + AHEAD + by) void advance(shown + AHEAD + 2 * by);
    }
    if (over && shown >= done) {
      setPlaying(false);
      rests = true;
      void summarize();
    }
  }
  const fade = FADE * 1000 * (rate === 0 ? 1 : rate);
  map.draw(history, shown, fade, nodes, colours);
  timeline.draw(shown, colours);
  if (now - toldAt >= TELL_EVERY) {
    toldAt = now;
    tell();
  }
  noteFirst();
}

/** Nothing is to be seen before the first frame. */
function skipToFirst(): void {
  const first = history.frames[0];
  if (skipped || !first || !plays) return;
  skipped = true;
  shown = Math.max(shown, first.start);
}

/** Shows what the whole run gave. */
async function summarize(): Promise<void> {
  const own = run;
  try {
    const found = summaryOf(await lab.ask({ op: "records" }));
    if (own !== run || !found) return;
    summary = found;
    showSummary(found, part("summary-flows"), part("summary-run"));
    part("summary").hidden = false;
    tell();
  } catch (error) {
    if (own === run) refuse(error);
  }
}

/** Notes when the first frame was on the air before a visitor's eyes, for whoever measures it. */
function noteFirst(): void {
  if (performance.getEntriesByName("first-frame").length > 0) return;
  const first = history.frames[0];
  if (first && first.start <= shown) performance.mark("first-frame");
}

function tell(): void {
  part("clock").textContent = clock(shown, rate === 0 || rate >= 1 ? 1e4 : 100);
  part("progress").textContent = progress();
  part("follow").setAttribute("aria-pressed", String(timeline.follows));
  curves.draw();
  const figures = opened?.flows.slice(0, 3).map((flow, place) => {
    const figure = curves.latest(place);
    if (!figure) return `${flow}: not begun`;
    return `${flow}: window ${figure.cwnd} bytes, round trip ${figure.rtt} ms, ${figure.goodput.toFixed(1)} kb/s`;
  });
  part("figures").textContent = summary ? closing(summary) : (figures?.join("; ") ?? "");
  if (opened) {
    const state = opened.states[history.state(map.selected, shown)] ?? "–";
    mote.show(map.selected, map.layout, nodes, state, map.movable);
  }
  part("map").setAttribute("aria-label", map.describe(opened?.layout.nodes ?? 0, nodes));
  latest.show(history, shown, plays);
}

function progress(): string {
  const atWork = lab.silence > SILENCE ? `the lab has been at work for ${Math.floor(lab.silence / 1000)} s` : "";
  if (!opened) return atWork;
  if (isCalm && !plays && shown === 0) return "paused, since this system asks for less motion";
  const all = bytes.reduce((sum, one) => sum + one, 0);
  const wanted = toml === null && knobs.kilobytes > 0 ? ` of ${knobs.kilobytes * senders(knobs).length}` : "";
  const delivered = `${(all / 1000).toFixed(1)}${wanted} kB delivered`;
  const gaps = missed > 0 ? `; ${missed} frames and changes were too many to show` : "";
  const end = over && shown >= done ? "; the run is over" : "";
  return `${delivered}${gaps}${end}${atWork === "" ? "" : `; ${atWork}`}`;
}

async function explain(one: Frame): Promise<void> {
  timeline.selected = one;
  const place = part("decoded");
  const own = run;
  place.textContent = "…";
  try {
    const text = await lab.ask({ op: "decode", from: one.from, start: one.start, length: one.length });
    // Somebody may have asked for another one meanwhile.
    if (own !== run || timeline.selected !== one) return;
    place.textContent = `${line(history, one)}\n\n${text.trimEnd()}`;
    say("answer", "");
  } catch (error) {
    if (own !== run) return;
    place.textContent = "";
    refuse(error);
  }
}

/** To where the next frame begins or ends. */
let steps = false;
async function step(): Promise<void> {
  setPlaying(false);
  if (steps) return;
  steps = true;
  const own = run;
  for (let tries = 0; opened && own === run && tries < STEP_TRIES; tries++) {
    const edge = history.nextEdge(shown);
    // An edge counts once no frame can be told any more that began before it.
    if (edge !== undefined && (over || edge + AHEAD <= done)) {
      shown = edge;
      break;
    }
    if (over) {
      shown = done;
      break;
    }
    if (busy) await new Promise((go) => setTimeout(go, 5));
    else await advance(done + STEP);
  }
  steps = false;
  tell();
}

function setPlaying(on: boolean): void {
  [plays, rests] = [on, false];
  part("play").textContent = on ? "Pause" : "Play";
  part("play").setAttribute("aria-pressed", String(on));
}

function playOrPause(): void {
  if (lab.isOver || (!plays && over && shown >= done)) {
    setPlaying(true);
    void restart();
  } else {
    setPlaying(!plays);
  }
  tell();
}

/** Says in the address what is run now. */
async function remember(): Promise<void> {
  try {
    const hash = await write(knobs, speed, toml);
    window.history.replaceState(null, "", hash === "" ? location.pathname + location.search : `#${hash}`);
  } catch (error) {
    say("address", `The address does not hold this scenario: ${error instanceof Error ? error.message : String(error)}`);
  }
}

let soon = 0;
function change(next: Knobs): void {
  knobs = next;
  say("address", "");
  form.show(knobs, toml !== null);
  clearTimeout(soon);
  soon = window.setTimeout(() => {
    void remember();
    void restart();
  }, 200);
}

/** A mote is somewhere else: while it is held only its links change. */
let asking = false;
async function moved(node: number, [x, y]: [number, number], isDone: boolean): Promise<void> {
  const all = knobs.layout === "placed" && knobs.places.length === map.placed.length ? places(knobs) : map.placed;
  // The border router moves like all others: no place is an origin.
  const next = placedAt(knobs, all.map((place, at) => (at === node ? [x, y] : place)));
  if (isDone) return opened && !over && done > 0 ? goOnIn(next) : change(next);
  if (asking) return;
  asking = true;
  try {
    const layout = await living().ask({ op: "layout", text: toToml({ ...next, joining: false }), name: name(), files });
    if (map.isMoving(node)) map.show(layout);
  } catch (error) {
    // A place from which nobody is heard is said once the mote is let go.
    if (error instanceof Failed) refuse(error);
  }
  asking = false;
}

/** The run goes on in the air of these knobs. */
async function goOnIn(next: Knobs): Promise<void> {
  knobs = next;
  form.show(knobs, false);
  void remember();
  const own = run;
  try {
    const layout = await lab.ask({ op: "air", text: text(), name: name(), files });
    if (own !== run) return;
    map.show(layout);
    noteChange("a mote was moved");
  } catch {
    // Where these places make no mesh, the sentence is that of a run in it.
    if (own === run) change(next);
  }
}

async function switchMote(node: number, on: boolean): Promise<void> {
  await byHand({ op: "switch", node, on }, `mote ${node} was switched ${on ? "on" : "off"}`);
}

async function loseFrames(share: number): Promise<void> {
  await byHand({ op: "loss", share }, `${(100 * share).toFixed(0)} % of frames are lost besides`);
}

async function byHand(ask: { op: "switch"; node: number; on: boolean } | { op: "loss"; share: number }, what: string): Promise<void> {
  if (!opened || over) return say("answer", "The run is over: restart it, and change it while it goes on");
  const own = run;
  try {
    await lab.ask(ask);
    if (own === run) noteChange(what);
  } catch (error) {
    if (own === run) refuse(error);
  }
}

function noteChange(what: string): void {
  const restarts = /moved|added/.test(what) ? "Restart runs all of it so from the beginning" : "Restart begins without it";
  say("answer", `At ${clock(done, 1e4)} ${what}. ${restarts}.`);
}

let busyAdding = false;
/** A mote more, at a place or beside another mote. The run goes on with it. */
async function addMote(where: number | [number, number]): Promise<void> {
  const all = knobs.layout === "placed" && knobs.places.length === map.placed.length ? places(knobs) : map.placed;
  if (all.length >= PLACES_MAX) return say("answer", `The page shows ${PLACES_MAX} motes at most`);
  const place = typeof where === "number" ? placeBeside(all, where) : where;
  const next = withMote(knobs, all, place);
  const isUnderWay = opened !== undefined && !over && done > 0;
  if (busyAdding) return;
  if (!isUnderWay) {
    chosenNext = all.length;
    return change(next);
  }
  busyAdding = true;
  const own = run;
  try {
    const { layout, flows } = await lab.ask({ op: "add", text: toToml(next), name: name(), files });
    if (own !== run || !opened) return;
    knobs = next;
    form.show(knobs, false);
    void remember();
    history.grow();
    timeline.fitRows(history.nodes);
    opened = { ...opened, layout, flows };
    curves.grow(flows);
    map.show(layout);
    map.selected = all.length;
    noteChange(`mote ${all.length} was added, and sends`);
    tell();
  } catch (error) {
    if (own === run) refuse(error);
  } finally {
    busyAdding = false;
  }
}

async function copyLink(): Promise<void> {
  await remember();
  try {
    await navigator.clipboard.writeText(location.href);
    say("answer", "The link is copied: it begins this run.");
  } catch {
    say("answer", `The browser gives no clipboard. The link: ${location.href}`);
  }
}

async function saveFrom(op: "capture" | "records", kind: string, file: string): Promise<void> {
  try {
    save(await lab.ask({ op }), kind, file);
    say("answer", "");
  } catch (error) {
    refuse(error);
  }
}

function listenToButtons(): void {
  const on = (id: string, act: () => void) => part(id).addEventListener("click", act);
  on("play", playOrPause);
  on("step", () => void step());
  on("restart", () => void restart());
  on("again", () => void restart());
  on("zoom-in", () => timeline.zoom(0.5));
  on("zoom-out", () => timeline.zoom(2));
  on("earlier", () => timeline.pan(-0.3));
  on("later", () => timeline.pan(0.3));
  on("follow", () => timeline.follow());
  on("save-scenario", () => save(text(), "application/toml", name()));
  on("save-capture", () => void saveFrom("capture", "application/vnd.tcpdump.pcap", "air.pcap"));
  on("save-records", () => void saveFrom("records", "application/jsonl", "results.jsonl"));
  on("copy-link", () => void copyLink());
  on("back", () => {
    [toml, files] = [null, {}];
    change(knobs);
  });
  part<HTMLSelectElement>("speed").addEventListener("change", (event) => {
    speed = Number((event.target as HTMLSelectElement).value);
    void remember();
  });
  document.addEventListener("keydown", (event) => {
    const at = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || at.closest(TYPED_INTO)) return;
    // A space presses the button that has the focus, and nothing else.
    if (event.key === " " && at.closest("button, input, a")) return;
    const act = { " ": playOrPause, s: () => void step(), r: () => void restart() }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    // A key that is held steps on, but begins nothing anew.
    if (!event.repeat || event.key.toLowerCase() === "s") act();
  });
}

function listenToEditor(): void {
  const dialog = part<HTMLDialogElement>("editor");
  const area = part<HTMLTextAreaElement>("toml");
  const example = part<HTMLSelectElement>("example");
  example.replaceChildren(new Option("what runs now", ""), ...EXAMPLES.map(({ name }) => new Option(name, name)));
  part("edit").addEventListener("click", () => {
    area.value = text();
    example.value = "";
    part("toml-error").textContent = "";
    dialog.showModal();
  });
  example.addEventListener("change", () => {
    area.value = EXAMPLES.find(({ name }) => name === example.value)?.text ?? text();
  });
  part("use").addEventListener("click", () => void useOwn(dialog, area.value));
}

/** Runs a scenario of the visitor's own, if the lab takes it. */
async function useOwn(dialog: HTMLDialogElement, own: string): Promise<void> {
  const use = part<HTMLButtonElement>("use");
  use.disabled = true;
  part("toml-error").textContent = "";
  try {
    const given = await filesOf(own, [...(part<HTMLInputElement>("files").files ?? [])]);
    await living().ask({ op: "layout", text: own, name: "scenario.toml", files: given });
    // Who has closed the dialog meanwhile wants none of it.
    if (!dialog.open) return;
    dialog.close();
    [toml, files] = [own, given];
    change(knobs);
  } catch (error) {
    part("toml-error").textContent = error instanceof Error ? error.message : String(error);
    if (error instanceof Failed) refuse(error);
  } finally {
    use.disabled = false;
  }
}

/** Takes what the address says, and says what it did not take. */
async function readAddress(): Promise<void> {
  const found = await read(location.hash);
  [knobs, speed, toml] = [found.knobs, found.speed, found.toml];
  files = {};
  say("address", found.ignored.length > 0 ? `Ignored from the address: ${found.ignored.join("; ")}` : "");
  part<HTMLSelectElement>("speed").value = String(speed);
  form.show(knobs, toml !== null);
  await restart();
}

const CHOOSE = "Choose a frame.";
/** µs. */
const STEP = 100_000;
const STEP_TRIES = 10_000;
/** ms after which the page says that the lab is at work. */
const SILENCE = 1_500;
/** ms after which whoever begins anew gets another lab. */
const SILENCE_MAX = 3_000;
/** Where a letter is a letter. */
const TYPED_INTO = "input:not([type=checkbox]), select, textarea, dialog";

setPlaying(plays);
part<HTMLSelectElement>("speed").replaceChildren(...SPEEDS.map(([number, label]) => new Option(label, String(number))));
form.onChange = change;
map.onCancel = () => opened && map.show(opened.layout);
map.onMove = (node, place, isDone) => void moved(node, place, isDone);
map.onChoose = tell;
mote.onSwitch = (node, on) => void switchMote(node, on);
mote.onAdd = (node) => void addMote(node);
map.onAdd = (place) => void addMote(place);
mote.onLoss = (share) => void loseFrames(share);
timeline.onPick = latest.onPick = (one) => void explain(one);
listenToButtons();
listenToEditor();
window.addEventListener("hashchange", () => void readAddress());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours = theme();
  curves.restyle();
});
void readAddress();
requestAnimationFrame(frame);
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  // Offline is a comfort: a browser that has none of it shows the page all the same.
  navigator.serviceWorker.register("./sw.js").catch(() => {});
}
