// A row for each radio, in time: its states, and the frames that it sends and gets.

import { type Frame, History } from "./history";
import { DEAF } from "./map";
import { clock, fitted, stateColour, type Theme } from "./theme";

export class Timeline {
  /** Somebody wants to know what a frame is. */
  onPick: (frame: Frame) => void = () => {};
  selected: Frame | undefined;
  /** µs that are shown. */
  span = 60_000;
  /** Whether its end is where the run is. */
  follows = true;
  private from = 0;
  private history: History | undefined;
  private readonly fingers: { id: number; x: number }[] = [];
  private moved = 0;
  /** What the picture was drawn from last. */
  private drawn: unknown[] = [];

  /** `rows` scrolls through what `canvas` shows a part of, and `spacer` is as high as the rest. */
  constructor(
    private readonly rows: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly spacer: HTMLElement,
  ) {
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.lift(event));
    canvas.addEventListener("pointercancel", (event) => this.lift(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(history: History): void {
    this.history = history;
    this.selected = undefined;
    this.from = 0;
    this.follows = true;
    this.rows.scrollTop = 0;
    this.fitRows(history.nodes);
  }

  /** There may be a node more. */
  fitRows(nodes: number): void {
    // The canvas stays in its place, however many rows it is scrolled through: canvases have bounds.
    const [all, most] = [AXIS + nodes * ROW + 4, ROWS_MAX * ROW + AXIS + 4];
    this.canvas.style.height = `${Math.min(all, most)}px`;
    this.spacer.style.height = `${Math.max(0, all - most)}px`;
  }

  draw(time: number, colours: Theme): void {
    const { history } = this;
    if (!history) return;
    if (this.follows) this.from = Math.max(0, time - this.span * 0.85);
    if (this.isDrawn(time, colours)) return;
    const canvas = fitted(this.canvas);
    if (!canvas) return;
    const { pen, width, height } = canvas;
    const from = this.from;
    const scale = (width - LABEL) / this.span;
    const x = (at: number) => LABEL + (at - from) * scale;
    const to = Math.min(time, from + this.span);
    pen.save();
    pen.beginPath();
    pen.rect(LABEL, 0, width - LABEL, height);
    pen.clip();
    this.drawAxis(pen, width, colours);
    this.clipRows(pen, width, height);
    const first = Math.floor(this.rows.scrollTop / ROW);
    const last = Math.min(history.nodes - 1, first + ROWS_MAX + 1);
    for (let node = first; node <= last; node++) this.drawStates(pen, node, to, x, colours);
    const isNew = new Dots(history.nodes);
    const isSeen = (node: number) => node >= first && node <= last;
    for (const frame of history.between(from, to)) {
      if (frame.start > time || !(isSeen(frame.from) || isSeen(frame.to))) continue;
      const isLost = history.outcome(frame) !== "received";
      if (frame === this.selected || isNew.at(frame, isLost, x(frame.start), x(frame.end))) this.drawFrame(pen, frame, Math.min(frame.end, time), x, colours);
    }
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x(time), AXIS);
    pen.lineTo(x(time), AXIS + history.nodes * ROW);
    pen.stroke();
    pen.restore();
    pen.save();
    this.clipRows(pen, width, height);
    pen.fillStyle = colours.ink;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "right";
    for (let node = first; node <= last; node++) {
      pen.fillText(node === 0 ? "router" : String(node), LABEL - 8, AXIS + node * ROW + ROW / 2 + 4);
    }
    pen.restore();
  }

  /** Whether the picture is that of now; while a run is paused it mostly is. */
  private isDrawn(time: number, colours: Theme): boolean {
    const { clientWidth, clientHeight } = this.canvas;
    const now = [
      this.history, this.history?.nodes, time, this.history?.frames.length, this.from, this.span, this.selected, this.rows.scrollTop,
      colours, clientWidth, clientHeight, window.devicePixelRatio,
    ];
    const isSame = now.every((part, place) => part === this.drawn[place]);
    this.drawn = now;
    return isSame;
  }

  /** What follows is drawn below the axis, where its row is scrolled to. */
  private clipRows(pen: CanvasRenderingContext2D, width: number, height: number): void {
    pen.beginPath();
    pen.rect(0, AXIS, width, height - AXIS);
    pen.clip();
    pen.translate(0, -this.rows.scrollTop);
  }

  /** Shows `factor` times as much, around a share of the width. */
  zoom(factor: number, share = this.follows ? 0.85 : 0.5): void {
    const span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, this.span * factor));
    this.from = Math.max(0, this.from + (this.span - span) * share);
    this.span = span;
  }

  /** Shows what is so many widths later. */
  pan(share: number): void {
    this.follows = false;
    this.from = Math.max(0, this.from + share * this.span);
  }

  follow(): void {
    this.follows = true;
  }

  private drawAxis(pen: CanvasRenderingContext2D, width: number, colours: Theme): void {
    const least = (this.span / (width - LABEL)) * 90;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? least;
    pen.strokeStyle = colours.line;
    pen.fillStyle = colours.quiet;
    pen.lineWidth = 1;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "left";
    for (let at = Math.ceil(this.from / step) * step; at <= this.from + this.span; at += step) {
      const x = LABEL + ((at - this.from) / this.span) * (width - LABEL);
      pen.beginPath();
      pen.moveTo(x, AXIS - 8);
      pen.lineTo(x, this.canvas.clientHeight);
      pen.stroke();
      pen.fillText(clock(at, step), x + 3, AXIS - 9);
    }
  }

  private drawStates(pen: CanvasRenderingContext2D, node: number, to: number, x: (at: number) => number, colours: Theme): void {
    const track = this.history!.tracks[node];
    const top = AXIS + node * ROW + 3;
    const height = ROW - 6;
    let place = this.history!.statePlace(node, this.from);
    let at = Math.max(this.from, place < 0 ? (track.at[0] ?? to) : this.from);
    place = Math.max(0, place);
    // At most one state a half pixel is drawn, so that a minute costs no more than a millisecond.
    const least = this.span / (2 * this.canvas.clientWidth);
    while (at < to && place < track.at.length) {
      const end = Math.min(to, track.at[place + 1] ?? to);
      const next = Math.max(end, Math.min(to, at + least));
      const state = track.state[place];
      pen.fillStyle = stateColour(colours, state);
      // A radio that hears nothing is low: height says it, too.
      const low = DEAF.has(state) && state !== TRANSMIT ? height / 2 : 0;
      pen.fillRect(x(at), top + low, x(next) - x(at), height - low);
      place = next > end ? Math.max(place + 1, this.history!.statePlace(node, next)) : place + 1;
      at = next;
    }
  }

  private drawFrame(pen: CanvasRenderingContext2D, frame: Frame, end: number, x: (at: number) => number, colours: Theme): void {
    const history = this.history!;
    const [left, width] = [x(frame.start), Math.max(1, x(end) - x(frame.start))];
    const row = (node: number) => AXIS + node * ROW + 3;
    const height = ROW - 6;
    const sort = history.sorts[frame.sort];
    if (frame.from < history.nodes) {
      pen.fillStyle = sort === "ack" ? colours.ack : colours.transmit;
      pen.fillRect(left, row(frame.from), width, height);
      pen.font = "600 11px system-ui, sans-serif";
      pen.textAlign = "left";
      const label = `${sort} → ${frame.to < 0 ? "all" : frame.to}, ${frame.length} B`;
      const begin = Math.max(left, LABEL) + 4;
      if (width > 40 && pen.measureText(label).width < left + width - begin - 4) {
        pen.fillStyle = colours.paper;
        pen.fillText(label, begin, row(frame.from) + height - 4);
      }
    }
    const outcome = history.outcome(frame);
    if (frame.to >= 0 && frame.to < history.nodes && outcome !== "none") {
      pen.strokeStyle = pen.fillStyle = colours[outcome];
      pen.lineWidth = 2;
      if (width > 4) pen.strokeRect(left + 1, row(frame.to) + 1, width - 2, height - 2);
      else pen.fillRect(left, row(frame.to), width, height);
      if (outcome !== "received" && width > 8) cross(pen, left, row(frame.to), width, height);
    }
    if (frame === this.selected) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 3;
      for (const node of [frame.from, frame.to]) {
        if (node >= 0 && node < history.nodes) pen.strokeRect(left - 2, row(node) - 1, width + 4, height + 2);
      }
    }
  }

  private wheel(event: WheelEvent): void {
    if (event.offsetX < LABEL) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan(event.deltaX / this.canvas.clientWidth);
      return;
    }
    this.follows = false;
    this.zoom(1.0015 ** event.deltaY, this.share(event.offsetX));
  }

  private share(x: number): number {
    return Math.min(1, Math.max(0, (x - LABEL) / (this.canvas.clientWidth - LABEL)));
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.fingers.push({ id: event.pointerId, x: event.offsetX });
    if (this.fingers.length === 1) this.moved = 0;
  }

  private move(event: PointerEvent): void {
    const finger = this.fingers.find(({ id }) => id === event.pointerId);
    if (!finger) return;
    const by = event.offsetX - finger.x;
    this.moved += Math.abs(by);
    if (this.moved < 4 && this.fingers.length === 1) return;
    const other = this.fingers.find(({ id }) => id !== event.pointerId);
    if (other) {
      const [before, after] = [Math.abs(finger.x - other.x), Math.abs(event.offsetX - other.x)];
      this.follows = false;
      if (before > 5 && after > 5) this.zoom(before / after, this.share((finger.x + other.x) / 2));
    } else {
      this.pan(-by / (this.canvas.clientWidth - LABEL));
    }
    finger.x = event.offsetX;
  }

  private lift(event: PointerEvent): void {
    const place = this.fingers.findIndex(({ id }) => id === event.pointerId);
    if (place < 0) return;
    this.fingers.splice(place, 1);
    if (event.type === "pointerup" && this.moved < 4 && this.fingers.length === 0) this.pickAt(event.offsetX, event.offsetY);
  }

  private pickAt(x: number, y: number): void {
    const { history } = this;
    if (!history || x < LABEL) return;
    const node = Math.floor((y - AXIS + this.rows.scrollTop) / ROW);
    const perPixel = this.span / (this.canvas.clientWidth - LABEL);
    const at = this.from + (x - LABEL) * perPixel;
    const reach = 4 * perPixel;
    const near = [...history.between(at - reach, at + reach)].filter(({ from, to }) => from === node || to === node);
    const away = (frame: Frame) => Math.max(0, frame.start - at, at - frame.end);
    near.sort((one, other) => away(one) - away(other));
    if (near[0]) this.pick(near[0]);
  }

  private pick(frame: Frame): void {
    this.selected = frame;
    this.onPick(frame);
  }

  /** The frame before or after the selected one; without one the last that is shown. */
  private pickNext(way: number): void {
    const { history } = this;
    if (!history || history.frames.length === 0) return;
    const { frames } = history;
    const own = this.selected ? frames.indexOf(this.selected) : -1;
    const last = Math.max(0, history.endingAfter(this.from + this.span) - 1);
    const place = own < 0 ? last : Math.min(frames.length - 1, Math.max(0, own + way));
    const frame = frames[place];
    if (frame.start < this.from || frame.end > this.from + this.span) {
      this.follows = false;
      this.from = Math.max(0, frame.start - this.span / 2);
    }
    this.pick(frame);
  }

  private key(event: KeyboardEvent): void {
    const keys: Record<string, () => void> = {
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      Home: () => this.pan(-this.from / this.span),
      End: () => this.follow(),
      ",": () => this.pickNext(-1),
      ".": () => this.pickNext(1),
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}

/** Which frames are to be drawn: of those that fall on one pixel of a row one is enough. */
class Dots {
  private readonly drawn: Int32Array;

  constructor(nodes: number) {
    // By sender, then by receiver and whether it was received.
    this.drawn = new Int32Array(3 * nodes).fill(-1);
  }

  at(frame: Frame, isLost: boolean, left: number, right: number): boolean {
    if (right - left > 2) return true;
    const nodes = this.drawn.length / 3;
    const sent = frame.from < nodes && this.isNew(frame.from, left);
    const got = frame.to >= 0 && frame.to < nodes && this.isNew((isLost ? 2 : 1) * nodes + frame.to, left);
    return sent || got;
  }

  private isNew(place: number, x: number): boolean {
    const pixel = Math.floor(x);
    if (this.drawn[place] === pixel) return false;
    this.drawn[place] = pixel;
    return true;
  }
}

function cross(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + width, y + height);
  pen.moveTo(x, y + height);
  pen.lineTo(x + width, y);
  pen.stroke();
}

const ROW = 24;
const AXIS = 24;
const LABEL = 52;
/** Rows that are shown at a time. */
const ROWS_MAX = 12;
/** The lab's number of that state. */
const TRANSMIT = 7;
/** µs: a symbol of IEEE 802.15.4 is 16. */
const SPAN_MIN = 100;
const SPAN_MAX = 6e8;
