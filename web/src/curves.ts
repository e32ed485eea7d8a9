// Congestion window, round-trip time and goodput of each flow, in time.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { FLOW } from "./protocol";
import { theme } from "./theme";

/** What a curve shows of a flow. */
interface Kind {
  title: string;
  place: number;
}

const KINDS: readonly Kind[] = [
  { title: "Congestion window, bytes", place: FLOW.cwnd },
  { title: "Round-trip time, ms", place: FLOW.rtt },
  { title: "Goodput, kb/s", place: -1 },
];

export class Curves {
  private plots: uPlot[] = [];
  private times: number[] = [];
  /** By flow: rows of FLOW for each time. */
  private rows: Float64Array[] = [];
  private flows: string[] = [];
  private dirty = false;

  constructor(private readonly places: HTMLElement[]) {
    new ResizeObserver(() => this.resize()).observe(places[0]);
  }

  show(flows: string[]): void {
    // Beyond a few flows nobody tells the lines apart.
    this.flows = flows.slice(0, FLOWS_MAX);
    this.times = [];
    this.rows = [];
    this.restyle();
  }

  /** A run has more flows from now on; the first are those that it had. */
  grow(flows: string[]): void {
    this.flows = flows.slice(0, FLOWS_MAX);
    this.restyle();
  }

  /** Makes the plots anew, in the colours of now. */
  restyle(): void {
    for (const plot of this.plots) plot.destroy();
    const colours = theme();
    const strokes = [colours.transmit, colours.collision, colours.received, colours.deaf, colours.ack, colours.lost];
    this.plots = KINDS.map((kind, place) => {
      const axis = { stroke: colours.quiet, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 } };
      const series = this.flows.map((label, flow) => ({
        label,
        stroke: strokes[flow % strokes.length],
        width: 2,
        points: { show: false },
      }));
      const options: uPlot.Options = {
        title: kind.title,
        ...this.size(this.places[place]),
        scales: { x: { time: false } },
        axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => `${tick} s`) }, { ...axis, size: 56 }],
        series: [{ label: "time, s" }, ...series],
        legend: { show: this.flows.length > 1, live: false },
        cursor: { y: false },
      };
      return new uPlot(options, this.data(kind), this.places[place]);
    });
  }

  add(points: Float64Array[]): void {
    for (const point of points) {
      const flows = point.subarray(1);
      if (flows.length === 0) continue;
      const time = point[0] / 1e6;
      if (this.times.length > 0 && time - this.times[this.times.length - 1] < STEP_MIN) continue;
      this.times.push(time);
      this.rows.push(flows);
      this.dirty = true;
    }
    if (this.times.length > POINTS_MAX) {
      const keep = (_: unknown, place: number) => place % 2 === 0;
      this.times = this.times.filter(keep);
      this.rows = this.rows.filter(keep);
    }
  }

  draw(): void {
    if (!this.dirty) return;
    this.dirty = false;
    this.plots.forEach((plot, place) => plot.setData(this.data(KINDS[place])));
  }

  /** The latest figures of a flow, for people who see no curves. */
  latest(flow: number): { cwnd: number; rtt: number; goodput: number; bytes: number } | undefined {
    const row = this.rows[this.rows.length - 1];
    if (!row) return undefined;
    const at = flow * FLOW.size;
    const goodput = this.goodput(flow);
    return { cwnd: row[at + FLOW.cwnd], rtt: row[at + FLOW.rtt], bytes: row[at + FLOW.bytes], goodput: goodput[goodput.length - 1] ?? 0 };
  }

  private data(kind: Kind): uPlot.AlignedData {
    const flows = this.flows.map((_, flow) => {
      if (kind.place < 0) return this.goodput(flow);
      // Zero is what there is before a first sample, or without a connection.
      return this.rows.map((row) => row[flow * FLOW.size + kind.place] || null);
    });
    return [this.times, ...flows] as uPlot.AlignedData;
  }

  /** Over the last second each. */
  private goodput(flow: number): number[] {
    const bytes = this.rows.map((row) => row[flow * FLOW.size + FLOW.bytes] ?? 0);
    let first = 0;
    return this.times.map((time, place) => {
      while (first < place && this.times[first + 1] <= time - WINDOW) first++;
      const passed = time - this.times[first];
      return passed > 0 ? ((bytes[place] - bytes[first]) * 8) / 1000 / Math.max(passed, WINDOW) : 0;
    });
  }

  private size(place: HTMLElement): { width: number; height: number } {
    return { width: Math.max(200, place.clientWidth), height: 150 };
  }

  private resize(): void {
    this.plots.forEach((plot, place) => plot.setSize(this.size(this.places[place])));
  }
}

const FLOWS_MAX = 6;
const POINTS_MAX = 4_000;
/** s. */
const STEP_MIN = 0.002;
const WINDOW = 1;
