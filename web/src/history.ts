// What has happened so far, as much of it as a page can hold: frames by their end, states by radio.

import { FRAME, TURN } from "./protocol";

/** A frame that has left the air. */
export interface Frame {
  from: number;
  /** -1: nobody in particular. */
  to: number;
  /** µs. */
  start: number;
  end: number;
  channel: number;
  sort: number;
  fate: number;
  length: number;
}

/** What a frame's fate amounts to, for a picture. */
export type Outcome = "received" | "collision" | "deaf" | "lost" | "none";

/** A radio's states: from `at[i]` on it is in `state[i]`. */
export interface Track {
  at: number[];
  state: number[];
}

export class History {
  readonly frames: Frame[] = [];
  readonly tracks: Track[];
  /** Before this nothing is kept any more, µs. */
  since = 0;

  constructor(
    public nodes: number,
    readonly fates: readonly string[],
    readonly sorts: readonly string[],
    readonly states: readonly string[],
  ) {
    this.tracks = Array.from({ length: nodes }, () => ({ at: [], state: [] }));
  }

  /** A node more. */
  grow(): void {
    this.nodes++;
    this.tracks.push({ at: [], state: [] });
  }

  add(frames: Float64Array, turns: Float64Array): void {
    for (let row = 0; row < frames.length; row += FRAME.size) {
      this.frames.push({
        from: frames[row + FRAME.from],
        to: frames[row + FRAME.to],
        start: frames[row + FRAME.start],
        end: frames[row + FRAME.end],
        channel: frames[row + FRAME.channel],
        sort: frames[row + FRAME.sort],
        fate: frames[row + FRAME.fate],
        length: frames[row + FRAME.length],
      });
    }
    for (let row = 0; row < turns.length; row += TURN.size) {
      const track = this.tracks[turns[row + TURN.node]];
      // Attackers have radios beyond those of all nodes.
      if (!track) continue;
      track.at.push(turns[row + TURN.at]);
      track.state.push(turns[row + TURN.state]);
    }
    this.forget();
  }

  /** Drops the older half of what is too much. */
  private forget(): void {
    if (this.frames.length > FRAMES_MAX) {
      const gone = this.frames.splice(0, this.frames.length - FRAMES_MAX / 2);
      this.since = Math.max(this.since, gone[gone.length - 1].end);
    }
    const most = Math.max(2, TURNS_MAX / Math.max(1, this.nodes));
    for (const track of this.tracks) {
      if (track.at.length <= most) continue;
      const drop = track.at.length - Math.floor(most / 2);
      track.at.splice(0, drop);
      track.state.splice(0, drop);
      this.since = Math.max(this.since, track.at[0]);
    }
  }

  /** The first frame that ends after `time`, by its place. */
  endingAfter(time: number): number {
    return firstBeyond(this.frames.length, (place) => this.frames[place].end > time);
  }

  /** Frames on the air at some moment between `from` and `to`. */
  *between(from: number, to: number): Generator<Frame> {
    for (let place = this.endingAfter(from); place < this.frames.length; place++) {
      const frame = this.frames[place];
      if (frame.start < to) yield frame;
      else if (frame.end > to + LONGEST) return;
    }
  }

  /** The place of the state that a radio is in at `time`; -1: it is not known. */
  statePlace(node: number, time: number): number {
    const { at } = this.tracks[node];
    return firstBeyond(at.length, (place) => at[place] > time) - 1;
  }

  state(node: number, time: number): number {
    const place = this.statePlace(node, time);
    return place < 0 ? -1 : this.tracks[node].state[place];
  }

  /** The next moment after `time` at which a frame begins or ends. */
  nextEdge(time: number): number | undefined {
    let next: number | undefined;
    for (let place = this.endingAfter(time); place < this.frames.length; place++) {
      const { start, end } = this.frames[place];
      const edge = start > time ? start : end;
      if (next === undefined || edge < next) next = edge;
      if (end > next + LONGEST) break;
    }
    return next;
  }

  outcome(frame: Frame): Outcome {
    return outcomeOf(this.fates[frame.fate] ?? "");
  }
}

function outcomeOf(fate: string): Outcome {
  switch (fate) {
    case "received":
      return "received";
    case "locked on another":
    case "captured":
    case "bit errors":
      return "collision";
    case "asleep":
    case "deaf: copying":
    case "deaf: unloading":
    case "transmitting":
      return "deaf";
    case "too weak":
    case "injected":
      return "lost";
    default:
      return "none";
  }
}

/** The first place for which `holds`, which holds for all behind it. */
function firstBeyond(length: number, holds: (place: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Longer than any frame is on the air, µs: also than Bluetooth LE's at 125 kb/s. */
export const LONGEST = 20_000;
/** Some 30 MB. */
const FRAMES_MAX = 200_000;
const TURNS_MAX = 1_000_000;
