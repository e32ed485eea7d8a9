// The form: what it shows of the knobs, and what people turn them to.

import { allowed, applies, DEFAULTS, type Knobs, type Layout, type NumberKey, NUMBERS, numberOf, places, placesOf, placesText } from "./scenario";

const FLAGS = ["hidden", "cit", "tcphc", "joining"] as const;
const PLAIN = (Object.keys(NUMBERS) as NumberKey[]).filter((key) => key !== "delay");

export class KnobForm {
  /** Somebody has turned one. */
  onChange: (knobs: Knobs) => void = () => {};
  private knobs: Knobs = { ...DEFAULTS };

  constructor(private readonly form: HTMLFormElement) {
    for (const key of PLAIN) {
      const { min, max, whole } = NUMBERS[key];
      Object.assign(this.input(key), { min: String(min), max: String(max), step: whole ? "1" : "any" });
    }
    form.addEventListener("input", (event) => this.turn(event.target as HTMLInputElement));
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  show(knobs: Knobs, isOwn: boolean): void {
    this.knobs = { ...knobs };
    for (const key of PLAIN) this.write(key, String(knobs[key]));
    this.write("delay", knobs.delay === null ? "auto" : String(knobs.delay));
    this.write("places", placesText(places(knobs)));
    for (const key of FLAGS) {
      this.input(key).checked = knobs[key] && applies(key, knobs);
      this.input(key).disabled = !applies(key, knobs);
    }
    this.select("layout").value = knobs.layout;
    for (const part of this.form.querySelectorAll<HTMLElement>("[data-for]")) {
      part.hidden = !part.dataset.for!.split(" ").includes(knobs.layout);
    }
    this.form.querySelector("fieldset")!.disabled = isOwn;
    this.form.querySelector<HTMLElement>("#own")!.hidden = !isOwn;
    this.complain("");
  }

  private turn(input: HTMLInputElement): void {
    const wrong = this.take(input.name, input);
    input.setAttribute("aria-invalid", String(wrong !== undefined));
    this.complain(wrong ?? "");
    if (wrong === undefined) this.onChange({ ...this.knobs });
  }

  /** Takes what an input says; gives what is wrong with it. */
  private take(name: string, input: HTMLInputElement): string | undefined {
    const { knobs } = this;
    const label = this.form.querySelector(`label[for="${name}"]`)?.textContent ?? name;
    if (name === "layout") {
      const layout = input.value as Layout;
      if (layout === "placed") knobs.places = places(knobs);
      if (layout !== knobs.layout) knobs.senders = [];
      knobs.layout = layout;
    } else if (name === "places") {
      const found = placesOf(input.value);
      if (!found) return `${label} must be 2 to 100 places, such as 0,0;35,0`;
      knobs.places = found;
    } else if (name === "delay" && input.value.trim() === "auto") {
      knobs.delay = null;
    } else if (FLAGS.some((flag) => flag === name)) {
      knobs[name as (typeof FLAGS)[number]] = input.checked;
    } else if (Object.hasOwn(NUMBERS, name)) {
      const number = numberOf(name as NumberKey, input.value);
      if (number === undefined) return `${label} must be ${name === "delay" ? "auto or " : ""}${allowed(name as NumberKey)}`;
      knobs[name as NumberKey] = number;
    }
    return undefined;
  }

  private complain(what: string): void {
    this.form.querySelector("#knob-error")!.textContent = what;
  }

  private write(name: string, value: string): void {
    const input = this.input(name);
    // What somebody is typing stays as it is.
    if (document.activeElement !== input) input.value = value;
    input.setAttribute("aria-invalid", "false");
  }

  private input(name: string): HTMLInputElement {
    return this.form.elements.namedItem(name) as HTMLInputElement;
  }

  private select(name: string): HTMLSelectElement {
    return this.form.elements.namedItem(name) as HTMLSelectElement;
  }
}
