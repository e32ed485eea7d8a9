//! `motet run`: what it refuses, what it writes, and that nothing but seed and file decide.

use std::{fs, path::Path, process::Output};

use crate::common::{self, assert_refused, folder, motet, said};

const SMALL: &str = "duration_s = 8\nwarmup_s = 2\nseeds = 2\n[topology]\nchain = 2\n\
    [[flow]]\n[sweep]\nstack.retry_delay_ms = [0, 40]\n";

/// Runs a scenario of this text, from a folder of its own.
fn run(folder: &Path, text: &str, arguments: &[&str]) -> Output {
    fs::write(folder.join("s.toml"), text).unwrap();
    let mut command = motet();
    command.current_dir(folder).args(["run", "s.toml"]);
    command.args(arguments).output().unwrap()
}

fn records(text: &[u8], record: &str) -> Vec<serde_json::Value> {
    let lines = common::objects(text).into_iter();
    lines.filter(|line| line["record"] == record).collect()
}

#[test]
fn a_bad_scenario_is_refused_with_file_and_key() {
    let folder = folder();
    let chain = "[topology]\nchain = 2\n[[flow]]\n";
    let cases: &[(String, &[&str])] = &[
        (
            format!("duraton_s = 3\n{chain}"),
            &["s.toml", "duraton_s", "`duration_s`"],
        ),
        (
            format!("duration_s = -3\n{chain}"),
            &["duration_s is -3", "0.1 to"],
        ),
        (
            "[topology]\nmatrix = \"gone.csv\"\n[[flow]]".into(),
            &["s.toml", "topology.matrix is \"gone.csv\"", "no such file"],
        ),
        (
            "[topology]\npositions = [[0, 0], [3000, 0]]\n[[flow]]".into(),
            &["s.toml", "[topology]", "node"],
        ),
        ("= 3".into(), &["s.toml", "line 1"]),
    ];
    for (text, words) in cases {
        assert_refused(&run(folder.path(), text, &[]), 2, words);
    }
    let missing = motet().args(["run", "gone.toml"]).output().unwrap();
    assert_refused(&missing, 2, &["gone.toml", "no such file"]);
    let nothing = motet().arg("run").output().unwrap();
    assert_refused(&nothing, 2, &["SCENARIO.toml"]);
    for option in ["--seeds=0", "--duration=-1", "--seed=x"] {
        let name = option.split('=').next().unwrap();
        assert_refused(&run(folder.path(), chain, &[option]), 2, &[name]);
    }
}

/// Scenarios that a person may well write, and what the sentence about each has to name.
const WRONG: &[(&str, &[&str])] = &[
    // Keys that would do nothing there.
    (
        "[topology]\nchain = 2\n[[flow]]\n[[flow]]\nanswer_bytes = 9",
        &["[[flow]] 2", "flow.answer_bytes is 9", "\"request\""],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\nkind = \"udp\"\nbytes = 9",
        &["[[flow]] 1", "flow.bytes is 9", "\"bulk\""],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\ninterval_s = 2",
        &["flow.interval_s is 2", "\"periodic\" or"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[sweep]\nflow.message_bytes = [20]",
        &["sweep.flow.message_bytes", "\"udp\""],
    ),
    (
        "[topology]\nchain = 2\nk7_hour = 3\n[[flow]]",
        &["topology.k7_hour is 3", "without topology.k7"],
    ),
    (
        "[topology]\nmatrix = \"good.csv\"\nhidden = false\n[[flow]]",
        &["topology.hidden is false", "without topology.chain"],
    ),
    (
        "[topology]\nchain = 2\n[path_loss]\nexponent = 2\n[[flow]]",
        &["path_loss.exponent is 2", "without topology.positions"],
    ),
    // Names that are nearly right.
    (
        "[topology]\nchain = 2\n[[flow]]\n[[node]]\nid = 1\nlink_atempts = 3",
        &["[[node]] 1", "link_atempts", "`link_attempts`"],
    ),
    ("[topolgy]\nchain = 2", &["topolgy", "`topology`"]),
    (
        "[topology]\nchain = 2\n[[flow]]\n[sweep]\nstack.mss = [1]",
        &["stack.mss", "`stack.mss_frames`"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[radio]\nprofile = \"hamiltn\"",
        &["radio.profile is \"hamiltn\"", "\"hamilton\""],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[[node]]\nid = 1\nprofile = \"cc2420\"",
        &["[[node]] 1", "node.profile is \"cc2420\"", "\"telosb\""],
    ),
    // Values that nothing can have.
    (
        "[topology]\nchain = 2\n[[flow]]\n[[flow]]\nfrom = 7",
        &["[[flow]] 2", "flow.from is 7", "1 to 2"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[[node]]\nid = 1\n[[node]]\nid = 9",
        &["[[node]] 2", "node.id is 9", "0 to 2"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[[node]]\nid = 1\nlink_attempts = -3",
        &["[[node]] 1", "node.link_attempts is -3", "1 to 100"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[radio]\ntransmit_dbm = inf",
        &["radio.transmit_dbm is inf", "-40 to 30"],
    ),
    (
        "[topology]\nchain = 99999999999\n[[flow]]",
        &["topology.chain is 99999999999", "1 to 32"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\nmessage_bytes = 2.5",
        &["[[flow]] 1", "flow.message_bytes is 2.5", "12 to 60000"],
    ),
    // Networks that cannot be.
    (
        "[topology]\npositions = [[0, 0], [9, 0], [4000, 0]]\n[[flow]]",
        &["[topology]", "no node", "node 2"],
    ),
    (
        "[topology]\nchain = 3\nparents = [2, 1, 2]\n[[flow]]",
        &["[topology]", "circle"],
    ),
    // Files with broken lines.
    (
        "[topology]\nmatrix = \"short.csv\"\n[[flow]]",
        &["short.csv", "line 2 has 1 numbers", "2"],
    ),
    (
        "[topology]\nmatrix = \"loud.csv\"\n[[flow]]",
        &["loud.csv", "line 1 has 60", "-1000 to 0"],
    ),
    (
        "[topology]\nk7 = \"broken.k7\"\n[[flow]]",
        &["broken.k7", "line 3 is \"gone\"", "must be"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[interference]\ntrace = \"noise.txt\"",
        &["noise.txt", "line 2 is \"hello\"", "-150 to 20"],
    ),
    (
        "[topology]\nchain = 2\n[[flow]]\n[interference]\nnodes = [1]",
        &["[interference]", "no trace"],
    ),
];

#[test]
fn whatever_is_wrong_in_a_scenario_is_one_sentence() {
    let folder = folder();
    for (name, text) in [
        ("good.csv", "- -60\n-60 -\n"),
        ("short.csv", "- -60\n-60\n"),
        ("loud.csv", "- 60\n-60 -\n"),
        (
            "broken.k7",
            "{}\ndatetime,src,dst,channel,mean_rssi,pdr\ngone\n",
        ),
        ("noise.txt", "-90\nhello\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for (text, words) in WRONG {
        assert_refused(&run(folder.path(), text, &[]), 2, words);
    }
    // More nodes than there are addresses; found before their gains are worked out.
    let positions = (0..70_000).map(|n| format!("[{}, {}]", n % 265 * 9, n / 265 * 9));
    let positions = positions.collect::<Vec<_>>().join(", ");
    let text = format!("[topology]\npositions = [{positions}]\n[[flow]]\n");
    let words = ["s.toml", "topology.positions has 70000 nodes", "65536"];
    assert_refused(&run(folder.path(), &text, &[]), 2, &words);
}

#[test]
fn neither_another_run_nor_more_threads_change_a_byte() {
    let folder = folder();
    let everything = |name: &str, threads: &str| {
        let captures = ["air", "wire"].map(|what| format!("{name}-{what}.pcap"));
        fs::write(folder.path().join("s.toml"), SMALL).unwrap();
        let output = motet()
            .current_dir(folder.path())
            .args(["run", "s.toml", "--json", "-"])
            .args(["--pcap", &captures[0], "--wire-pcap", &captures[1]])
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let captures = captures.map(|capture| fs::read(folder.path().join(capture)).unwrap());
        assert!(captures.iter().all(|capture| capture.len() > 10_000));
        (output.stdout, captures)
    };
    let first = everything("first", "1");
    assert_eq!(records(&first.0, "run").len(), 4);
    assert!(first == everything("again", "1"), "two runs differ");
    assert!(
        first == everything("many", "4"),
        "threads make a difference"
    );
}

#[test]
fn a_folder_gets_a_page_that_needs_nothing_else() {
    let folder = folder();
    let arguments = [
        "--out",
        "out",
        "--pcap",
        "air.pcap",
        "--wire-pcap",
        "wire.pcap",
    ];
    let output = run(folder.path(), SMALL, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        table.contains("retry_delay_ms") && table.contains("kb/s"),
        "{table}"
    );
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let page = String::from_utf8(read("out/report.html")).unwrap();
    for reference in ["src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(reference), "{reference} in report.html");
    }
    assert!(page.contains("prefers-color-scheme") && page.contains("<svg"));
    assert!(!records(&read("out/results.jsonl"), "summary").is_empty());
    for name in [
        "sweep-total_goodput.svg",
        "point-1-topology.svg",
        "point-2-cwnd.svg",
    ] {
        assert!(read(&format!("out/{name}")).starts_with(b"<svg"), "{name}");
    }
    // Link types: 283 is 802.15.4 with channel and signal strength, 229 is IPv6.
    for (name, link_type) in [("air.pcap", 283_u32), ("wire.pcap", 229)] {
        assert_eq!(read(name)[20..24], link_type.to_le_bytes(), "{name}");
    }
    for arguments in [&["--out", "out"][..], &["--pcap", "air.pcap"]] {
        let again = run(folder.path(), SMALL, arguments);
        assert_refused(&again, 2, &["exists", "--force"]);
    }
    let forced = [&arguments[..], &["--force"]].concat();
    assert!(run(folder.path(), SMALL, &forced).status.success());
}

#[test]
fn nothing_is_run_that_could_not_be_written() {
    let folder = folder();
    fs::write(folder.path().join("gains.csv"), "- -60\n-60 -\n").unwrap();
    let text = "duration_s = 8\n[topology]\nmatrix = \"gains.csv\"\n[[flow]]\n";
    let refused: &[(&[&str], &[&str])] = &[
        (
            &["--json", "s.toml", "--force"],
            &["s.toml is what is read"],
        ),
        (
            &["--pcap", "gains.csv", "--force"],
            &["gains.csv is what is read"],
        ),
        (
            &["--pcap", "a", "--wire-pcap", "./a", "--force"],
            &["./a cannot be written twice"],
        ),
        (
            &["--json", "out/results.jsonl", "--out", "out", "--force"],
            &["out/results.jsonl cannot be written twice"],
        ),
        (
            &["--wire-pcap", "s.toml/w.pcap"],
            &["s.toml/w.pcap", "not a directory"],
        ),
        (&["--out", "gains.csv"], &["gains.csv is a file"]),
    ];
    for (arguments, words) in refused {
        assert_refused(&run(folder.path(), text, arguments), 2, words);
    }
    let gains = fs::read_to_string(folder.path().join("gains.csv")).unwrap();
    assert!(gains.starts_with("- -60"));
    assert_eq!(
        fs::read_to_string(folder.path().join("s.toml")).unwrap(),
        text
    );
}

#[test]
fn plots_of_an_earlier_run_do_not_stay() {
    let folder = folder();
    let plots = || {
        let entries = fs::read_dir(folder.path().join("out")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.ends_with(".svg"))
            .collect::<Vec<_>>()
    };
    let sweep = run(folder.path(), SMALL, &["--seeds", "1", "--out", "out"]);
    assert!(sweep.status.success(), "{}", said(&sweep));
    assert!(plots().iter().any(|name| name.starts_with("point-2-")));
    fs::remove_file(folder.path().join("out/report.html")).unwrap();
    fs::remove_file(folder.path().join("out/results.jsonl")).unwrap();
    let one = "duration_s = 8\n[topology]\nchain = 1\n[[flow]]\n";
    let refused = run(folder.path(), one, &["--out", "out"]);
    assert_refused(&refused, 2, &["out/point-1-", ".svg exists", "--force"]);
    let forced = run(folder.path(), one, &["--out", "out", "--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    let left = plots();
    assert!(left.contains(&"rtt.svg".to_owned()), "{left:?}");
    assert!(
        !left.iter().any(|name| name.starts_with("point-")),
        "{left:?}"
    );
}

#[test]
fn what_flows_share_has_a_line_of_its_own() {
    let folder = folder();
    let text =
        "duration_s = 8\nwarmup_s = 2\n[topology]\nchain = 2\n[[flow]]\n[[flow]]\nfrom = 1\n";
    let output = run(folder.path(), text, &[]);
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    let cells = |start: &str| -> Vec<String> {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no {start} in\n{table}"));
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(
        cells("2 → host").len(),
        6,
        "goodput, RTT, cwnd, energy in all and of a byte: {table}"
    );
    assert_eq!(cells("1 → host").len(), 6, "{table}");
    let number = |cell: &String| cell.parse::<f64>().unwrap();
    let all: Vec<f64> = cells("all")[1..].iter().map(number).collect();
    let [total, jain, .., energy, _] = all[..] else {
        panic!("{table}")
    };
    let parts: f64 = ["2 → host", "1 → host"]
        .iter()
        .map(|flow| number(&cells(flow)[1]))
        .sum();
    assert!(
        (total - parts).abs() < 0.2 && (0.5..=1.0).contains(&jain),
        "{table}"
    );
    // Three radios that never sleep, 6 s at some 35 mW each.
    assert!((0.4..1.0).contains(&energy), "{table}");
}

/// A chain of three motes that take turns to send to the host.
fn crowd(flows: usize, of_each: &str) -> String {
    let mut text = "duration_s = 400\n[topology]\nchain = 3\n".to_owned();
    for number in 0..flows {
        text += &format!("[[flow]]\nfrom = {}\n{of_each}\n", number % 3 + 1);
    }
    text
}

#[test]
fn a_host_takes_as_many_connections_as_there_are_flows() {
    let folder = folder();
    for flows in [5, 30, 200] {
        let output = run(
            folder.path(),
            &crowd(flows, "bytes = 300"),
            &["--json", "-"],
        );
        assert!(output.status.success(), "{}", said(&output));
        let all = records(&output.stdout, "flow");
        assert_eq!(all.len(), flows);
        for flow in all {
            let came = (&flow["outcome"], &flow["bytes"], &flow["error"]);
            assert_eq!(
                came,
                (&"complete".into(), &300.into(), &().into()),
                "{flow}"
            );
        }
        let run = &records(&output.stdout, "run")[0];
        assert_eq!(
            (&run["complete"], &run["failure"]),
            (&true.into(), &().into())
        );
        assert_eq!(run["outcomes"]["complete"], flows);
    }
}

/// Every flow of the other kinds and the other way, twenty each: more than one stack's tables.
#[test]
fn requests_and_flows_to_motes_have_room_too() {
    let folder = folder();
    let mut text = crowd(20, "kind = \"request\"\ninterval_s = 100");
    for number in 0..20 {
        text += &format!(
            "[[flow]]\nfrom = \"host\"\nto = {}\nbytes = 200\n",
            number % 3 + 1
        );
    }
    let output = run(folder.path(), &text, &["--json", "-"]);
    assert!(output.status.success(), "{}", said(&output));
    let delivered = |flow: &serde_json::Value| flow["bytes"].as_u64().unwrap() > 0;
    let flows = records(&output.stdout, "flow");
    assert!(
        flows.len() == 40 && flows.iter().all(delivered),
        "{}",
        said(&output)
    );
}

/// What goes wrong in the lab as on a roof: the link goes for good.
#[test]
fn a_flow_that_fails_fails_the_run() {
    let folder = folder();
    let rows = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n\
        2020-01-01 00:00:00,0,1,26,-60,1.0,100\n2020-01-01 00:00:00,1,0,26,-60,1.0,100\n\
        2020-01-01 00:00:40,0,1,26,,0.0,100\n2020-01-01 00:00:40,1,0,26,,0.0,100\n";
    fs::write(folder.path().join("gone.k7"), rows).unwrap();
    let text = "duration_s = 3000\n[topology]\nk7 = \"gone.k7\"\nk7_hour = 0\n[[flow]]\n";
    let output = run(folder.path(), text, &["--json", "out.jsonl"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.contains("[[flow]] 1 (1 → host) timed out"),
        "{stderr}"
    );
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.contains("timed out") && !table.contains("incomplete"),
        "{table}"
    );
    let lines = fs::read(folder.path().join("out.jsonl")).unwrap();
    let flow = &records(&lines, "flow")[0];
    assert_eq!(flow["outcome"], "timed_out");
    assert!(
        flow["error"].as_str().unwrap().contains("did not answer"),
        "{flow}"
    );
    let run = &records(&lines, "run")[0];
    assert_eq!(run["complete"], false);
    assert!(
        run["failure"].as_str().unwrap().contains("timed out"),
        "{run}"
    );
    assert!(
        records(&lines, "summary")
            .iter()
            .all(|line| line["complete"] == false)
    );
}

#[test]
fn a_flow_that_time_cut_short_is_no_failure() {
    let folder = folder();
    let text = "duration_s = 8\n[topology]\nchain = 2\n[[flow]]\nbytes = 5000000\n[[flow]]\n";
    let output = run(folder.path(), text, &["--json", "out.jsonl"]);
    assert!(output.status.success(), "{}", said(&output));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("1 of 1 transfers were under way"), "{table}");
    let lines = fs::read(folder.path().join("out.jsonl")).unwrap();
    let flows = records(&lines, "flow");
    assert!(
        flows.iter().all(|flow| flow["outcome"] == "running"),
        "{flows:?}"
    );
    assert_eq!(records(&lines, "run")[0]["complete"], true);
}

/// Forty flows are shown one by one; of one more, the percentiles and the worst.
#[test]
fn many_flows_do_not_scroll_by() {
    let folder = folder();
    let mixed = |flows: usize| {
        let mut text = crowd(flows, "bytes = 100");
        text += "[[flow]]\nfrom = \"host\"\nto = 1\nkind = \"udp\"\ninterval_s = 30\n";
        text
    };
    let table = |text: &str| {
        let output = run(folder.path(), text, &["--json", "out.jsonl", "--force"]);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let each = table(&mixed(39));
    assert_eq!(each.matches(" → ").count(), 40, "{each}");
    assert!(!each.contains("worst"), "{each}");
    let many = table(&mixed(300));
    assert!(many.lines().count() < 50, "{many}");
    assert!(
        many.lines().all(|line| line.chars().count() <= 110),
        "{many}"
    );
    assert_eq!(many.matches(" → host").count(), 10, "{many}");
    for words in [
        "bulk up, 1 hop  ",
        "bulk up, 3 hops",
        "udp down, 1 hop",
        "p50",
        "p95",
    ] {
        assert!(many.contains(words), "{words}: {many}");
    }
    // All is in the JSON, and no mean is over flows of two kinds.
    let lines = fs::read(folder.path().join("out.jsonl")).unwrap();
    assert_eq!(records(&lines, "flow").len(), 301);
    let groups = records(&lines, "group");
    let of = |metric: &str| -> Vec<(&str, u64)> {
        let own = groups.iter().filter(|group| group["metric"] == metric);
        own.map(|group| {
            let name = group["group"].as_str().unwrap();
            (name, group["of_flows"].as_u64().unwrap())
        })
        .collect()
    };
    let bulk = [1, 2, 3].map(|hops| {
        let plural = if hops == 1 { "" } else { "s" };
        (format!("bulk up, {hops} hop{plural}"), 100)
    });
    let bulk: Vec<(&str, u64)> = bulk.iter().map(|(name, of)| (name.as_str(), *of)).collect();
    assert_eq!(of("finished"), bulk);
    assert_eq!(of("latency_p95"), [("udp down, 1 hop", 1)]);
}

#[test]
fn a_flow_says_how_long_it_took_and_what_it_cost() {
    let folder = folder();
    let text = "duration_s = 60\n[topology]\nchain = 2\n[[flow]]\nbytes = 60000\n[[flow]]\n\
        from = 1\nkind = \"request\"\ninterval_s = 2\n";
    let output = run(folder.path(), text, &["--json", "-"]);
    assert!(output.status.success(), "{}", said(&output));
    let flows = records(&output.stdout, "flow");
    let number = |flow: usize, key: &str| flows[flow][key].as_f64().unwrap();
    assert!((2.0..30.0).contains(&number(0, "finished_s")), "{flows:?}");
    assert!(flows[0]["latency_p50_ms"].is_null() && flows[1]["finished_s"].is_null());
    let ages = ["latency_p50_ms", "latency_p95_ms", "latency_max_ms"].map(|key| number(1, key));
    assert!(ages.is_sorted() && ages[0] > 0.0, "{ages:?}");
    // Three radios that never sleep: between the flows nothing is lost, and nothing is made.
    let run = &records(&output.stdout, "run")[0];
    let parts: f64 = [0, 1].map(|flow| number(flow, "energy_mj")).iter().sum();
    assert!(
        (parts - run["energy_mj"].as_f64().unwrap()).abs() < 1e-3,
        "{parts}"
    );
    for flow in [0, 1] {
        let bytes = number(flow, "counted_bytes");
        let each = number(flow, "energy_mj") * 1e3 / bytes;
        assert!((each - number(flow, "energy_uj_per_byte")).abs() < 1e-3 * each);
    }
}

#[test]
fn a_trace_may_leave_channels_open() {
    let folder = folder();
    let rows = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n\
        2020-01-01 00:00:00,0,1,,-60,1.0,100\n2020-01-01 00:00:00,1,0,,-60,1.0,100\n";
    fs::write(folder.path().join("open.k7"), rows).unwrap();
    let text = "duration_s = 8\n[topology]\nk7 = \"open.k7\"\n[[flow]]\n";
    let output = run(folder.path(), text, &[]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn what_no_mote_can_hold_is_refused() {
    let folder = folder();
    let to_one = "[[flow]]\nfrom = \"host\"\nto = 1\n".repeat(17);
    let from_one = "[[flow]]\n".repeat(256);
    let over_all = "[[flow]]\nkind = \"udp\"\n".repeat(40_001);
    let cases: [(&str, &[&str]); 3] = [
        (&to_one, &["17 flows over TCP go to node 1", "16 ports"]),
        (
            &from_one,
            &["node 1 is an end of 256 flows", "255 connections"],
        ),
        (&over_all, &["40001 [[flow]] tables", "40000"]),
    ];
    for (flows, words) in cases {
        let text = format!("[topology]\nchain = 1\n{flows}");
        assert_refused(&run(folder.path(), &text, &[]), 2, words);
    }
}

/// A day is cut to an hour, beside copies of the files that it names.
#[test]
fn every_example_is_a_scenario_that_runs() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folder = folder();
    let noise = folder.path().join("noise");
    fs::create_dir(&noise).unwrap();
    for entry in fs::read_dir(scenarios.join("noise")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), noise.join(entry.file_name())).unwrap();
    }
    let mut count = 0;
    for entry in fs::read_dir(scenarios).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = fs::read_to_string(&path).unwrap();
            let copy = folder.path().join(path.file_name().unwrap());
            fs::write(
                &copy,
                text.replace("duration_s = 86_400", "duration_s = 3_600"),
            )
            .unwrap();
            let run = ["--seeds", "1", "--json", "-"];
            let output = motet().arg("run").arg(&copy).args(run).output().unwrap();
            assert!(
                output.status.success(),
                "{}: {}",
                path.display(),
                said(&output)
            );
            count += 1;
        }
    }
    assert!(count >= 4, "{count} examples");
}

#[test]
fn the_table_says_what_each_node_spends() {
    let folder = folder();
    let text = "duration_s = 8\nwarmup_s = 2\n[topology]\nchain = 2\n[[flow]]\n";
    let output = run(folder.path(), text, &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    let node = |name: &str| {
        let mut lines = table.lines().skip_while(|line| !line.contains("radio"));
        let line = lines.find(|line| line.trim_start().starts_with(name));
        let cells = line.unwrap_or_default().split_whitespace();
        cells
            .map(|cell| cell.parse().unwrap())
            .collect::<Vec<f64>>()
    };
    for name in ["0 ", "1 ", "2 "] {
        let cells = node(name);
        // How a node came to its place stands before; the border router has none.
        let [.., radio, processor, radio_mw, processor_mw] = cells[..] else {
            panic!("{table}");
        };
        // It never sleeps, hence some 11.8 mA at 3 V; the processor works a few percent.
        assert!(
            radio == 100.0 && (0.1..50.0).contains(&processor),
            "{table}"
        );
        assert!(
            (25.0..40.0).contains(&radio_mw) && processor_mw > 0.0,
            "{table}"
        );
    }
}

#[test]
fn keys_are_documented_on_the_spot() {
    let output = motet().args(["run", "--keys"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("retry_delay_ms"), "{}", said(&output));
}

/// Runs what would take for ever, with a capture `air.pcap`, and interrupts it once frames are on
/// the air.
#[cfg(unix)]
fn interrupted(folder: &Path, arguments: &[&str]) -> Output {
    let text = "duration_s = 1000\nseeds = 1000\n[topology]\nchain = 3\n[[flow]]\n";
    fs::write(folder.join("s.toml"), text).unwrap();
    let child = motet()
        .current_dir(folder)
        .args(["run", "s.toml"])
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // However slow the machine: once the air has frames, a run is under way.
    let started = || fs::metadata(folder.join("air.pcap")).is_ok_and(|file| file.len() > 8_000);
    let patience = std::time::Instant::now();
    while !started() {
        assert!(
            patience.elapsed().as_secs() < 60,
            "no frame within a minute"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The shell's own `kill`: no package needed.
    let kill = format!("kill -INT {}", child.id());
    let killed = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(killed.unwrap().success());
    child.wait_with_output().unwrap()
}

#[cfg(unix)]
#[test]
fn of_two_captures_that_cannot_be_written_both_are_named_and_whole() {
    let folder = folder();
    let scenario = folder.path().join("s.toml");
    fs::write(&scenario, "[topology]\nchain = 2\n[[flow]]").unwrap();
    let captures = ["air.pcap", "wire.pcap"].map(|name| folder.path().join(name));
    // No file grows beyond 2 KiB (dash counts blocks of 512 bytes, bash of 1024).
    let limited = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let output = std::process::Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_motet"), "run"])
        .arg(&scenario)
        .args(["--duration", "20", "--pcap"])
        .arg(&captures[0])
        .arg("--wire-pcap")
        .arg(&captures[1])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for words in ["air.pcap", "wire.pcap", "no room"] {
        assert!(stderr.contains(words), "{stderr}");
    }
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for capture in captures {
        assert!(frames(&fs::read(capture).unwrap()) > 3);
    }
}

/// The records of a capture; panics where the last one is not whole.
#[cfg(unix)]
fn frames(capture: &[u8]) -> usize {
    let mut rest = &capture[24..];
    let mut frames = 0;
    while let Some((header, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        rest = after.get(len..).expect("the last frame is whole");
        frames += 1;
    }
    assert!(rest.is_empty(), "half a header");
    frames
}

#[cfg(unix)]
#[test]
fn a_run_cut_short_leaves_what_it_had() {
    let folder = folder();
    let arguments = ["--json", "r.jsonl", "--out", "out", "--pcap", "air.pcap"];
    let output = interrupted(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("of 1000 runs are complete"), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("incomplete"));
    let lines = fs::read(folder.path().join("r.jsonl")).unwrap();
    let runs = records(&lines, "run");
    assert!((1..1_000).contains(&runs.len()), "{} runs", runs.len());
    assert!(runs.iter().any(|run| run["complete"] == false));
    let summaries = records(&lines, "summary");
    assert!(!summaries.is_empty());
    assert!(summaries.iter().all(|line| line["complete"] == false));
    let capture = fs::read(folder.path().join("air.pcap")).unwrap();
    assert!(frames(&capture) > 50);
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("Incomplete"));
}

/// A search gives what the flow could reach, beside its bound; without one there is no such figure.
#[test]
fn a_search_shows_what_is_reachable() {
    let folder = folder();
    let text =
        "duration_s = 6\nwarmup_s = 2\n[topology]\nchain = 2\n[stack]\nhold_ms = 25\n[[flow]]\n";
    let searched = run(folder.path(), text, &["--reachable", "--json", "-"]);
    let runs = records(&searched.stdout, "run");
    let kbps = |name: &str| runs[0][name].as_f64().unwrap();
    let [goodput, reachable, bound] = ["goodput_kbps", "reachable_kbps", "bound_kbps"].map(kbps);
    assert!(goodput < reachable && reachable <= bound, "{runs:?}");
    let shown = run(folder.path(), text, &["--reachable"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains(&format!("reachable: {reachable:.1} kb/s")),
        "{shown}"
    );
    let plain = run(folder.path(), text, &["--json", "-"]);
    assert!(
        records(&plain.stdout, "run")[0]
            .get("reachable_kbps")
            .is_none()
    );
}

#[test]
fn a_search_that_has_nothing_to_search_for_says_so() {
    let folder = folder();
    let text =
        "duration_s = 6\nwarmup_s = 2\n[topology]\nchain = 2\n[[flow]]\n[[flow]]\nfrom = 1\n";
    let searched = run(folder.path(), text, &["--reachable"]);
    assert!(searched.status.success());
    let said = String::from_utf8_lossy(&searched.stderr).into_owned();
    assert!(said.contains("nothing was searched for"), "{said}");
}
