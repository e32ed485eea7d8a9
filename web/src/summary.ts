// What a whole run gave, from its records: those that `motet run --json` writes.

/** A flow over all of the run. */
interface FlowRecord {
  record: "flow";
  from: number | "host";
  to: number | "host";
  kind: string;
  bytes: number;
  goodput_kbps: number | null;
  finished_s: number | null;
  rtt_ms: number | null;
  connections_lost: number;
}

interface RunRecord {
  record: "run";
  complete: boolean;
  failure: string | null;
  seconds: number;
  goodput_kbps: number | null;
  bound_kbps: number | null;
  retransmitted: number | null;
  link_retries: number | null;
  frames: number;
  energy_uj_per_byte: number | null;
}

export interface Summary {
  run: RunRecord;
  flows: FlowRecord[];
}

/** The first run of the records, and its flows. */
export function summaryOf(records: string): Summary | undefined {
  const all = records.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as { record: string });
  const run = all.find(({ record }) => record === "run") as RunRecord | undefined;
  return run && { run, flows: all.filter(({ record }) => record === "flow") as FlowRecord[] };
}

/** What each flow got in all, in a sentence for each. */
export function closing({ flows }: Summary): string {
  return flows.slice(0, FLOWS_SAID).map((flow) => `${nameOf(flow)}: ${figure(flow.goodput_kbps, 1, "kb/s")} over the whole run`).join("; ");
}

/** Fills the table of flows, and the line below it. */
export function show({ run, flows }: Summary, table: HTMLElement, line: HTMLElement): void {
  const rows = flows.slice(0, FLOWS_LISTED).map((flow) => [
    nameOf(flow),
    `${(flow.bytes / 1000).toFixed(1)} kB`,
    figure(flow.goodput_kbps, 1, "kb/s"),
    figure(flow.finished_s, 2, "s"),
    figure(flow.rtt_ms, 0, "ms"),
  ]);
  table.replaceChildren(
    ...rows.map((cells) => {
      const row = document.createElement("tr");
      row.append(...cells.map((text, place) => cell(place === 0 ? "th" : "td", text)));
      return row;
    }),
  );
  const percent = (share: number | null) => (share === null ? "none measured" : `${(100 * share).toFixed(1)} %`);
  const parts = [
    run.failure ? `The run failed: ${run.failure}` : "",
    `${run.frames} frames`,
    `${percent(run.link_retries)} of frames sent again by links`,
    `${percent(run.retransmitted)} of segments sent again by TCP`,
    run.bound_kbps === null ? "" : `no run over these radios exceeds ${run.bound_kbps.toFixed(1)} kb/s`,
    run.energy_uj_per_byte === null ? "" : `${run.energy_uj_per_byte.toFixed(1)} µJ for each byte`,
  ];
  line.textContent = `${parts.filter((part) => part !== "").join("; ")}.`;
}

function nameOf({ kind, from, to }: FlowRecord): string {
  return `${kind} ${from} → ${to}`;
}

function figure(value: number | null, digits: number, unit: string): string {
  return value === null ? "–" : `${value.toFixed(digits)} ${unit}`;
}

function cell(kind: "th" | "td", text: string): HTMLElement {
  const made = document.createElement(kind);
  if (kind === "th") made.setAttribute("scope", "row");
  made.textContent = text;
  return made;
}

const FLOWS_SAID = 3;
const FLOWS_LISTED = 12;
