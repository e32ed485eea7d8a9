// The repository's own scenarios, to begin with: those that name no file.

const FOUND = import.meta.glob<string>("../../scenarios/*.toml", { query: "?raw", import: "default", eager: true });

export const EXAMPLES: readonly { name: string; text: string }[] = Object.entries(FOUND)
  .map(([path, text]) => ({ name: path.replace(/^.*\//, ""), text }))
  .filter(({ text }) => !/^\s*(trace|night|matrix|k7|key|file)\s*=/m.test(text));
