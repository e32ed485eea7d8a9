// What the page and the worker that owns the lab say to each other.

/** Files that a scenario names. */
export type Files = Record<string, Uint8Array>;

/** What the page asks. */
export type Ask =
  | { op: "open"; text: string; name: string; files: Files }
  | { op: "layout"; text: string; name: string; files: Files }
  /** As far as `to`, µs; at most for `budget` ms of wall-clock time, where one is given. */
  | { op: "advance"; to: number; budget?: number }
  /** From now on that mote is on or off. */
  | { op: "switch"; node: number; on: boolean }
  /** From now on motes hear one another, and lose frames, as in this scenario. */
  | { op: "air"; text: string; name: string; files: Files }
  /** From now on the last mote of this scenario, which has one more, is there with its flows, and all are in its places. */
  | { op: "add"; text: string; name: string; files: Files }
  /** From now on this share of frames is lost besides, 0 to 1. */
  | { op: "loss"; share: number }
  | { op: "decode"; from: number; start: number; length: number }
  | { op: "capture" }
  | { op: "records" };

/** Where nodes are and who hears whom. */
export interface Layout {
  nodes: number;
  /** x, y of each; empty where the scenario says nothing of places. */
  positions: Float64Array;
  /** from, to, dBm, chance that the longest frame arrives. */
  links: Float64Array;
}

/** A mote was added. */
export interface Added {
  layout: Layout;
  flows: string[];
}

/** A run that was opened. */
export interface Opened {
  title: string;
  runs: number;
  seconds: number;
  flows: string[];
  layout: Layout;
  sorts: string[];
  fates: string[];
  states: string[];
}

/** What has happened up to a moment, and how it is then. */
export interface Moment {
  /** µs since the nodes were switched on. */
  now: number;
  /** When all motes had joined, µs; -1 before. */
  joined: number;
  over: boolean;
  missed: number;
  /** Rows of FRAME. */
  frames: Float64Array;
  /** Rows of TURN. */
  turns: Float64Array;
  /** Rows of NODE. */
  nodes: Float64Array;
  /** For each moment looked at: µs, then rows of FLOW. */
  points: Float64Array[];
}

/** An answer to the ask of the same number. */
export type Answer =
  | { id: number; value: Opened | Layout | Added | Moment | string | Uint8Array | null }
  /** `fatal`: the lab is gone, and the worker with it. */
  | { id: number; error: string; fatal: boolean };

/** Places in a row of a frame. */
export const FRAME = { from: 0, to: 1, start: 2, end: 3, channel: 4, sort: 5, fate: 6, length: 7, size: 8 } as const;
/** In a change of a radio's state. */
export const TURN = { node: 0, at: 1, state: 2, size: 3 } as const;
/** In a node. */
export const NODE = { on: 0, parent: 1, queue: 2, waits: 3, state: 4, rank: 5, etx: 6, energy: 7, size: 8 } as const;
/** In a flow. */
export const FLOW = { bytes: 0, rtt: 1, cwnd: 2, ssthresh: 3, window: 4, inflight: 5, size: 6 } as const;
/** In a link. */
export const LINK = { from: 0, to: 1, dbm: 2, chance: 3, size: 4 } as const;
