//! `docs/reference/scenarios.md`, made from the table of keys.

use super::keys::{Key, SECTIONS, Section};

/// The text of `docs/reference/scenarios.md`; a test keeps the file in step.
pub fn documentation() -> String {
    let mut text = String::from(INTRODUCTION);
    for section in SECTIONS {
        text.push_str(&heading(section));
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in section.keys {
            text.push_str(&row(key));
        }
    }
    text.push_str(SWEEP);
    text
}

fn heading(section: &Section) -> String {
    let name = section.name;
    let title = match (name, section.repeated) {
        ("", _) => "The top of the file".to_owned(),
        (_, true) => format!("`[[{name}]]`"),
        (_, false) => format!("`[{name}]`"),
    };
    format!("\n## {title}\n\n{}\n\n", section.doc)
}

fn row(key: &Key) -> String {
    let allowed = key.kind.allowed();
    let default = key
        .default
        .map_or(String::new(), |default| format!("`{default}`"));
    format!("| `{}` | {allowed} | {default} | {} |\n", key.name, key.doc)
}

const INTRODUCTION: &str = "\
# Scenarios

<!-- Made from the table of keys: `cargo test -p motet-lab documentation` says how. -->

`motet run SCENARIO.toml` runs a scenario in virtual time. The shortest scenario has a topology and
a flow:

```toml
[topology]
chain = 3

[[flow]]
```

A mote three hops from the border router sends to a host as much as TCP takes, for a minute.
`scenarios/` has more. These are errors: an unknown key, a value that a key may not have, and a key
without effect, such as `answer_bytes` in a flow without answers, or TCP's settings at a relay.
`motet run --keys` prints this page.

Every run checks that the bytes delivered are the bytes sent, in order, once. The same file and
seed give the same output on every machine, with any number of threads.
";

const SWEEP: &str = "
## Two kinds of mote in one network

A relay with the radio of a TelosB between Hamiltons, and more patience with its links:

```toml
[topology]
chain = 3

[[node]]
id = 2
profile = \"telosb\"
link_attempts = 16

[[flow]]
```

## `[sweep]`

Any key above but `name`, `seed`, `seeds` and those of `[[node]]`, by its full name, with a list
of values. Every combination is a point, and every point is run with every seed, on all cores.
There may be 10,000 points, and 100,000 runs in all.

```toml
[sweep]
\"topology.chain\" = [1, 2, 3, 4]
stack.retry_delay_ms = [0, 40]
```

`flow.KEY` is set in all flows.

## Faults

```toml
[[fault]]
kind = \"off\"
node = 1
at_s = 20
for_s = 15
```

A node that is off is silent and deaf, and a frame that it was sending breaks off. It comes back by
a cold start: same EUI-64 and settings, an empty memory, other random numbers. It joins again; what
ran on it begins anew.

A flow whose end is switched off loses its connection (`connections_lost`; the table says `anew`)
and begins anew when the node is back. The end that the fault has spared learns of the loss as its
TCP does, and connects or accepts again; while nobody answers it tries once a second. A transfer
with `bytes` is sent from its first byte, and its `finished_s` counts from its first start. Messages
go on, but a mote that is off makes none. A flow whose path has a fault, but not its ends, has to
live with it: its connection survives, or TCP gives it up and the run fails.

A push (`kind = \"push\"`) goes on where the mote's flash was when its power went, over CoAP from its first
block; `resent_bytes` counts what went again.

Routes stay as they are, so that a mote behind a node that is off is cut off as well.

## What comes out

The terminal shows a line for each point and flow, and one for each point with the totals of its
flows (`all`). Figures are means over the seeds; with several seeds the half-width of the 95 %
confidence interval follows. Without a sweep a second table shows what each node of the first run
spent. Above 40 flows, flows that are alike share a line, from the best to the worst (`p50`: half of
them do at least as well, `p95`: nineteen of twenty), and the ten worst follow. Columns that the
terminal has no room for are named below the table. `motet run --help` lists the options.

Flows are alike when they have the same kind, direction (`up`: to the host, `down`: from it,
`across`: between motes), radio hops and sizes. Means and percentiles are over nothing else.

How a flow ended is its `outcome`:

| outcome | meaning |
|---|---|
| `complete` | a transfer with `bytes` arrived whole |
| `running` | it was under way when the time was over; a flow without `bytes` always is |
| `refused`, `reset`, `timed_out`, `unreachable` | TCP gave its connection up |
| `switched_off` | a `[[fault]]` has switched one of its ends off for good |

A flow that TCP gave up fails its run: exit status 1, one sentence, and `complete` is false. A
transfer that time cut short does not; the table counts those, and flows that delivered nothing.

- `--json`, or `--json PATH` for a file: one JSON object a line. `schema` is the version of
  its keys, which grows when one goes or changes its meaning; `record` is its kind: `run` (totals
  of one run: goodput; what it cannot exceed, `bound_kbps`, null with several flows, with one that is no bulk transfer, with
  RPL, where links change, and with TCPlE, since no path or no order of frames is known in advance;
  with `--reachable`, and beside a bound, `reachable_kbps`, what this network carried with the best
  pace and window of a search, or this run if that was more, and no more than the bound: the rest of the gap is not the pace's;
  losses by cause, how many flows ended how; `timeouts`, TCP's retransmission timeouts at both ends
  of the flows; `retransmitted`, the share of segments that their senders sent again), `flow` (how it ended, when, how
  many connections it lost, `messages`, how many were due and how many of these came, how old they were, what it cost), `node` (its parent, when it
  joined; frames, retransmissions and drops by reason, radio states, energy), `link` (what became
  of its frames), `move` (a node's parent became another one: when, `from`, `to`), `sample`
  (goodput, RTT, window of a flow over time; of the first seed of each point only), `group` (a metric over flows that are
  alike: its mean, and from the best flow to the worst) and `summary` (a metric over the seeds of
  a point, of a flow or, where `flow` is null, of all together). `complete` says whether every
  seed ran to its end and no flow failed.
- `--out DIR`: `report.html`, one page without external resources, to look at: of a lone run each
  flow, and each fault with the longest time in which a bulk flow brought nothing behind it; its
  plots as SVG files; `results.jsonl`, the same lines as above after a first one of record `provenance`: version,
  revision, date, command, seeds, the files that were read with their SHA-256, and the whole scenario
  with all that the command line changed. `motet run DIR/results.jsonl` repeats the run from that line.
- `--pcap PATH`, `--wire-pcap PATH`: the air (with channel and signal strength at the receiver)
  and the border router's wire of the first run, as Wireshark reads them.

Counts leave out the warm-up, but messages and datagrams count from the start. `cwnd` is the
congestion window as far as the sender's buffer and the peer's window let it be used. Goodput of
a flow with `bytes` is that of its whole transfer, of others what was read after the warm-up;
that of all together is what was read after the warm-up.

Of a node, `parent` is the last one that it had, `hops` the way to the border router by such
parents, `etx` the expected transmissions of a frame to the parent as its link has counted them,
`joined_s` the time from the last switching on until it had an address and a parent, and
`parent_changes` how often another parent followed. `control_frames` are the frames and link ACKs
without TCP, UDP or echo, each attempt counted, and `control_s` their time on the air.

Of a flow, `hops` counts the radio hops of its path: by the scenario's parents, or with
`joining = \"rpl\"` by the last parents that nodes had, up to the receiver or to the border router, which
alone knows the ways down. A flow whose path differs between seeds is grouped by its hops in each run.

The age of a message (`latency`) runs from its making to its last byte being read or, of a request,
to its answer. Percentiles are exact to half a percent. Over several seeds the greatest age is the
greatest of all. The energy of a flow is its share of the energy that the nodes on its path used
after the warm-up, radio and processor, listening included. A node's energy is divided among the
flows that pass it, by the bytes that each delivered.

A picture has no more than eight lines. Sweeps with more are drawn in panels, one for each value
of another swept key, or as the band that all lie within; many flows by those that are alike.

Without `--force` no file is overwritten; a file that the run reads is never overwritten. `--force`
removes plots of an earlier run from `--out`. A run that is cut short (Ctrl-C) writes its results so
far, marked incomplete, and whole captures up to that moment.
";
