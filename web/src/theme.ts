// Colours of drawings, from the style sheet, so that light and dark are said in one place.

const NAMES = [
  "ink", "quiet", "line", "paper", "panel", "accent", "received", "collision", "deaf", "lost", "ack",
  "sleep", "listen", "copy", "unload", "assess", "prepare", "turn", "transmit",
] as const;

export type Theme = Record<(typeof NAMES)[number], string>;

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Theme;
}

/** By the lab's numbers of a radio's states. */
export function stateColour(colours: Theme, state: number): string {
  const all = [
    colours.sleep, colours.listen, colours.copy, colours.unload,
    colours.assess, colours.prepare, colours.turn, colours.transmit,
  ];
  return all[state] ?? colours.sleep;
}

/** A canvas fitted to its place and to the screen's pixels; none while it is not shown. */
export function fitted(canvas: HTMLCanvasElement): { pen: CanvasRenderingContext2D; width: number; height: number } | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || width === 0 || height === 0) return null;
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

/** A time for people, as fine as what a pixel or a tick is worth, µs. */
export function clock(us: number, finest = 1): string {
  const digits = finest >= 1e6 ? 0 : finest >= 1e5 ? 1 : finest >= 1e4 ? 2 : finest >= 1e3 ? 3 : finest >= 100 ? 4 : finest >= 10 ? 5 : 6;
  return `${(us / 1e6).toFixed(digits)} s`;
}

/** A legend of states. */
export function swatches(states: string[]): HTMLElement[] {
  return states.map((state, number) => {
    const item = document.createElement("li");
    const swatch = document.createElement("i");
    swatch.className = `swatch s${number}`;
    item.append(swatch, state);
    return item;
  });
}
