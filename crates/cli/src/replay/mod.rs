//! `motet replay`: the network of a capture, as a scenario.
//!
//! Place: `motet-decode` says what the capture shows; [`text`] writes it in the words of a
//! scenario. What no capture shows, such as the radio and who disturbs whom, [`fit`] finds out by
//! running it. Left out: settings of CSMA.

mod fit;
mod guess;
mod text;

use std::path::PathBuf;

use motet_decode::{CaptureError, Examiner};

use self::text::scenario;
use crate::error::Error;
use crate::import;
use crate::source::Source;

/// Make a scenario of a capture: its nodes, links with their losses over time, and flows.
///
/// Running the scenario gives a network like the one that was captured. Retries show how often
/// attempts fail; what is missing in the sequence of a node's frames, how much the sniffer missed.
/// What part of it the links lose, the rest being collisions, and which radio the nodes have, is
/// found out by running the scenario some times. Where the capture shows no more, defaults stand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet replay air.pcap | motet run -\n  \
                        motet replay home.pcap --key team.key --out again.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Write the scenario to this file.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

/// Runs `motet replay`.
///
/// # Errors
/// [`Error::Input`]: the file is no capture, or shows no network.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    // Before some seconds of work.
    import::check_free(args.out.as_deref(), args.force)?;
    let unreadable = |error: CaptureError| args.source.unreadable(&error);
    let (mut capture, mut decoder) = args.source.open(false)?;
    let mut examiner = Examiner::new();
    while let Some(record) = capture.next_record() {
        let record = record.map_err(unreadable)?;
        if !record.link_type.is_supported() {
            return Err(unreadable(CaptureError::LinkType(record.link_type)));
        }
        examiner.observe(&decoder.decode(&record));
    }
    let name = args.source.file.display().to_string();
    let seen = examiner.seen();
    if seen.nodes.len() < 2 || seen.links.is_empty() {
        return Err(Error::input(format!(
            "{name} shows no mesh: no two nodes of IEEE 802.15.4 acknowledge each other's frames"
        )));
    }
    let guess = fit::fitted(&seen, &name);
    import::write(
        &scenario(&seen, &name, &guess),
        args.out.as_deref(),
        args.force,
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use motet_decode::{Capture, Decoder, Seen};
    use motet_lab::capture::{Capture as LabCapture, Records};
    use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

    use super::guess::{Guess, Pairs, Part, pairs};
    use super::*;

    /// What the air of a scenario shows.
    fn seen(text: &str) -> Seen {
        sniffed(text, 0)
    }

    /// What it shows a sniffer that misses so many of a hundred frames, at random.
    fn sniffed(text: &str, missed: u64) -> Seen {
        let plan = Plan::parse(text, Path::new("s.toml"), Overrides::default());
        let plan = plan.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("air.pcap");
        let file = std::fs::File::create(&path).unwrap();
        let captures = Captures {
            air: Some(LabCapture::stream(Box::new(file), Records::Frames).unwrap()),
            ..Captures::default()
        };
        let watch = Watch {
            stop: &AtomicBool::new(false),
            done_ms: &AtomicU64::new(0),
        };
        plan.run(&watch, captures);
        let mut decoder = Decoder::new(&[]);
        let mut examiner = Examiner::new();
        let mut rng = motet::random::Rng::from_seed([7, 7]);
        for record in Capture::of_bytes(std::fs::read(&path).unwrap()).unwrap() {
            let record = record.unwrap();
            if u64::from(rng.below(100)) >= missed {
                examiner.observe(&decoder.decode(&record));
            }
        }
        examiner.seen()
    }

    #[test]
    fn frames_that_a_sniffer_missed_are_counted() {
        // A header that travels compressed is restored from earlier ones, and some of these are
        // missing: few segments of such a flow are counted.
        let text = "seed = 31\nduration_s = 40\n[topology]\nchain = 2\n[radio]\nframe_loss = 0.1\n[stack]\n\
                    compression = \"none\"\n[[flow]]\n";
        let [whole, share] = [sniffed(text, 0), sniffed(text, 15)];
        let attempts = |seen: &Seen| {
            let up = seen
                .links
                .iter()
                .find(|link| (link.from, link.to) == (2, 1));
            up.map(|link| link.attempts / link.frames).unwrap()
        };
        let [whole_rate, share_rate] = [attempts(&whole), attempts(&share)];
        assert!(whole_rate > 1.2, "{whole_rate}");
        assert!(
            (share_rate / whole_rate - 1.0).abs() < 0.05,
            "{whole_rate} became {share_rate}"
        );
        let [a, b] = [&whole, &share].map(|seen| seen.flows[0].bytes as f64);
        assert!((b / a - 1.0).abs() < 0.02, "{a} B became {b}");
        assert!(share.flows[0].messages.is_none(), "{share:?}");
    }

    #[test]
    fn retries_of_a_flows_begin_are_no_loss_of_links() {
        let links = [
            (0, 1, -62.0),
            (1, 2, -97.6),
            (2, 3, -62.0),
            (0, 2, -87.0),
            (1, 3, -87.0),
        ];
        let both = links.map(|(a, b, gain)| format!("[{a}, {b}, {gain}], [{b}, {a}, {gain}], "));
        let text = format!(
            "seed = 405\nduration_s = 30\n[topology]\nlinks = [{}]\n[[flow]]\n",
            both.concat()
        );
        let seen = sniffed(&text, 12);
        let all = Vec::from_iter(0..seen.nodes.len());
        let [whole, settled] = [Part::Whole, Part::Settled].map(|part| pairs(&seen, &all, part));
        let rate = |pairs: &Pairs| {
            let retries: f64 = pairs
                .values()
                .map(|(frames, attempts)| attempts - frames)
                .sum();
            retries / pairs.values().map(|(frames, _)| frames).sum::<f64>()
        };
        let rates = [&whole, &settled].map(rate);
        assert!(rates[0] > 0.02 && rates[1] < 0.5 * rates[0], "{rates:?}");
        assert!(Guess::of(&seen).lossy(&settled).is_none(), "{settled:?}");
    }

    #[test]
    fn links_lose_alike_no_more_than_the_best_one_shows() {
        let seen = sniffed("duration_s = 8\n[topology]\nchain = 2\n[[flow]]\n", 0);
        let shown = Pairs::from([((0, 1), (1000.0, 1001.0)), ((1, 2), (1000.0, 1200.0))]);
        let mut guess = Guess::of(&seen);
        guess.even_loss = 0.01;
        let lab = Pairs::from([((0, 1), (1000.0, 1000.0)), ((1, 2), (1000.0, 1000.0))]);
        let nearer = guess.nearer(&shown, &lab);
        assert!(nearer.even_loss < 0.001, "{nearer:?}");
        assert!(nearer.delivery[&(1, 2)] < 0.95, "{nearer:?}");
        assert!(guess.lossy(&shown).is_none());
    }

    fn kbps(seen: &Seen) -> f64 {
        let bytes: u64 = seen.flows.iter().map(|flow| flow.bytes).sum();
        bytes as f64 * 8e-3 / seen.duration_s
    }

    #[test]
    fn a_replay_carries_what_the_captured_network_did() {
        let chain =
            |hops: u32, more: &str| format!("duration_s = 24\n[topology]\nchain = {hops}\n{more}");
        let cases = [
            chain(1, "[[flow]]\n"),
            chain(3, "[[flow]]\n"),
            chain(2, "[[flow]]\nfrom = \"host\"\nto = 2\n"),
            chain(3, "joining = \"rpl\"\n[[flow]]\n"),
            chain(2, "[wire]\nloss = 0.06\n[[flow]]\n"),
            chain(3, "[stack]\nwindow_segments = 1\n[[flow]]\n"),
            chain(
                2,
                "[[flow]]\nkind = \"periodic\"\ninterval_s = 2\nmessage_bytes = 900\n",
            ),
            chain(
                3,
                "[[fault]]\nkind = \"link\"\nnode = 2\nto = 1\nat_s = 10\nfor_s = 8\n[[flow]]\n",
            ),
        ];
        for case in cases {
            let before = seen(&case);
            let replay = scenario(&before, "air.pcap", &fit::fitted(&before, "air.pcap"));
            let [before, after] = [kbps(&before), kbps(&seen(&replay))];
            let change = after / before - 1.0;
            assert!(
                change.abs() < 0.15,
                "{before:.1} became {after:.1}:\n{case}\n{replay}"
            );
        }
    }

    #[test]
    fn a_network_without_flows_has_a_scenario_too() {
        let mut quiet = seen("duration_s = 10\n[topology]\nchain = 2\n[[flow]]\nbytes = 100\n");
        quiet.flows.clear();
        quiet.duration_s = 0.5;
        let text = scenario(&quiet, "a \"name\".pcap", &Guess::of(&quiet));
        let plan = Plan::parse(&text, Path::new("s.toml"), Overrides::default());
        assert!(
            plan.is_ok(),
            "{:?}\n{text}",
            plan.err().map(|error| error.to_string())
        );
    }
}
