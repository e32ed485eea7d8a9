// The worker with the lab, as promises.

import { takeWorker } from "./first";
import type { Added, Answer, Ask, Layout, Moment, Opened } from "./protocol";

interface Results {
  open: Opened;
  layout: Layout;
  advance: Moment;
  switch: null;
  air: Layout;
  add: Added;
  loss: null;
  decode: string;
  capture: Uint8Array<ArrayBuffer>;
  records: string;
}

/** The lab is gone; another one has to be started. */
export class Failed extends Error {}

export class LabWorker {
  private readonly worker = takeWorker();
  private readonly waiting = new globalThis.Map<number, { give: (value: never) => void; fail: (error: Error) => void }>();
  private last = 0;
  /** Why nothing is answered any more. */
  private ended: Failed | undefined;
  /** Since when an answer is waited for, ms of the page's clock. */
  private since = 0;

  constructor() {
    this.worker.addEventListener("message", (event: MessageEvent<Answer>) => this.take(event.data));
    this.worker.addEventListener("error", (event) => this.end(new Failed(event.message || "the lab could not be loaded")));
    this.worker.addEventListener("messageerror", () => this.end(new Failed("the lab's answer cannot be read")));
  }

  get isOver(): boolean {
    return this.ended !== undefined;
  }

  /** For how long it has said nothing while somebody waits, ms. */
  get silence(): number {
    return this.waiting.size > 0 ? performance.now() - this.since : 0;
  }

  ask<A extends Ask>(ask: A): Promise<Results[A["op"]]> {
    if (this.ended) return Promise.reject(this.ended);
    const id = ++this.last;
    if (this.waiting.size === 0) this.since = performance.now();
    return new Promise((give, fail) => {
      this.waiting.set(id, { give, fail });
      this.worker.postMessage({ id, ask });
    });
  }

  /** Ends the lab: whoever waits, or asks from now on, is told why. */
  end(error: Failed): void {
    this.ended ??= error;
    this.worker.terminate();
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const { fail } of all) fail(this.ended);
  }

  private take(answer: Answer): void {
    const waiting = this.waiting.get(answer.id);
    this.waiting.delete(answer.id);
    this.since = performance.now();
    if (!("error" in answer)) waiting?.give(answer.value as never);
    else if (answer.fatal) {
      waiting?.fail(new Failed(answer.error));
      this.end(new Failed(answer.error));
    } else waiting?.fail(new Error(answer.error));
  }
}
