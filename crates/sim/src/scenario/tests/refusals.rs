//! What a scenario may not say: one sentence names the key, its value and what it must be.

use super::*;

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
                "[[node]] 1 (id 1): node.window_segments is 6, but must be left out: node 1 is none that is an end",
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
            "[[node]]\nid = 1\npacing = \"off\"\nframe_age_ms = 30\n".to_owned(),
            "[[node]] 1 (id 1): node.retry_delay_ms is 40",
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
