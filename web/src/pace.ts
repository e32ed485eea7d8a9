// How fast a run is shown where nobody has chosen a speed: slowly at first, so that an eye can follow frames, then ever
// faster, so that the end of a long run is seen, too.

export class Pace {
  /** For how long the run has been watched, ms of wall-clock time. */
  private watched = 0;

  begin(): void {
    this.watched = 0;
  }

  /** Virtual seconds a second, once `passed` ms more have been watched. */
  next(passed: number): number {
    this.watched += passed;
    const doublings = Math.max(0, this.watched - SLOW) / DOUBLES;
    return Math.min(FASTEST, SLOWEST * 2 ** doublings);
  }
}

/** Virtual seconds a second. */
const SLOWEST = 0.05;
const FASTEST = 10;
/** ms. */
const SLOW = 5_000;
const DOUBLES = 2_500;
