// The files that a visitor brings beside a scenario, and takes along.

import type { Files } from "./protocol";
import { TEXT_MAX } from "./scenario";

/** The files beside a scenario, unless there is more of it than the page takes. */
export async function filesOf(own: string, chosen: readonly File[]): Promise<Files> {
  const megabytes = (bytes: number, most: number) => `${(bytes / 1e6).toFixed(1)} MB, but this page takes ${most / 1e6} MB`;
  const length = new TextEncoder().encode(own).length;
  if (length > TEXT_MAX) throw new Error(`the scenario has ${megabytes(length, TEXT_MAX)}`);
  const all = chosen.reduce((sum, { size }) => sum + size, 0);
  if (all > FILES_MAX) throw new Error(`the files have ${megabytes(all, FILES_MAX)}`);
  const given: Files = {};
  for (const file of chosen) {
    try {
      given[file.name] = new Uint8Array(await file.arrayBuffer());
    } catch (error) {
      throw new Error(`${file.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return given;
}

/** Gives a visitor a file. */
export function save(content: BlobPart, kind: string, file: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Bytes of all files beside a scenario. */
const FILES_MAX = 64_000_000;
