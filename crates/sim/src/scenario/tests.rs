use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::document::Document;
use super::*;

#[path = "tests/hostile.rs"]
mod hostile;

fn plan(text: &str) -> Result<Plan, ScenarioError> {
    let file = Path::new("test.toml");
    Document::parse(text, file)
        .and_then(|document| Plan::new(document, Overrides::default()))
        .map_err(|error| error.within(file))
}

fn results(plan: &Plan) -> Vec<RunResult> {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.run(&watch, Captures::default())
}

const CHAIN: &str = "duration_s = 10\nwarmup_s = 2\n[topology]\nchain = 2\n[[flow]]\n";

#[test]
fn every_default_is_a_value_its_key_may_have() {
    for section in keys::SECTIONS {
        for key in section.keys {
            if let Some(default) = key.default {
                let value = key.default_value();
                let value = value.unwrap_or_else(|| panic!("{}: {default} is no TOML", key.name));
                assert!(key.accept(&value).is_ok(), "{} = {default}", key.name);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let cases: &[(&str, &[&str])] = &[
        ("duratoin_s = 3", &["duratoin_s", "`duration_s`"]),
        ("xyzzy = 3", &["xyzzy", "only name"]),
        ("duration_s = -5", &["duration_s is -5", "from 0.1"]),
        (
            "duration_s = \"long\"",
            &["duration_s is \"long\"", "a number"],
        ),
        ("duration_s = nan", &["duration_s is nan", "a number"]),
        (
            "duration_s = 1\nwarmup_s = 5",
            &["warmup_s is 5", "less than"],
        ),
        (
            "[topology]\nchain = 1\n[[flow]]\nkind = \"udp\"\nmessage_bytes = 2000",
            &["flow.message_bytes is 2000", "at most 1024"],
        ),
        (
            "[topology]\nchain = 1\n[[flow]]\nkind = \"bulky\"",
            &["flow.kind is \"bulky\"", "\"request\""],
        ),
        (
            "[topology]\nchain = 1\n[[flow]]\nstart_s = 60",
            &["flow.start_s is 60", "less than duration_s"],
        ),
        (
            "sample_s = 0.0001",
            &["sample_s is 0.0001", "at least 0.01"],
        ),
        ("[sweep]\nseeds = [1, 2]", &["seeds cannot be swept"]),
        ("seeds = 0", &["seeds is 0", "1 to"]),
        (
            "[stack]\nretry_delay = 4",
            &["retry_delay", "`retry_delay_ms`"],
        ),
        (
            "[stack]\nretry_delay_ms = -4",
            &["stack.retry_delay_ms is -4", "0 to 10000"],
        ),
        (
            "[stack]\ncompression = \"rohc\"",
            &["stack.compression", "\"tcphc\""],
        ),
        (
            "[stack]\nrelaying = \"cit\"",
            &["stack.relaying", "\"reassembly\""],
        ),
        (
            "[stack]\ncongestion = \"bbr\"",
            &["stack.congestion is \"bbr\"", "\"reno\"", "\"cubic\""],
        ),
        ("[stak]\n", &["stak", "`stack`"]),
        ("stack = 3", &["[stack]"]),
        ("[flow]\n", &["[[flow]]"]),
        ("[topology]\n[[flow]]", &["[topology]", "chain, positions"]),
        ("[topology]\nchain = 2", &["no [[flow]]"]),
        (
            "[topology]\nchain = 2\nmatrix = \"a\"\n[[flow]]",
            &["several"],
        ),
        (
            "[topology]\nchain = 0\n[[flow]]",
            &["topology.chain is 0", "1 to 32"],
        ),
        (
            "[topology]\nchain = 2\nparents = [0]\n[[flow]]",
            &["parents has 1", "2"],
        ),
        (
            "[topology]\nchain = 2\nparents = [2, 1]\n[[flow]]",
            &["circle"],
        ),
        (
            "[topology]\npositions = [[0, 0], [5]]\n[[flow]]",
            &["positions", "[x, y]"],
        ),
        (
            "[topology]\npositions = [[0, 0], [5, 0], [900, 0]]\n[[flow]]",
            &["[topology]", "node 2"],
        ),
        ("[topology]\npositions = [[0, 0]]\n[[flow]]", &["1 nodes"]),
        (
            "[topology]\nmatrix = \"none.csv\"\n[[flow]]",
            &[
                "test.toml",
                "topology.matrix is \"none.csv\"",
                "no such file",
            ],
        ),
        (
            "[topology]\nchain = 2\n[[flow]]\nfrom = 3",
            &["flow.from is 3", "1 to 2"],
        ),
        (
            "[topology]\nchain = 2\n[[flow]]\nfrom = \"host\"",
            &["differ"],
        ),
        (
            "[topology]\nchain = 2\n[[flow]]\nfrom = \"router\"",
            &["flow.from", "\"host\""],
        ),
        (
            "[topology]\nchain = 2\n[[flow]]\n[[node]]\nid = 9",
            &["node.id is 9", "0 to 2"],
        ),
        (
            "[topology]\nchain = 2\n[[flow]]\n[[node]]\nnagle = true",
            &["[[node]] 1", "no node.id"],
        ),
        (
            "[topology]\nchain = 2\n[[flow]]\n[[node]]\nid=1\n[[node]]\nid=1",
            &["[[node]] 2", "node.id is 1", "another [[node]]"],
        ),
        (
            "[sweep]\n\"stack.mss\" = [1]",
            &["stack.mss", "`stack.mss_frames`"],
        ),
        (
            "[sweep]\nstack.mss_frames = 3",
            &["sweep.stack.mss_frames", "list"],
        ),
        (
            "[sweep]\nstack.mss_frames = []",
            &["sweep.stack.mss_frames", "empty"],
        ),
        (
            "[sweep]\nstack.mss_frames = [3, 90]",
            &["mss_frames is 90", "1 to 12"],
        ),
        ("chain = = 3", &["line 1"]),
        ("\n\n[topology\n", &["line 3"]),
        ("seeds = 1\nseeds = 2", &["line 2"]),
    ];
    for (text, words) in cases {
        let error = plan(text).expect_err(text).to_string();
        assert!(
            error.contains("test.toml") || error.contains("none.csv"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
        for word in *words {
            assert!(error.contains(word), "no {word:?}: {error}");
        }
    }
}

#[test]
fn a_broken_matrix_is_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, matrix) = (folder.path().join("s.toml"), folder.path().join("m.csv"));
    std::fs::write(&scenario, "[topology]\nmatrix = \"m.csv\"\n[[flow]]\n").unwrap();
    let cases = [
        ("- -60\n-60\n", "line 2 has 1 numbers"),
        ("- -60\nx -\n", "line 2 has x"),
        ("- 60\n-60 -\n", "line 1 has 60"),
        ("- -150\n-150 -\n", "node 1"),
        ("", "0 nodes"),
    ];
    for (text, word) in cases {
        std::fs::write(&matrix, text).unwrap();
        let error = Plan::read(&scenario, Overrides::default()).unwrap_err();
        assert!(error.to_string().contains(word), "no {word:?}: {error}");
    }
    std::fs::write(&matrix, "# two nodes\n-, -60\n-60, -\n").unwrap();
    let plan = Plan::read(&scenario, Overrides::default()).unwrap();
    assert_eq!(plan.points[0].scenario.network.gains.get(0, 1), Some(-60.0));
}

#[test]
fn broken_traces_are_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("s.toml");
    let head = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n";
    let links = "2018-01-11 16:00:00,0,1,26,-60,1.0,100\n2018-01-11 16:00:00,1,0,26,-60,1.0,100\n";
    let k7 = "[topology]\nk7 = \"t\"\n[[flow]]\n";
    let noise = "[topology]\nchain = 1\n[[flow]]\n[interference]\n";
    let cases = [
        (
            k7,
            format!("{head}{links}2018-01-11,0,1,26,-60,1.0,100\n"),
            "line 5 is \"2018-01-11,0,1,26,-60,1.0,100\", but must be datetime",
        ),
        (
            k7,
            format!("{head}{}", links.replace(",26,", ",11,")),
            "no link on channel 26",
        ),
        (
            k7,
            format!("{head}{}", links.replace("1.0", "0.0")),
            "node 1",
        ),
        (noise, String::new(), "[interference] has no trace"),
        (
            &*format!("{noise}trace = \"t\""),
            "-98\nloud\n".into(),
            "line 2 is \"loud\", but must be a power",
        ),
        (
            &*format!("{noise}trace = \"t\""),
            String::new(),
            "has no sample",
        ),
        (
            &*format!("{noise}trace = \"u\""),
            String::new(),
            "no such file",
        ),
        (
            &*format!("{noise}trace = \"t\"\nnodes = [7]"),
            "-98".into(),
            "interference.nodes has 7",
        ),
    ];
    for (text, trace, words) in cases {
        std::fs::write(&scenario, text).unwrap();
        std::fs::write(folder.path().join("t"), trace).unwrap();
        let error = Plan::read(&scenario, Overrides::default()).unwrap_err();
        assert!(error.to_string().contains(words), "no {words:?}: {error}");
    }
    std::fs::write(&scenario, format!("duration_s = 20\n{k7}")).unwrap();
    std::fs::write(folder.path().join("t"), format!("{head}{links}")).unwrap();
    let plan = Plan::read(&scenario, Overrides::default()).unwrap();
    assert!(results(&plan)[0].goodput_kbps() > 40.0);
}

#[test]
fn interference_costs_goodput_where_it_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("s.toml");
    // A burst of 3 ms every 40 ms.
    let trace = format!("{}{}", "-50\n".repeat(3), "-98\n".repeat(37));
    std::fs::write(folder.path().join("noise.txt"), trace).unwrap();
    let goodput = |interference: &str| {
        let text = format!("duration_s = 20\n[topology]\nchain = 1\n[[flow]]\n{interference}");
        std::fs::write(&scenario, text).unwrap();
        let plan = Plan::read(&scenario, Overrides::default()).unwrap();
        results(&plan)[0].goodput_kbps()
    };
    let quiet = goodput("");
    let loud = goodput("[interference]\ntrace = \"noise.txt\"");
    let weak = goodput("[interference]\ntrace = \"noise.txt\"\noffset_db = -60");
    assert!(loud < 0.9 * quiet && loud > 5.0, "{loud}, not {quiet} kb/s");
    assert_eq!(weak, quiet, "below everyone's own noise");
}

#[test]
fn settings_of_queues_and_csma_reach_the_nodes() {
    let text = format!(
        "{CHAIN}[stack]\nqueue = \"red\"\nlink_attempts = 3\nbe_min = 2\nbe_max = 4\n\
         csma_backoffs = 7\nack_wait_us = 7812\n[[node]]\nid = 1\nqueue = \"red-drop\"\ndeaf_backoff = true\n"
    );
    let nodes = &plan(&text).unwrap().points[0].scenario.network.nodes;
    let red = motet::ip::queue::Red::MOTE;
    let disciplines = [red, red.dropping(), red].map(motet::ip::queue::Discipline::Red);
    for (node, discipline) in nodes.iter().zip(disciplines) {
        let mac = &node.mac;
        assert_eq!(node.discipline, discipline);
        assert_eq!((mac.attempts_max, mac.be_min, mac.be_max), (3, 2, 4));
        assert_eq!(
            (mac.csma_backoffs_max, mac.ack_wait.as_micros()),
            (7, 7_812)
        );
        assert_eq!(mac.deaf_backoff, node.name == "1");
    }
}

/// Every algorithm that the stack has is a choice, and reaches the TCP of its node alone.
#[test]
fn congestion_control_reaches_the_nodes() {
    use motet::tcp::{Config, CongestionAlgorithm};
    for algorithm in CongestionAlgorithm::ALL {
        let name = algorithm.name();
        let text = format!("{CHAIN}[[node]]\nid = 2\ncongestion = \"{name}\"\n");
        let stacks = &plan(&text).unwrap().points[0].scenario.stacks;
        let chosen = |node: usize| {
            let mut config = Config::DEFAULT;
            stacks[node].apply(&mut config);
            config.congestion_algorithm
        };
        let reno = CongestionAlgorithm::NewReno;
        assert_eq!([chosen(1), chosen(2)], [reno, *algorithm]);
    }
}

/// Two waits for a next attempt may be longer than frames may live.
#[test]
fn frames_that_got_too_old_are_counted_as_such() {
    let stack = "stack.retry_delay_ms = 100\nstack.frame_age_ms = 100\n";
    let text = format!("{stack}radio.frame_loss = 0.3\n{CHAIN}");
    let [run] = &results(&plan(&text).unwrap())[..] else {
        panic!("one run");
    };
    let named = |name| DROPS.iter().position(|drop| *drop == name);
    let at = named("link gave up: frame too old").unwrap();
    let too_old = run.nodes.iter().map(|node| node.counts.drops[at]);
    assert!(too_old.sum::<u64>() > 0);
}

#[test]
fn compression_shortens_what_a_flow_of_known_length_needs() {
    let text =
        format!("{CHAIN}bytes = 20_000\n[sweep]\nstack.compression = [\"none\", \"tcphc\"]\n");
    let plan = plan(&text).unwrap();
    let [plain, compressed] = &results(&plan)[..] else {
        panic!("two points, one seed")
    };
    assert!(plain.flows[0].intact && compressed.flows[0].intact);
    let transmitted = |run: &RunResult| {
        let nodes = run.nodes.iter();
        nodes.map(|node| node.counts.transmissions).sum::<u64>()
    };
    let [plain, compressed] = [plain, compressed].map(transmitted);
    assert!(compressed < plain, "{compressed} frames over {plain}");
}

#[test]
fn a_sweep_is_every_combination() {
    let text = format!(
        "seeds = 3\n{CHAIN}[sweep]\n\"topology.chain\" = [1, 2]\nstack.retry_delay_ms = [0, 5, 40]\n"
    );
    let plan = plan(&text).unwrap();
    assert_eq!(
        (plan.points.len(), plan.runs(), &plan.seeds[..]),
        (6, 18, &[1, 2, 3][..])
    );
    let values: Vec<String> = plan
        .points
        .iter()
        .map(|point| {
            let of = |(key, value): &(String, toml::Value)| format!("{key}={value}");
            point.values.iter().map(of).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(values[0], "topology.chain=1 stack.retry_delay_ms=0");
    assert_eq!(values[5], "topology.chain=2 stack.retry_delay_ms=40");
    let last = &plan.points[5].scenario;
    assert_eq!((last.stacks.len(), last.stacks[0].retry_delay_ms), (3, 40));
}

#[test]
fn one_node_may_differ() {
    let text = format!("{CHAIN}[[node]]\nid = 2\nmss_frames = 3\n[stack]\nlink_attempts = 3\n");
    let stacks = &plan(&text).unwrap().points[0].scenario.stacks;
    let frames: Vec<u8> = stacks.iter().map(|stack| stack.mss_frames).collect();
    assert_eq!(frames, [5, 5, 3]);
    assert!(stacks.iter().all(|stack| stack.link_attempts == 3));
}

/// What a chain of two hops says of a key, and what must be said of it.
#[test]
fn a_key_that_its_node_has_no_use_for_is_refused() {
    let up = "[topology]\nchain = 2\n[[flow]]\n";
    let down = "[topology]\nchain = 2\n[[flow]]\nfrom = \"host\"\nto = 2\n";
    let asked = "[topology]\nchain = 2\n[[flow]]\nkind = \"request\"\n";
    let datagrams = "[topology]\nchain = 2\n[[flow]]\nkind = \"udp\"\n";
    let near = "[topology]\nchain = 1\n[[flow]]\n";
    let motes = "[topology]\nchain = 3\n[[flow]]\nfrom = 3\nto = 1\n";
    let telosb = "[topology]\nchain = 2\n[radio]\nprofile = \"telosb\"\n[[flow]]\n";
    let cases: [(&str, &str, Option<&str>); 33] = [
        (up, "[stack]\nnagle = false", None),
        (
            up,
            "[stack]\nack_every = 4",
            Some("stack.ack_every is 4, but must be left out: no node receives"),
        ),
        (up, "[stack]\nack_every = 2", None),
        (down, "[stack]\nack_every = 4", None),
        (asked, "[stack]\nack_every = 4", None),
        (
            down,
            "[stack]\nnagle = false",
            Some("no node sends data over TCP"),
        ),
        (up, "[stack]\ncongestion = \"cubic\"", None),
        (
            down,
            "[stack]\ncongestion = \"cubic\"",
            Some("no node sends data over TCP"),
        ),
        (
            datagrams,
            "[stack]\nsack = false",
            Some("no node is an end of a TCP connection"),
        ),
        (
            datagrams,
            "[stack]\ncompression = \"tcphc\"",
            Some("stack.compression"),
        ),
        (datagrams, "[stack]\nlink_attempts = 2", None),
        (datagrams, "[stack]\nrelaying = \"reassembly\"", None),
        (
            near,
            "[stack]\nrelaying = \"reassembly\"",
            Some("no node passes on packets of others"),
        ),
        (
            near,
            "[stack]\nhold_ms = 7",
            Some("no node has two hops ahead"),
        ),
        (near, "[stack]\nhold_ms = 0", None),
        (
            up,
            "[stack]\nforwarding = \"cit\"",
            Some("a radio that can keep a frame"),
        ),
        (up, "[stack]\nforwarding = \"copy\"", None),
        (telosb, "[stack]\nforwarding = \"cit\"", None),
        (
            up,
            "[sweep]\nstack.ack_every = [1, 2]",
            Some("sweep.stack.ack_every is [1, 2]"),
        ),
        (
            up,
            "[sweep]\nstack.hold_ms = [0, 7]\ntopology.chain = [1, 2]",
            None,
        ),
        (
            up,
            "[sweep]\nstack.forwarding = [\"copy\", \"cit\"]",
            Some("sweep.stack.forwarding"),
        ),
        (
            up,
            "[sweep]\nstack.forwarding = [\"cit\"]\nradio.profile = [\"hamilton\", \"telosb\"]",
            None,
        ),
        (
            up,
            "[[node]]\nid = 1\nwindow_segments = 6",
            Some(
                "[[node]] 1: node.window_segments is 6, but must be left out: node 1 is none that is an end",
            ),
        ),
        (up, "[[node]]\nid = 2\nwindow_segments = 6", None),
        (up, "[[node]]\nid = 1\nwindow_segments = 4", None),
        (up, "[[node]]\nid = 0\ncompression = \"tcphc\"", None),
        (
            up,
            "[[node]]\nid = 1\ncompression = \"tcphc\"",
            Some("node 1 is none that is an end of TCP's path"),
        ),
        (
            up,
            "[[node]]\nid = 2\nrelaying = \"reassembly\"",
            Some("node 2 is none that passes on"),
        ),
        (
            up,
            "[[node]]\nid = 1\nprofile = \"telosb\"\nforwarding = \"cit\"",
            None,
        ),
        (
            up,
            "[[node]]\nid = 1\nforwarding = \"cit\"",
            Some("telosb, nrf52840"),
        ),
        (motes, "[[node]]\nid = 2\nrelaying = \"reassembly\"", None),
        (motes, "[[node]]\nid = 1\nack_every = 4", None),
        (
            motes,
            "[[node]]\nid = 0\nrelaying = \"reassembly\"",
            Some("node 0 is none that passes on"),
        ),
    ];
    for (base, more, refused) in cases {
        let text = format!("{base}{more}\n");
        match (plan(&text), refused) {
            (Ok(_), None) => {}
            (Err(error), Some(words)) => {
                let sentence = error.to_string();
                assert!(sentence.starts_with("test.toml: "), "{sentence}");
                assert!(sentence.contains(words), "{more}: {sentence}");
            }
            (Ok(_), Some(words)) => panic!("{more}: accepted, not \"{words}\""),
            (Err(error), None) => panic!("{more}: {error}"),
        }
    }
}

#[test]
fn no_retry_waits_for_longer_than_its_frame_lives() {
    let long = "[stack]\nretry_delay_ms = 5000\n";
    let refused = [
        (
            long.to_owned(),
            "stack.retry_delay_ms is 5000, but must be at most stack.frame_age_ms, which is 2000",
        ),
        (format!("{long}frame_age_ms = 4999\n"), "which is 4999"),
        (
            "[[node]]\nid = 1\nframe_age_ms = 30\n".to_owned(),
            "[[node]] 1: node.retry_delay_ms is 40",
        ),
        (
            format!("{long}frame_age_ms = 5000\ncompression = \"tcphc\"\n"),
            "at most 2000 where compression",
        ),
    ];
    for (more, words) in refused {
        let error = plan(&format!("{CHAIN}{more}")).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let text = format!("{CHAIN}{long}frame_age_ms = 20000\n");
    let nodes = &plan(&text).unwrap().points[0].scenario.network.nodes;
    assert!(
        nodes
            .iter()
            .all(|node| node.mac.frame_age_max.as_millis() == 20_000)
    );
}

#[test]
fn the_documentation_is_in_step() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenarios.md");
    let text = documentation();
    if std::env::var_os("MOTET_WRITE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/scenarios.md is not in step: MOTET_WRITE_DOCS=1 cargo test -p motet-lab documentation"
    );
}

#[test]
fn nodes_may_have_different_radios() {
    use crate::air::profile::Profile;
    let text = format!("{CHAIN}[[node]]\nid = 1\nprofile = \"telosb\"\n");
    let plan = plan(&text).unwrap();
    let nodes = &plan.points[0].scenario.network.nodes;
    let profiles: Vec<Profile> = nodes.iter().map(|node| node.profile).collect();
    assert_eq!(
        profiles,
        [Profile::HAMILTON, Profile::TELOSB, Profile::HAMILTON]
    );
    let [run] = &results(&plan)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.failure.is_none(), "{:?}", run.failure);
    assert!(run.flows[0].goodput_kbps > 10.0, "{:?}", run.flows[0]);
    // Three volts; a CC2420 listens with 18.8 mA, an AT86RF233 with 11.8.
    let radio_mw = |node: usize| run.nodes[node].counts.power_mw()[0];
    assert!((50.0..60.0).contains(&radio_mw(1)), "{}", radio_mw(1));
    assert!((30.0..40.0).contains(&radio_mw(2)), "{}", radio_mw(2));
}

#[test]
fn a_mesh_that_does_not_join_in_time_is_no_complete_run() {
    let plan = plan(&format!("join_s = 1\n{CHAIN}[radio]\nframe_loss = 1.0\n")).unwrap();
    let [run] = &results(&plan)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.failure.is_some() && !run.complete);
    assert!(run.energy_mj().is_sign_positive(), "{}", run.energy_mj());
}

#[test]
fn a_run_measures_what_flows() {
    let plan = plan(CHAIN).unwrap();
    let [run] = &results(&plan)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.complete && run.failure.is_none(), "{:?}", run.failure);
    assert!((7.9..=8.1).contains(&run.seconds), "{}", run.seconds);
    let flow = &run.flows[0];
    // Two hops carry 27 kb/s (CALIBRATION.md); eight seconds vary.
    assert!(
        (20.0..34.0).contains(&flow.goodput_kbps),
        "{}",
        flow.goodput_kbps
    );
    assert!(flow.intact && flow.rtt_ms.is_some() && flow.cwnd_segments.is_some());
    assert_eq!(run.nodes.len(), 4);
    assert!(run.nodes[2].counts.transmissions > 100 && run.nodes[3].counts.transmissions == 0);
    assert!(
        run.links
            .iter()
            .any(|link| (link.from, link.to) == (2, 1) && link.delivered() > 0.5)
    );
    assert!(run.samples.len() >= 19, "{}", run.samples.len());
    let on_air: u64 = run.nodes[1].counts.states_us.iter().sum();
    assert!(on_air.abs_diff(8_000_000) < 200_000, "{on_air} µs");
    // 11.8 mA at 3 V and more for the processor; it never sleeps.
    let [radio_mw, cpu_mw] = run.nodes[1].counts.power_mw();
    assert!(
        (20.0..40.0).contains(&radio_mw) && cpu_mw > 0.0,
        "{radio_mw} {cpu_mw}"
    );
    assert!(run.nodes[1].counts.cpu_duty() > 0.01);
}

#[test]
fn every_profile_carries_data() {
    let text = format!(
        "{CHAIN}[sweep]\nradio.profile = [\"hamilton\", \"telosb\", \"nrf52840\", \"ideal\"]\n"
    );
    for run in results(&plan(&text).unwrap()) {
        assert!(
            run.failure.is_none() && run.goodput_kbps() > 5.0,
            "point {}",
            run.point
        );
    }
}

#[test]
fn flows_of_known_length_end_the_run() {
    let text = "duration_s = 300\nwarmup_s = 0\n[topology]\nchain = 1\n\
        [[flow]]\nfrom = \"host\"\nto = 1\nbytes = 5000\nstart_s = 2\n\
        [[flow]]\nfrom = 1\nto = \"host\"\nbytes = 3000\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.seconds < 30.0, "{}", run.seconds);
    assert_eq!(
        run.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(),
        [5000, 3000]
    );
    assert!(
        run.flows
            .iter()
            .all(|flow| flow.finished_s.is_some_and(|s| s < 10.0))
    );
}

#[test]
fn datagrams_arrive_beside_tcp() {
    let text = "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 2\n\
        [[flow]]\nkind = \"udp\"\nfrom = 1\ninterval_s = 0.5\n\
        [[flow]]\nkind = \"udp\"\nfrom = 2\nmessage_bytes = 200\n\
        [[flow]]\nfrom = \"host\"\nto = 1\nbytes = 3000\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.nodes.len() == 4);
    for (flow, made) in [(0, 119..=120), (1, 59..=60)] {
        let flow = &run.flows[flow];
        let [sent, received] = flow.messages.unwrap();
        assert!(
            made.contains(&sent) && received + 2 >= sent,
            "{received} of {sent}"
        );
        assert!(
            flow.latency_ms
                .is_some_and(|ms| (20.0..500.0).contains(&ms))
        );
    }
    assert_eq!(run.flows[1].bytes, 200 * run.flows[1].messages.unwrap()[1]);
    assert!(run.flows[2].finished_s.is_some() && run.flows[2].messages.is_none());
}

#[test]
fn a_mote_receives_several_flows_of_datagrams() {
    let text = "duration_s = 20\nwarmup_s = 0\n[topology]\nchain = 2\n\
        [[flow]]\nkind = \"udp\"\nfrom = \"host\"\nto = 1\n\
        [[flow]]\nkind = \"udp\"\nfrom = 2\nto = 1\ninterval_s = 2\nmessage_bytes = 30\n";
    let run = &results(&plan(text).unwrap())[0];
    let messages: Vec<[u64; 2]> = run.flows.iter().filter_map(|flow| flow.messages).collect();
    assert_eq!(messages, [[20, 20], [10, 10]]);
    assert_eq!(run.flows[1].bytes, 300);
}

#[test]
fn messages_over_tcp_arrive_and_are_answered() {
    let text = "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 2\n\
        [[flow]]\nkind = \"periodic\"\nfrom = 1\ninterval_s = 2\nmessage_bytes = 700\n\
        [[flow]]\nkind = \"request\"\nfrom = \"host\"\nto = 2\nmessage_bytes = 40\nanswer_bytes = 900\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.failure.is_none(), "{:?}", run.failure);
    for (flow, due, bytes) in [(0, 29..=30, 700), (1, 59..=60, 940)] {
        let flow = &run.flows[flow];
        let [made, arrived] = flow.messages.unwrap();
        assert!(
            due.contains(&made) && arrived + 2 >= made,
            "{arrived} of {made}"
        );
        assert!(
            flow.bytes.abs_diff(bytes * arrived) < bytes,
            "{}",
            flow.bytes
        );
        let latency = flow.latency_ms.unwrap();
        assert!((50.0..900.0).contains(&latency), "{latency} ms");
        assert!(flow.rtt_ms.is_some() && flow.intact);
    }
}

/// The node's own timer ends these connections, with no frame, packet or deadline of the
/// application at that moment.
#[test]
fn a_flow_that_nobody_answers_times_out_and_fails_the_run() {
    for flow in [
        "from = 1\nto = \"host\"\nbytes = 1000",
        "from = \"host\"\nto = 1\nbytes = 1000",
        "from = 1\nto = \"host\"\nkind = \"periodic\"\ninterval_s = 5000",
    ] {
        let text = format!(
            "duration_s = 400\nwarmup_s = 0\n[topology]\nchain = 1\n\
             [wire]\nloss = 1\n[[flow]]\n{flow}\n"
        );
        let run = &results(&plan(&text).unwrap())[0];
        let outcome = run.flows[0].outcome;
        assert_eq!(outcome, Outcome::TimedOut, "{flow}");
        assert!(!run.complete, "{flow}: a failed flow fails its run");
    }
    // Seven SYNs sent again, the timeout doubling up to 60 s: 1 + 2 + … + 32 + 60 + 60.
    let text = "duration_s = 2000\nwarmup_s = 0\n[topology]\nchain = 1\n\
        [wire]\nloss = 1\n[[flow]]\nfrom = 1\nbytes = 1000\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!((183.0..186.0).contains(&run.seconds), "{}", run.seconds);
}

#[test]
fn a_stopped_run_is_incomplete() {
    let plan = plan(CHAIN).unwrap();
    let (stop, done_ms) = (AtomicBool::new(true), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    assert!(plan.run(&watch, Captures::default()).is_empty());
}
