// The frames before what is shown, as buttons: for keyboards, and for people who see no timeline.

import { type Frame, type History } from "./history";
import { clock } from "./theme";

export class Latest {
  onPick: (frame: Frame) => void = () => {};
  private listed: Frame[] = [];

  constructor(private readonly list: HTMLElement) {}

  show(history: History, shown: number, plays: boolean): void {
    // What has the focus must not go from under it.
    if (plays && this.list.contains(document.activeElement)) return;
    const end = history.endingAfter(shown);
    const latest = history.frames.slice(Math.max(0, end - LATEST), end).reverse();
    // A button that stays what it is stays the same button: somebody may be about to press it.
    if (latest.length === this.listed.length && latest.every((one, place) => one === this.listed[place])) return;
    this.listed = latest;
    const items = latest.map((one) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = line(history, one);
      button.addEventListener("click", () => this.onPick(one));
      item.append(button);
      return item;
    });
    this.list.replaceChildren(...items);
  }
}

/** A frame in a line. */
export function line(history: History, one: Frame): string {
  const fate = history.fates[one.fate] ?? "";
  const to = one.to < 0 ? "all" : String(one.to);
  return `${clock(one.start)}  ${one.from} → ${to}  ${history.sorts[one.sort]} ${one.length} B, ${fate}`;
}

const LATEST = 8;
