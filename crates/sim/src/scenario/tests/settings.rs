//! What a scenario says reaches the nodes and the points of its sweep.

use super::*;

/// The pace is measured or set by hand, and what belongs to the one does not stand beside the
/// other.
#[test]
fn a_pace_is_measured_or_set_by_hand() {
    let paces = |more: &str| {
        let text = format!("duration_s = 10\n[topology]\nchain = 2\n[[flow]]\n{more}");
        let plan = plan(&text).map_err(|error| error.to_string())?;
        let scenario = &plan.points[0].scenario;
        let nodes = scenario.network.nodes.iter();
        Ok::<_, String>(nodes.map(|node| node.pace_percent).collect::<Vec<_>>())
    };
    for (more, percent) in [
        ("", [100; 3]),
        ("[stack]\npacing = \"auto\"\n", [100; 3]),
        ("[stack]\npace_percent = 90\n", [90; 3]),
        ("[stack]\npacing = \"off\"\n", [0; 3]),
        ("[stack]\npacing = \"off\"\nhold_ms = 7\n", [0; 3]),
        ("[stack]\nhold_ms = 0\n", [0; 3]),
        ("[stack]\nretry_delay_ms = 40\n", [0; 3]),
        ("[[node]]\nid = 1\nretry_delay_ms = 5\n", [100, 0, 100]),
        (
            "[stack]\nhold_ms = 7\n[sweep]\nstack.hold_ms = [7]\n",
            [0; 3],
        ),
        ("[sweep]\nstack.retry_delay_ms = [5]\n", [0; 3]),
    ] {
        assert_eq!(paces(more), Ok(percent.to_vec()), "{more}");
    }
    assert_eq!(
        paces(
            "[stack]\npacing = \"auto\"\npace_percent = 95\n[[node]]\nid = 1\npacing = \"off\"\n"
        )
        .unwrap_err(),
        "test.toml: [[node]] 1 (id 1): stack.pace_percent is 95, but must be left out unless pacing is \"auto\", \
         as it is where neither hold_ms nor retry_delay_ms is given"
    );
    for (more, wrong) in [
        (
            "[stack]\npacing = \"auto\"\nhold_ms = 7\n",
            "stack.hold_ms is 7",
        ),
        (
            "[stack]\npacing = \"auto\"\nretry_delay_ms = 0\n",
            "stack.retry_delay_ms is 0",
        ),
        (
            "[stack]\npacing = \"auto\"\n[[node]]\nid = 2\nretry_delay_ms = 5\n",
            "node.retry_delay_ms is 5",
        ),
        (
            "[stack]\npacing = \"auto\"\n[sweep]\nstack.hold_ms = [0, 7]\n",
            "stack.hold_ms is 0",
        ),
        (
            "[stack]\nhold_ms = 7\n[[node]]\nid = 2\npacing = \"auto\"\n",
            "[[node]] 1 (id 2): stack.hold_ms is 7.0, but must be left out where node.pacing is",
        ),
        (
            "[stack]\npace_percent = 90\nhold_ms = 7\n",
            "stack.pace_percent is 90",
        ),
    ] {
        let error = paces(more).unwrap_err();
        assert!(
            error.contains(wrong) && error.contains("left out"),
            "{error}"
        );
    }
}

/// ACKs that wait where they enter the mesh are counted, arrive by newer ones, and leave the air to
/// the segments.
#[test]
fn the_border_router_thins_acks_where_it_is_told_to() {
    let text = "duration_s = 30\nwarmup_s = 5\n[topology]\nchain = 2\n[stack]\npacing = \"auto\"\n\
                window_segments = 12\n[[flow]]\n[sweep]\nrouter.thin_acks = [false, true]\n";
    let runs = results(&plan(text).unwrap());
    assert!(runs.iter().all(|run| run.complete));
    assert_eq!(runs[0].acks_thinned, 0);
    let host = |run: &RunResult| run.nodes.last().unwrap().counts.segments;
    // Of ACKs that the host sends all but those that are thinned reach the mote.
    assert!(
        runs[1].acks_thinned > host(&runs[1]) / 3,
        "{}",
        runs[1].acks_thinned
    );
    assert!(runs[1].goodput_kbps() > runs[0].goodput_kbps());
}

/// They are thinned below TAiM, which has passed them all on, and before TCP headers are
/// compressed: no compressed header refers to one that was replaced.
#[test]
fn acks_are_thinned_below_taim_and_before_compression() {
    let text = "duration_s = 30\nwarmup_s = 5\n[topology]\nchain = 2\n[router]\npolicy = \"taim\"\n\
                thin_acks = true\n[stack]\ncompression = \"tcphc\"\nwindow_segments = 12\n[[flow]]\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.flows[0].intact);
    let host = run.nodes.last().unwrap().counts.segments;
    assert!(run.acks_thinned > host / 3, "{}", run.acks_thinned);
    assert!(run.retransmitted() < 0.01, "{}", run.retransmitted());
}

/// Without a word about it ACKs are thinned where the pace is measured, and nowhere else.
#[test]
fn acks_are_thinned_where_the_pace_is_measured() {
    let thins = |more: &str| {
        let text = format!("duration_s = 10\n{more}[[flow]]\n");
        plan(&text).unwrap().points[0].scenario.network.thins_acks
    };
    let chain = |more: &str| thins(&format!("[topology]\nchain = 2\n{more}"));
    assert!(chain(""));
    assert!(!chain("[router]\nthin_acks = false\n"));
    assert!(!chain("[stack]\npacing = \"off\"\n"));
    assert!(!chain("[stack]\nhold_ms = 7\n"));
    assert!(chain("[stack]\nhold_ms = 7\n[router]\nthin_acks = true\n"));
    assert!(!chain("[[node]]\nid = 0\npacing = \"off\"\n"));
    assert!(!thins(
        "[radio]\nkind = \"ble\"\n[topology]\nperipherals = 1\n"
    ));
}

/// A host is Linux unless a key of its ACKs says otherwise; its sender's settings are its own.
#[test]
fn the_host_is_linux_by_default() {
    let host = |wire: &str| {
        let text = format!("[topology]\nchain = 1\n[wire]\n{wire}\n[[flow]]\n");
        let plan = plan(&text).unwrap();
        let scenario = &plan.points[0].scenario;
        let mut config = motet::tcp::Config::DEFAULT;
        scenario.wire.apply(&mut config);
        (config, scenario.network.hosts[0].labels)
    };
    let (config, labels) = host("");
    assert!(config.linux_acks && config.rack && labels);
    assert_eq!(config.initial_window, 10);
    assert_eq!(config.congestion_algorithm.name(), "cubic");
    let (config, labels) = host("host_ack_every = 6");
    assert!(!config.linux_acks && !labels);
    assert_eq!((config.ack_every, config.ack_delay_ms), (6, 40));
    let (config, _) = host("host_ack_delay_ms = 300\ncongestion = \"reno\"\nrack = false");
    assert!(!config.linux_acks && !config.rack);
    assert_eq!((config.ack_every, config.ack_delay_ms), (2, 300));
    assert_eq!(config.congestion_algorithm.name(), "reno");
}

/// What a slow line costs, by arithmetic: the next order waits for the report on the last frame.
#[test]
fn the_border_routers_radio_may_be_behind_a_line() {
    let goodput = |router: &str| {
        let text = format!(
            "duration_s = 40\nwarmup_s = 5\n[topology]\nchain = 1\n[radio]\nprofile = \"nrf52840\"\n\
             [router]\n{router}\n[[flow]]\nfrom = \"host\"\nto = 1\n"
        );
        let plan = plan(&text).unwrap();
        let [run] = &results(&plan)[..] else {
            panic!("one point, one seed")
        };
        assert!(run.failure.is_none(), "{:?}", run.failure);
        run.flows[0].goodput_kbps
    };
    let [none, usb, fast, slow] = [
        "",
        "line_kbps = 12000",
        "line_kbps = 460.8",
        "line_kbps = 115.2",
    ]
    .map(goodput);
    assert!(usb > 0.7 * none, "{usb} of {none}");
    assert!(usb > fast && fast > slow, "{usb} {fast} {slow}");
    // A frame of 127 bytes with 27 of Spinel takes 13.4 ms, the report 2.7, the exchange in the air
    // 6 at most: at least 17 ms and at most 26 for each of five frames with 427 bytes.
    let [least, most] = [26.0, 17.0].map(|ms| 427.0 * 8.0 / (5.0 * ms));
    assert!(
        (0.7 * least..most).contains(&slow),
        "{slow}: {least} to {most}"
    );
    for (router, said) in [
        (
            "line_ms = 1",
            "router.line_ms is 1, but must be left out without router.line_kbps",
        ),
        ("line_kbps = 1", "router.line_kbps is 1"),
    ] {
        let text = format!("[topology]\nchain = 1\n[router]\n{router}\n[[flow]]\n");
        let error = plan(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// An ACK of the host for every eighth segment leaves the air to the segments.
#[test]
fn the_hosts_ack_rule_is_that_of_its_key() {
    let text = "duration_s = 20\nwarmup_s = 2\n[topology]\nchain = 2\n[wire]\n\
                host_ack_delay_ms = 500\n[router]\nthin_acks = false\n[stack]\nwindow_segments = 12\n\
                initial_window = 8\n[[flow]]\n[sweep]\n\
                wire.host_ack_every = [2, 8]\n";
    let runs = results(&plan(text).unwrap());
    let segments = |run: &RunResult| run.nodes.last().unwrap().counts.segments;
    let counts = [segments(&runs[0]), segments(&runs[1])];
    assert!(counts[0] > 2 * counts[1], "{counts:?}");
    assert!(runs[0].bound_kbps < runs[1].bound_kbps);
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
