// The first worker, begun before the page is there to use it.

let first: Worker | undefined;

export function newWorker(): Worker {
  return new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
}

/** Begins it, for whoever takes it first. */
export function firstWorker(): void {
  first = newWorker();
}

/** The one that was begun, or a new one. */
export function takeWorker(): Worker {
  const taken = first ?? newWorker();
  first = undefined;
  return taken;
}
