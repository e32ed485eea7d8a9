// The mote that is chosen: what it is at, and what a visitor does to it while the run goes on.

import { LINK, NODE, type Layout } from "./protocol";

export class MotePanel {
  /** Somebody switches a mote on or off. */
  onSwitch: (node: number, on: boolean) => void = () => {};
  /** Somebody wants another mote beside this one. */
  onAdd: (node: number) => void = () => {};
  /** Somebody lets so many frames be lost from now on, a share from 0 to 1. */
  onLoss: (share: number) => void = () => {};
  private node = 0;
  private isOn = true;
  private readonly facts: HTMLElement;
  private readonly power: HTMLButtonElement;
  private readonly adds: HTMLButtonElement;
  private readonly loss: HTMLInputElement;

  constructor(private readonly place: HTMLElement) {
    const part = <T extends HTMLElement>(id: string) => place.querySelector<T>(`#${id}`)!;
    this.facts = part("mote-facts");
    this.power = part("mote-power");
    this.adds = part("mote-add");
    this.loss = part("mote-loss");
    this.power.addEventListener("click", () => this.onSwitch(this.node, !this.isOn));
    this.adds.addEventListener("click", () => this.onAdd(this.node));
    this.loss.addEventListener("change", () => {
      const percent = Number(this.loss.value);
      const fits = this.loss.value.trim() !== "" && percent >= 0 && percent <= 100;
      this.loss.setAttribute("aria-invalid", String(!fits));
      if (fits) this.onLoss(percent / 100);
    });
  }

  /** A run begins, in which so many frames are lost, %; none where the scenario says it elsewhere. */
  begin(percent: number | undefined): void {
    this.loss.value = percent === undefined ? "" : String(percent);
    this.loss.removeAttribute("aria-invalid");
  }

  show(node: number, layout: Layout, nodes: Float64Array, state: string, movable: boolean): void {
    this.node = node;
    const value = (place: number) => nodes[node * NODE.size + place] ?? -1;
    this.isOn = nodes.length === 0 || value(NODE.on) === 1;
    const known = (number: number, text: (number: number) => string) => (number < 0 ? "–" : text(number));
    const facts: [string, string][] = [
      ["Radio", this.isOn ? state : "switched off"],
      ["Parent", node === 0 ? "none: the border router" : known(value(NODE.parent), String)],
      ["Rank", known(value(NODE.rank), String)],
      ["Attempts (ETX)", known(value(NODE.etx), (etx) => etx.toFixed(2))],
      ["Queue", known(value(NODE.queue), (queue) => `${queue} frames${value(NODE.waits) === 1 ? ", and a packet waits" : ""}`)],
      ["Energy so far", known(value(NODE.energy), (mj) => `${mj.toFixed(1)} mJ`)],
      ["Hears and is heard by", neighbours(node, layout)],
    ];
    const title = node === 0 ? "Mote 0, the border router" : `Mote ${node}`;
    const heading = this.place.querySelector("h3")!;
    if (heading.textContent !== title) heading.textContent = title;
    const shown = [...this.facts.querySelectorAll("dd")];
    if (shown.length !== facts.length) this.build(facts);
    else facts.forEach(([, text], at) => shown[at].textContent !== text && (shown[at].textContent = text));
    this.power.textContent = this.isOn ? "Switch off" : "Switch on";
    this.adds.hidden = !movable;
  }

  private build(facts: [string, string][]): void {
    this.facts.replaceChildren(
      ...facts.map(([name, text]) => {
        const pair = document.createElement("div");
        const [term, description] = [document.createElement("dt"), document.createElement("dd")];
        [term.textContent, description.textContent] = [name, text];
        pair.append(term, description);
        return pair;
      }),
    );
  }
}

/** Those that a mote reaches, the strongest first. */
function neighbours(node: number, { links }: Layout): string {
  const all: { to: number; dbm: number; chance: number }[] = [];
  for (let row = 0; row < links.length; row += LINK.size) {
    if (links[row + LINK.from] !== node) continue;
    all.push({ to: links[row + LINK.to], dbm: links[row + LINK.dbm], chance: links[row + LINK.chance] });
  }
  all.sort((one, other) => other.dbm - one.dbm);
  const words = all.slice(0, LISTED).map(({ to, dbm, chance }) => `${to} (${dbm.toFixed(0)} dBm, ${(100 * chance).toFixed(0)} %)`);
  const more = all.length > LISTED ? `, and ${all.length - LISTED} more` : "";
  return words.length === 0 ? "nobody" : `${words.join(", ")}${more}`;
}

const LISTED = 5;

/** A place beside a mote, m, with room around it. */
export function placeBeside(all: readonly [number, number][], mote: number): [number, number] {
  const [x, y] = all[mote];
  const free = ([left, top]: [number, number]) => all.every(([otherX, otherY]) => Math.hypot(otherX - left, otherY - top) > APART);
  const places = BESIDE.map(([right, down]): [number, number] => [x + right, y + down]);
  return places.find(free) ?? [x + APART, y + APART];
}

/** Where it is looked for, the nearest first, and how far from all others, m. */
const BESIDE: readonly [number, number][] = [[0, 25], [0, -25], [25, 0], [-25, 0], [20, 20], [-20, -20], [20, -20], [-20, 20]];
const APART = 12;
