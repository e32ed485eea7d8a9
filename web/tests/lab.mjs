// What the lab for a browser gives, beside what the command gives: `node lab.mjs MOTET GENERATED SCENARIOS SCRATCH`.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const [motet, generated, scenarios, scratch] = process.argv.slice(2).map((path) => resolve(path));
const lab = await import(pathToFileURL(join(generated, "motet_web.js")).href);
lab.initSync({ module: readFileSync(join(generated, "motet_web_bg.wasm")) });
const explainer = await import(pathToFileURL(join(generated, "motet_web_explain.js")).href);
explainer.initSync({ module: readFileSync(join(generated, "motet_web_explain_bg.wasm")) });
mkdirSync(scratch, { recursive: true });

const MATRIX = "- -60 -\n-60 - -60\n- -60 -\n";
const NOISE = "-50\n" + "-98\n".repeat(30);
const K7 = `{"location": "here", "tx_length": 100, "node_count": 2}
datetime,src,dst,channel,mean_rssi,pdr,tx_count
2020-01-01 00:00:00,0,1,11,-60,1.0,100
2020-01-01 00:00:00,1,0,11,-60,0.9,100
`;
const NAMED = { "links.txt": MATRIX, "noise.txt": NOISE, "trace.k7": K7 };
// What a day is cut to, s.
const HOUR = 3600;

let failed = 0;
let passed = 0;

function check(what, holds) {
  holds ? passed++ : failed++;
  if (!holds) console.log(`FAILED: ${what}`);
}

function command(folder, ...args) {
  return execFileSync(motet, args, { cwd: folder, maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] });
}

/** The files of a folder that a scenario names. */
function filesOf(folder, text) {
  const files = new lab.Files();
  for (const [, name] of text.matchAll(/=\s*"([^"\n]+)"/g)) {
    if (!existsSync(join(folder, name))) continue;
    const bytes = readFileSync(join(folder, name));
    // As the page's worker does.
    files.add(name, bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes);
  }
  return files;
}

function same(folder, name) {
  const text = readFileSync(join(folder, name), "utf8");
  const isDay = text.includes("duration_s = 86_400");
  const cut = isDay ? ["--duration", String(HOUR)] : [];
  const wanted = command(folder, "run", name, "--json", "-", "--seeds", "1", ...cut).toString();
  const found = lab.run(text, name, filesOf(folder, text), 1, isDay ? HOUR : undefined);
  check(`${name}: the lab for a browser gives what the command gives`, found === wanted && wanted.length > 0);
}

const all = readdirSync(scenarios).filter((name) => name.endsWith(".toml"));
check("there are scenarios", all.length >= 10);
// The page's lab has no firmware for motes, which flows of kind "push" need.
const pushes = all.filter((name) => readFileSync(join(scenarios, name), "utf8").includes('kind = "push"'));
for (const name of all.filter((name) => !pushes.includes(name))) same(scenarios, name);
check("there are scenarios with a push", pushes.length > 0);
for (const name of pushes) {
  const text = readFileSync(join(scenarios, name), "utf8");
  let sentence = "";
  try {
    lab.run(text, name, filesOf(scenarios, text), 1, undefined);
  } catch (error) {
    sentence = String(error);
  }
  check(`${name}: a push is refused`, sentence.includes("this build of the lab has no firmware"));
}

for (const [name, content] of Object.entries(NAMED)) writeFileSync(join(scratch, name), content);
for (const [name, part] of [
  ["matrix.toml", '[topology]\nmatrix = "links.txt"\n'],
  ["noise.toml", '[topology]\nchain = 1\n[interference]\ntrace = "noise.txt"\n'],
  ["k7.toml", '[topology]\nk7 = "trace.k7"\n[radio]\nchannel = 11\n'],
]) {
  writeFileSync(join(scratch, name), `name = "Files"\nduration_s = 6\nwarmup_s = 1\n${part}[[flow]]\n`);
  same(scratch, name);
}

/** What a frame holds, as the page shows it. */
function explained(own, from, start, length) {
  const frame = own.captured_frame(from, start, length);
  return explainer.explain(frame.capture, start, frame.bytes);
}

/** A run that is left often gives what one gives that is not: records, capture, and every frame explained. */
function stepped(text, name, limit) {
  writeFileSync(join(scratch, name), text);
  const own = new lab.Lab(text, name, new lab.Files());
  const frames = [];
  for (let to = 0; !own.advance(to); to += 7_919) frames.push(...own.take_frames());
  frames.push(...own.take_frames());
  const records = command(scratch, "run", name, "--json", "-", "--pcap", "run.pcap", "--force").toString();
  check(`${name}: records of a run in steps`, own.records() === records);
  check(`${name}: its capture`, readFileSync(join(scratch, "run.pcap")).equals(own.capture()));
  const decoded = command(scratch, "decode", "run.pcap").toString().split("\n\n");
  for (let row = 0; row < Math.min(frames.length, limit * 8); row += 8 * 13) {
    const [from, start, length] = [frames[row], frames[row + 2], frames[row + 7]];
    const said = explained(own, from, start, length).trimEnd();
    const shown = decoded.find((one) => one.startsWith(said.slice(0, said.indexOf(" ") + 1)));
    // The command's first line also has the time since the first frame, and how long the record is.
    // So it is folded elsewhere: lines are compared unfolded.
    const unfolded = (one) => one?.replace(/\n {11}(?=\S)/g, " ");
    const wanted = unfolded(shown)?.replace(/^(#\d+ {2})\S+ s {2}.*? B {2}/, "$1");
    check(`${name}: the frame at ${start} µs`, said.length > 10 && unfolded(said) === wanted);
  }
  check(`${name}: no frame was missed`, own.missed === 0);
  own.free();
}

const SHORT = 'duration_s = 3\nwarmup_s = 0\n[topology]\nchain = 2\njoining = "static"\n[[flow]]\nbytes = 5000\n';
stepped(SHORT, "short.toml", 200);
stepped(SHORT.replace("chain = 2", "peripherals = 2").replace('joining = "static"\n', "") + '[radio]\nkind = "ble"\n', "ble.toml", 100);

/** Two motes that begin a frame at the same moment, as long: each is explained as its own. */
function together() {
  const flows = [12, 9, 6, 3].map((from) => `[[flow]]\nfrom = ${from}\nto = "host"\n`).join("");
  const isTwin = (one, other) => one !== other && one[2] === other[2] && one[7] === other[7] && one[7] > 50;
  // One seed in ten has none.
  for (let seed = 1; seed <= 20; seed++) {
    const text = `duration_s = 60\nwarmup_s = 0\nseed = ${seed}\n[topology]\nchain = 12\njoining = "static"\n${flows}`;
    const own = new lab.Lab(text, "together.toml", new lab.Files());
    own.advance(40e6);
    const frames = own.take_frames();
    const rows = Array.from({ length: frames.length / 8 }, (_, row) => frames.slice(row * 8, row * 8 + 8));
    // By their ends: what begins together and is as long lies together.
    const place = rows.findIndex((one, at) => rows.slice(at + 1, at + 12).some((other) => isTwin(one, other)));
    const twins = place < 0 ? [] : rows.slice(place, place + 12).filter((one) => one === rows[place] || isTwin(one, rows[place]));
    for (const [from, , start, , , , , length] of twins) {
      const address = `src 02:4d:6f:74:65:74:00:${from.toString(16).padStart(2, "0")}`;
      check(`the frame of mote ${from} at ${start} µs is its own`, explained(own, from, start, length).includes(address));
    }
    own.free();
    if (twins.length > 1) return;
  }
  check("two motes begin at the same moment", false);
}

together();

/** A run that is changed by hand: its repetition, which a frame is explained from, has the same changes. */
function changed() {
  const text = 'duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 3\njoining = "static"\n[[flow]]\n';
  const own = new lab.Lab(text, "changed.toml", new lab.Files());
  own.advance(3e6);
  own.switch(1, false);
  own.advance(4e6);
  check("a mote that was switched off is off", own.nodes()[8] === 0);
  own.switch(1, true);
  own.advance(8e6);
  const air = own.take_air(text.replace("[[flow]]", "[radio]\nframe_loss = 0.3\n[[flow]]"), "air.toml", new lab.Files());
  check("another air has as many motes", air.nodes === 4);
  own.take_frames();
  own.advance(12e6);
  const frames = own.take_frames();
  check("frames are lost then", frames.some((fate, place) => place % 8 === 6 && lab.fate_names()[fate] === "injected"));
  for (let row = 0; row < frames.length; row += 8 * 97) {
    const [from, start, length] = [frames[row], frames[row + 2], frames[row + 7]];
    check(`the frame at ${start} µs of a changed run`, explained(own, from, start, length).includes("mac"));
  }
  check("each change is counted", own.changes === 4);
  own.free();
}

changed();

/** An attacker plays a capture back that the other module has read. */
function recorded() {
  execFileSync(motet, ["run", "short.toml", "--pcap", "played.pcap", "--force"], { cwd: scratch, stdio: "ignore" });
  const name = "attacked.toml";
  const text = `${SHORT}[[attacker]]\nkind = "pcap"\nnear = 1\nfile = "played.pcap"\nper_s = 5\n`;
  writeFileSync(join(scratch, name), text);
  const wanted = command(scratch, "run", name, "--json", "-", "--seeds", "1").toString();
  const files = new lab.Files();
  files.add_frames("played.pcap", explainer.frames(readFileSync(join(scratch, "played.pcap"))));
  check("frames of a capture, read by the other module", lab.run(text, name, files, 1) === wanted && wanted.length > 0);
}

recorded();

/** The sentence of the command, and no panic. */
function refused(text, name) {
  writeFileSync(join(scratch, name), text);
  const { stderr, status } = spawnSync(motet, ["run", name], { cwd: scratch, encoding: "utf8" });
  for (const open of [() => lab.run(text, name, new lab.Files()), () => new lab.Lab(text, name, new lab.Files()), () => lab.layout(text, name, new lab.Files())]) {
    let said = "";
    try {
      open();
    } catch (error) {
      said = error instanceof WebAssembly.RuntimeError ? `a panic: ${lab.panicked()}` : error.message;
    }
    check(`${name}: one sentence, not ${JSON.stringify(said)}`, status === 2 && stderr === `motet: ${said}\n`);
  }
}

refused("[topology]\nchains = 3\n[[flow]]\n", "key.toml");
refused("[topology]\nchain = nan\n[[flow]]\n", "nan.toml");
refused('[topology]\nmatrix = "missing.txt"\n[[flow]]\n', "missing.toml");
refused('[topology]\nchain = 3\n[[flow]]\n[sweep]\n"stack.mss_frames" = []\n', "sweep.toml");
refused("\u0000", "zero.toml");

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
