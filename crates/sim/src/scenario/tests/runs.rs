//! What a run measures, and when it is complete.

use super::*;

#[test]
fn a_run_measures_what_flows() {
    let plan = plan(CHAIN).unwrap();
    let [run] = &results(&plan)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.complete && run.failure.is_none(), "{:?}", run.failure);
    assert!((7.9..=8.1).contains(&run.seconds), "{}", run.seconds);
    let flow = &run.flows[0];
    // Two hops carry 27 kb/s without a pace (CALIBRATION.md), 53 at most; eight seconds vary.
    assert!(
        (32.0..53.0).contains(&flow.goodput_kbps),
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

/// A flow whose first message is not due yet has lost none.
#[test]
fn what_was_not_due_is_not_lost() {
    let late = "duration_s = 8\n[topology]\nchain = 1\n[[flow]]\nkind = \"periodic\"\nfrom = 1\ninterval_s = ";
    for (interval_s, share) in [("1e6", None), ("0.5", Some(1.0))] {
        let run = &results(&plan(&format!("{late}{interval_s}")).unwrap())[0];
        assert_eq!(
            run.flows[0].delivered(),
            share,
            "{:?}",
            run.flows[0].messages
        );
    }
}

/// The bound is that of one flow over a chain: over two hops 49.4 kb/s with an ACK for every second
/// segment, 52.5 where the border router thins them, and what the window of four segments held when
/// the warm-up ended.
#[test]
fn a_run_has_a_bound_where_one_is_known() {
    let cases = [
        ("", Some((52.5, 8.0))),
        ("[router]\nthin_acks = false\n", Some((49.4, 8.0))),
        ("[stack]\nhold_ms = 7\n", Some((49.4, 8.0))),
        ("from = \"host\"\nto = 2\n", Some((49.4, 8.0))),
        ("start_s = 4\n", Some((52.5, 8.0))),
        ("kind = \"request\"\n", None),
        ("from = 2\n[[flow]]\nfrom = 1\n", None),
        (
            "[[fault]]\nkind = \"link\"\nnode = 1\nto = 2\ngain_db = -70\nat_s = 3\n",
            None,
        ),
        (
            "[[fault]]\nkind = \"reboot\"\nnode = 1\nat_s = 3\nfor_s = 1\n",
            Some((52.5, 8.0)),
        ),
    ];
    for (more, expected) in cases {
        let plain = CHAIN.replace(
            "[topology]",
            "[[node]]\nid = 2\ncompression = \"none\"\n[topology]",
        );
        let plan = plan(&format!("{plain}{more}")).unwrap_or_else(|why| panic!("{more}: {why}"));
        let [run] = &results(&plan)[..] else {
            panic!("one point, one seed")
        };
        assert!(run.failure.is_none(), "{more}: {:?}", run.failure);
        assert_eq!(run.bound_kbps.is_some(), expected.is_some(), "{more}");
        if let Some((bound, (rate, seconds))) = run.bound_kbps.zip(expected) {
            let in_flight = 4.0 * 429.0 / 125.0 / seconds;
            let begins_before = if more.starts_with("start") { 0.0 } else { 1.0 };
            // Few frames: luck may spare their drivers some time.
            assert!(
                (rate + begins_before * in_flight - 0.1..rate + in_flight + 1.0).contains(&bound),
                "{more}: {bound}"
            );
            assert!(run.goodput_kbps() < bound, "{more}");
        }
    }
}

/// Where nodes differ, or links are uneven, the source's own frames bound the flow; over Bluetooth
/// LE the events do. A mesh that finds its parents itself has no known path.
#[test]
fn a_run_of_any_radios_has_a_bound() {
    let floor = "duration_s = 20\nwarmup_s = 2\n[topology]\nfloor = 6\nfloor_hops = 2\n";
    let ble =
        "duration_s = 20\nwarmup_s = 2\n[radio]\nkind = \"ble\"\n[topology]\nperipherals = 1\n";
    for (text, is_bounded) in [
        (format!("{CHAIN}[[node]]\nid = 1\nbe_min = 2\n"), true),
        (
            format!("{CHAIN}[[node]]\nid = 1\nprofile = \"telosb\"\n"),
            true,
        ),
        (format!("{CHAIN}[router]\nline_kbps = 460.8\n"), true),
        (format!("{floor}[[flow]]\n"), true),
        (format!("{ble}[[flow]]\n"), true),
        (format!("{ble}[[flow]]\nfrom = \"host\"\nto = 1\n"), true),
        (format!("{floor}joining = \"rpl\"\n[[flow]]\n"), false),
    ] {
        let plan = plan(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
        let [run] = &results(&plan)[..] else {
            panic!("one point, one seed")
        };
        assert!(run.failure.is_none(), "{text}: {:?}", run.failure);
        assert_eq!(run.bound_kbps.is_some(), is_bounded, "{text}");
        if let Some(bound) = run.bound_kbps {
            let goodput = run.goodput_kbps();
            assert!(
                goodput > 1.0 && goodput < bound,
                "{text}: {goodput} {bound}"
            );
        }
    }
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
fn a_mesh_that_does_not_join_in_time_is_no_complete_run() {
    let plan = plan(&format!("join_s = 1\n{CHAIN}[radio]\nframe_loss = 1.0\n")).unwrap();
    let [run] = &results(&plan)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.failure.is_some() && !run.complete);
    assert!(run.energy_mj().is_sign_positive(), "{}", run.energy_mj());
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

#[test]
fn a_point_alone_runs_as_it_does_among_others() {
    let swept = "[sweep]\n\"topology.chain\" = [1, 2]\n\"stack.window_segments\" = [2, 4]\n";
    let whole = plan(&format!("name = \"Swept\"\nseeds = 2\n{CHAIN}{swept}")).unwrap();
    let text = whole.text();
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let mut alone = Vec::new();
    for point in 0..whole.points.len() {
        let one = Plan::parse_point(&text, Files::new(), point).unwrap();
        assert_eq!(one.points[0].values, whole.points[point].values);
        assert_eq!(one.identity(0), whole.identity(point));
        for seed in &one.seeds {
            let result = one.run_one(0, *seed, &watch, Captures::default());
            alone.push(RunResult { point, ..result });
        }
    }
    assert_eq!(alone, results(&whole));
    let beyond = Plan::parse_point(&text, Files::new(), 4).unwrap_err();
    assert_eq!(beyond.to_string(), "there is no point 4");
}

#[test]
fn a_scenario_reads_back_what_it_writes() {
    let ends =
        "[topology]\nchain = 2\n[[flow]]\nfrom = \"host\"\nto = 2\n[[flow]]\nto = \"host\"\n";
    let swept = "[topology]\nchain = 2\n[[flow]]\n[sweep]\n\"flow.to\" = [\"host\", 1]\n";
    for text in [ends, swept] {
        let one = plan(text).unwrap();
        let again = plan(&one.text()).unwrap();
        assert_eq!(again.text(), one.text());
        for (one, again) in one.points.iter().zip(&again.points) {
            assert_eq!(one.values, again.values);
            assert_eq!(one.scenario.flows, again.scenario.flows);
        }
    }
}

#[test]
fn kept_files_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.txt");
    std::fs::write(&links, "- -60\n-60 -\n").unwrap();
    let text = "[topology]\nmatrix = \"links.txt\"\n[[flow]]\n";
    let file = folder.path().join("scenario.toml");
    let mut plan = Plan::parse(text, &file, Overrides::default()).unwrap();
    plan.keep_files().unwrap();
    std::fs::remove_file(links).unwrap();
    let kept = plan.named_files().unwrap();
    assert_eq!(kept, [("links.txt".to_owned(), b"- -60\n-60 -\n".to_vec())]);
}

#[test]
fn what_a_run_depends_on_is_what_it_is_known_by() {
    let of = |text: &str| plan(text).unwrap().identity(0);
    let one = of(CHAIN);
    assert_eq!(one, of(&format!("name = \"Other\"\nseeds = 9\n{CHAIN}")));
    assert_ne!(one, of(&format!("seed = 2\n{CHAIN}")));
    assert_ne!(one, of(&CHAIN.replace("chain = 2", "chain = 3")));
    let swept = format!("{CHAIN}[sweep]\n\"topology.chain\" = [1, 2]\n");
    assert_eq!(one, plan(&swept).unwrap().identity(1));
}

/// A failure of one of several seeds names the options that give the same run again: the first seed
/// draws floor and shadowing, too.
#[test]
fn the_run_of_one_seed_is_repeated_alone() {
    let file = Path::new("test.toml");
    for (layout, is_drawn) in [
        ("floor = 8\nfloor_hops = 2", true),
        ("positions = [[0, 0], [9, 0], [15, 5]]", true),
        ("floor = 8\nfloor_hops = 2\nseed = 3", false),
        ("chain = 2", false),
    ] {
        let text = format!(
            "seed = 5\nseeds = 3\nduration_s = 10\nwarmup_s = 2\n[topology]\n{layout}\n[[flow]]\n\
             from = 2\n"
        );
        let all = plan(&text).unwrap();
        let options = all.repeats(7);
        assert_eq!(options.contains("--layout-seed 5"), is_drawn, "{options}");
        let value = |name| {
            let mut words = options.split(' ').skip_while(|word| *word != name);
            words.nth(1).map(|value| value.parse().unwrap())
        };
        let overrides = Overrides {
            seed: value("--seed"),
            seeds: value("--seeds"),
            layout_seed: value("--layout-seed"),
            ..Overrides::default()
        };
        let alone = Plan::parse(&text, file, overrides).unwrap();
        let (all, alone) = (results(&all), results(&alone));
        let [alone] = &alone[..] else {
            panic!("one seed")
        };
        let measured = |run: &RunResult| (run.seed, run.flows.clone(), run.links.clone());
        assert_eq!(measured(&all[2]), measured(alone), "{layout}");
    }
}

#[test]
fn a_caller_sweeps_over_more() {
    let file = Path::new("test.toml");
    let text = format!("{CHAIN}[sweep]\n\"topology.chain\" = [1, 2]\n");
    let over = |sweep: &str| {
        let overrides = Overrides {
            sweep: sweep.parse().unwrap(),
            ..Overrides::default()
        };
        let plan = Plan::parse(&text, file, overrides);
        plan.map(|plan| plan.points.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(over(""), Ok(2));
    assert_eq!(over("\"radio.frame_loss\" = [0, 0.1, 0.2]"), Ok(6));
    assert_eq!(over("\"topology.chain\" = [3]"), Ok(1));
    let wrong = over("\"radio.frame_loss\" = [2]").unwrap_err();
    assert!(wrong.contains("radio.frame_loss is 2"), "{wrong}");
}

#[test]
fn ends_of_flows_come_back_as_they_were() {
    for (end, text) in [(FlowEnd::Host, "\"host\""), (FlowEnd::Node(3), "3")] {
        assert_eq!(serde_json::to_string(&end).unwrap(), text);
        assert_eq!(serde_json::from_str::<FlowEnd>(text).unwrap(), end);
    }
    assert!(serde_json::from_str::<FlowEnd>("\"guest\"").is_err());
}

/// Node 2 hears the border router, but over a link so weak that its frames go over node 1.
#[test]
fn hops_of_a_flow_are_those_of_the_mesh_that_formed_itself() {
    for (flow, hops) in [
        ("from = 2", 2),
        ("from = \"host\"\nto = 2", 2),
        // The border router alone knows the way down to node 2, and sends back what comes up.
        ("from = 1\nto = 2", 3),
    ] {
        let text = format!(
            "duration_s = 20\nwarmup_s = 2\njoin_s = 300\n[topology]\n\
             positions = [[0, 0], [22, 3], [45, 0]]\njoining = \"rpl\"\n[[flow]]\n{flow}\n"
        );
        let run = results(&plan(&text).unwrap()).remove(0);
        assert_eq!(run.failure, None, "{flow}");
        let node = &run.nodes[2];
        assert_eq!((node.parent, node.hops), (Some(1), 2), "{flow}");
        assert_eq!(run.flows[0].likeness.hops, hops, "{flow}");
    }
}
