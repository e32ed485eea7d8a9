// The map: motes, who hears whom, and frames on their way.

import { type Frame, History, type Outcome } from "./history";
import { LINK, NODE, type Layout } from "./protocol";
import { fitted, stateColour, type Theme } from "./theme";

type Point = [number, number];

/** A mote under a pointer. */
interface Held {
  node: number;
  pointer: number;
  /** Where the pointer went down, in pixels of the screen. */
  at: Point;
  /** Where all motes were then, m. */
  before: Point[];
  /** Whether it has gone far enough to be no click. */
  moved: boolean;
  /** What is fitted into the view stays meanwhile. */
  view: View;
}

interface View {
  scale: number;
  left: number;
  top: number;
}

export class Map {
  /** Somebody moves a mote to a place, m; `done`: and lets go. */
  onMove: (node: number, place: Point, done: boolean) => void = () => {};
  /** A mote that was moved is back where it was: the system took the pointer away. */
  onCancel: () => void = () => {};
  /** Somebody wants a mote at a free place, m. */
  onAdd: (place: Point) => void = () => {};
  /** Another mote is chosen. */
  onChoose: () => void = () => {};
  movable = false;
  selected = 0;
  layout: Layout = { nodes: 0, positions: new Float64Array(), links: new Float64Array() };
  private places: Point[] = [];
  private parents: Float64Array = new Float64Array();
  private held: Held | undefined;
  private view: View = { scale: 1, left: 0, top: 0 };
  /** Links as drawn last, and for what: there are thousands on a floor. */
  private links: { of: string; picture: HTMLCanvasElement } | undefined;

  constructor(private readonly canvas: HTMLCanvasElement) {
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointercancel", (event) => this.drop(event));
    canvas.addEventListener("dblclick", (event) => this.put(event));
    // A finger on a mote drags it; elsewhere it scrolls the page.
    const hold = (event: TouchEvent) => this.held !== undefined && event.preventDefault();
    canvas.addEventListener("touchstart", hold, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** Whether this mote is being moved. */
  isMoving(node: number): boolean {
    return this.held?.node === node && this.held.moved;
  }

  /** Whoever holds a mote holds it no longer. */
  letGo(): void {
    if (this.held && this.canvas.hasPointerCapture(this.held.pointer)) this.canvas.releasePointerCapture(this.held.pointer);
    this.held = undefined;
  }

  show(layout: Layout): void {
    const { held, places } = this;
    this.layout = layout;
    if (layout.positions.length > 0) {
      this.places = Array.from({ length: layout.nodes }, (_, node): Point => [
        layout.positions[2 * node],
        layout.positions[2 * node + 1],
      ]);
    } else {
      this.places = byHops(layout, this.parents);
    }
    // A layout is of a moment ago: what is moved meanwhile is where the pointer is.
    if (held?.moved && this.places[held.node]) this.places[held.node] = places[held.node];
    this.selected = Math.min(this.selected, Math.max(0, layout.nodes - 1));
  }

  /** Who is whose parent, as the run has it. */
  setParents(nodes: Float64Array): void {
    this.parents = nodes;
    const unplaced = this.layout.positions.length === 0;
    if (unplaced && !this.held) this.places = byHops(this.layout, nodes);
  }

  /** Where every mote is drawn, m. */
  get placed(): Point[] {
    return this.places.map(([x, y]): Point => [x, y]);
  }

  draw(history: History, time: number, fade: number, nodes: Float64Array, colours: Theme): void {
    const canvas = fitted(this.canvas);
    if (!canvas) return;
    const { pen, width, height } = canvas;
    this.fit(width, height);
    const at = this.places.map((place) => this.onCanvas(place));
    this.drawLinks(pen, at, colours);
    const flying: Frame[] = [];
    // Of what became of frames at a mote the latest is shown, so that words do not cover one another.
    const ended: Record<number, Frame> = {};
    for (const frame of history.between(time - fade, time)) {
      if (frame.end > time) flying.push(frame);
      else if (history.outcome(frame) !== "none") ended[frame.to] = frame;
    }
    for (const frame of Object.values(ended)) {
      this.drawEnd(pen, at, frame, history.outcome(frame), (time - frame.end) / fade, colours);
    }
    for (const frame of flying) this.drawWave(pen, at, frame, time, history, colours);
    const radius = this.radius;
    at.forEach((point, node) => this.drawMote(pen, point, node, history.state(node, time), nodes, radius, colours));
    for (const frame of flying) this.drawFlight(pen, at, frame, time, history, colours);
  }

  /** The map in words. */
  describe(count: number, nodes: Float64Array): string {
    const queued = Array.from({ length: count }, (_, node) => nodes[node * NODE.size + NODE.queue] ?? 0);
    const waiting = queued.reduce((sum, one) => sum + Math.max(0, one), 0);
    return `Map of ${count} motes; mote ${this.selected} is chosen; ${waiting} frames wait in queues`;
  }

  private get radius(): number {
    return this.layout.nodes > 60 ? 7 : this.layout.nodes > 20 ? 9 : 13;
  }

  private fit(width: number, height: number): void {
    if (this.held) {
      this.view = this.held.view;
      return;
    }
    const xs = this.places.map(([x]) => x);
    const ys = this.places.map(([, y]) => y);
    const [left, right] = [Math.min(...xs, 0), Math.max(...xs, 0)];
    const [top, bottom] = [Math.min(...ys, 0), Math.max(...ys, 0)];
    const scale = Math.min((width - 2 * MARGIN) / Math.max(1, right - left), (height - 2 * MARGIN) / Math.max(1, bottom - top), 12);
    this.view = {
      scale,
      left: width / 2 - (scale * (left + right)) / 2,
      top: height / 2 - (scale * (top + bottom)) / 2,
    };
  }

  private onCanvas([x, y]: Point): Point {
    return [this.view.left + x * this.view.scale, this.view.top + y * this.view.scale];
  }

  private drawLinks(pen: CanvasRenderingContext2D, at: Point[], colours: Theme): void {
    const { width, height } = this.canvas;
    const of = `${width} ${height} ${colours.line} ${at.join(" ")} ${this.layout.links.length}`;
    if (this.links?.of !== of) {
      const picture = document.createElement("canvas");
      [picture.width, picture.height] = [width, height];
      const own = picture.getContext("2d");
      own?.setTransform(pen.getTransform());
      if (own) drawLinks(own, at, this.layout, colours);
      this.links = { of, picture };
    }
    pen.drawImage(this.links.picture, 0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    pen.strokeStyle = colours.quiet;
    pen.lineWidth = 3;
    for (let node = 0; node < at.length; node++) {
      const parent = this.parents[node * NODE.size + NODE.parent];
      if (parent >= 0 && at[parent]) line(pen, at[node], at[parent]);
    }
  }

  private drawMote(
    pen: CanvasRenderingContext2D,
    [x, y]: Point,
    node: number,
    state: number,
    nodes: Float64Array,
    radius: number,
    colours: Theme,
  ): void {
    const on = nodes.length === 0 || nodes[node * NODE.size + NODE.on] === 1;
    pen.fillStyle = on ? (state < 0 ? colours.listen : stateColour(colours, state)) : colours.paper;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = node !== this.selected ? 1.5 : document.activeElement === this.canvas ? 4 : 3;
    pen.beginPath();
    // The border router is square: shape says it, not colour.
    if (node === 0) pen.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    else pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
    if (!on || DEAF.has(state)) {
      pen.lineWidth = 2;
      line(pen, [x - radius * 0.7, y + radius * 0.7], [x + radius * 0.7, y - radius * 0.7]);
    }
    pen.fillStyle = colours.ink;
    pen.textAlign = "center";
    pen.font = `600 ${radius < 10 ? 10 : 12}px system-ui, sans-serif`;
    pen.fillText(node === 0 && radius > 10 ? "0 · router" : String(node), x, y - radius - (radius > 10 ? 13 : 5));
    const queue = nodes[node * NODE.size + NODE.queue];
    if (!(queue > 0)) return;
    const more = nodes[node * NODE.size + NODE.waits] === 1 ? "+" : "";
    pen.fillStyle = colours.quiet;
    pen.font = "11px system-ui, sans-serif";
    pen.fillText(radius > 10 ? `queue ${queue}${more}` : `${queue}${more}`, x, y + radius + (radius > 10 ? 22 : 13));
  }

  /** A ring around the sender of a frame: as much of it is drawn as the frame has been on the air. */
  private drawWave(pen: CanvasRenderingContext2D, at: Point[], frame: Frame, time: number, history: History, colours: Theme): void {
    const from = at[frame.from];
    if (!from) return;
    const share = (time - frame.start) / (frame.end - frame.start);
    pen.strokeStyle = frameColour(frame, history, colours);
    pen.lineWidth = 5;
    pen.beginPath();
    pen.arc(...from, this.radius + 7, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * share);
    pen.stroke();
  }

  private drawFlight(pen: CanvasRenderingContext2D, at: Point[], frame: Frame, time: number, history: History, colours: Theme): void {
    const [from, to] = [at[frame.from], at[frame.to]];
    if (!from || !to) return;
    const share = (time - frame.start) / (frame.end - frame.start);
    const isAck = history.sorts[frame.sort] === "ack";
    pen.strokeStyle = pen.fillStyle = frameColour(frame, history, colours);
    pen.lineWidth = isAck ? 3 : 5;
    const tip: Point = [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
    line(pen, from, tip);
    pen.beginPath();
    pen.arc(...tip, isAck ? 4 : 6, 0, 2 * Math.PI);
    pen.fill();
  }

  /** What became of a frame, for a while. */
  private drawEnd(pen: CanvasRenderingContext2D, at: Point[], frame: Frame, outcome: Outcome, age: number, colours: Theme): void {
    const [from, to] = [at[frame.from], at[frame.to]];
    if (!from || !to || outcome === "none") return;
    pen.globalAlpha = Math.max(0, 1 - age);
    pen.strokeStyle = pen.fillStyle = colours[outcome];
    pen.lineWidth = 3;
    line(pen, from, to);
    if (outcome !== "received") {
      const [x, y] = to;
      const size = this.radius + 5;
      line(pen, [x - size, y - size], [x + size, y + size]);
      line(pen, [x - size, y + size], [x + size, y - size]);
      pen.textAlign = "center";
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillText(WORDS[outcome], x, y + size + 24);
    }
    pen.globalAlpha = 1;
  }

  /** The mote under a pointer; -1: none. */
  private under(event: MouseEvent): number {
    const [x, y] = [event.offsetX, event.offsetY];
    return this.places.findIndex((place) => {
      const [px, py] = this.onCanvas(place);
      return Math.hypot(px - x, py - y) <= this.radius + 10;
    });
  }

  private put(event: MouseEvent): void {
    if (!this.movable || this.held || this.under(event) >= 0) return;
    const { scale, left, top } = this.view;
    this.onAdd([(event.offsetX - left) / scale, (event.offsetY - top) / scale]);
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0 || this.held) return;
    const near = this.under(event);
    if (near < 0) return;
    this.selected = near;
    this.onChoose();
    if (!this.movable) return;
    this.held = {
      node: near,
      pointer: event.pointerId,
      at: [event.clientX, event.clientY],
      before: this.placed,
      moved: false,
      view: { ...this.view },
    };
    this.canvas.setPointerCapture(event.pointerId);
  }

  private drag(event: PointerEvent): void {
    const { held } = this;
    if (!held || event.pointerId !== held.pointer) return;
    const [right, down] = [event.clientX - held.at[0], event.clientY - held.at[1]];
    if (!held.moved && Math.hypot(right, down) < CLICK) return;
    held.moved = true;
    const [x, y] = held.before[held.node];
    const place: Point = [x + right / held.view.scale, y + down / held.view.scale];
    this.places[held.node] = place;
    this.onMove(held.node, place, false);
  }

  private drop(event: PointerEvent): void {
    const { held } = this;
    if (!held || event.pointerId !== held.pointer) return;
    this.letGo();
    // A click chooses a mote, and changes nothing.
    if (!held.moved) return;
    if (event.type === "pointercancel") {
      this.places = held.before;
      this.onCancel();
    } else {
      this.onMove(held.node, this.places[held.node], true);
    }
  }

  /** Comma and full stop choose a mote, arrows move it by a metre, with Shift by ten. */
  private key(event: KeyboardEvent): void {
    const nodes = this.layout.nodes;
    if (nodes === 0) return;
    if (event.key === "," || event.key === ".") {
      this.selected = (this.selected + (event.key === "," ? nodes - 1 : 1)) % nodes;
      this.onChoose();
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const way = ARROWS[event.key];
    if (!way || !this.movable) return;
    event.preventDefault();
    event.stopPropagation();
    const step = event.shiftKey ? 10 : 1;
    const [x, y] = this.places[this.selected];
    this.places[this.selected] = [x + way[0] * step, y + way[1] * step];
    this.onMove(this.selected, this.places[this.selected], true);
  }
}

function drawLinks(pen: CanvasRenderingContext2D, at: Point[], { links, nodes }: Layout, colours: Theme): void {
  // Where everybody hears everybody, lines hide what happens.
  const thin = Math.min(1, (8 * nodes) / Math.max(1, links.length / LINK.size));
  pen.strokeStyle = colours.line;
  for (let row = 0; row < links.length; row += LINK.size) {
    const [from, to, chance] = [links[row + LINK.from], links[row + LINK.to], links[row + LINK.chance]];
    pen.globalAlpha = (0.2 + 0.8 * chance) * thin;
    pen.setLineDash(chance < 0.5 ? [2, 6] : []);
    pen.lineWidth = chance < 0.5 ? 1 : 1.5;
    line(pen, at[from], at[to]);
  }
}

function frameColour(frame: Frame, history: History, colours: Theme): string {
  return history.sorts[frame.sort] === "ack" ? colours.ack : colours.transmit;
}

function line(pen: CanvasRenderingContext2D, from: Point | undefined, to: Point | undefined): void {
  if (!from || !to) return;
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

/** Places for nodes that have none: by hops from the router, those of equal hops above one another. */
function byHops(layout: Layout, parents: Float64Array): Point[] {
  const hops = Array.from({ length: layout.nodes }, (_, node) => depth(node, parents));
  const known = hops.every((depth) => depth >= 0);
  const rows: number[] = [];
  return hops.map((own, node): Point => {
    const hop = known ? own : node;
    const row = rows[hop] ?? 0;
    rows[hop] = row + 1;
    const sign = row % 2 === 0 ? 1 : -1;
    return [hop * SPACING, sign * Math.ceil(row / 2) * SPACING * 0.7];
  });
}

function depth(node: number, parents: Float64Array): number {
  let hops = 0;
  for (let at = node; at !== 0; hops++) {
    const parent = parents[at * NODE.size + NODE.parent];
    if (!(parent >= 0) || hops > parents.length) return -1;
    at = parent;
  }
  return hops;
}

/** States in which a radio hears nothing: asleep, copying, turning around, transmitting. */
export const DEAF: ReadonlySet<number> = new Set([0, 2, 3, 6, 7]);
const WORDS = { collision: "collision", deaf: "deaf", lost: "lost" } as const;
const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** Pixels: a pointer that goes less far has clicked. */
const CLICK = 4;
/** Around the outermost motes, for their names. */
const MARGIN = 52;
/** m. */
const SPACING = 35;
