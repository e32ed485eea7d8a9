//! Readings in batches, batteries, and noise by the hour of the day.

use super::*;

fn run_of(text: &str) -> RunResult {
    let plan = plan(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let run = results(&plan).remove(0);
    assert!(run.failure.is_none(), "{text}: {:?}", run.failure);
    run
}

const MOTE: &str = "topology.chain = 1\ntopology.joining = \"static\"\nstack.sleep = \"hinted\"\n";

#[test]
fn batches_arrive_whole_and_cost_less_than_single_readings() {
    let run = |batch: usize| {
        run_of(&format!(
            "duration_s = 660\nwarmup_s = 10\n{MOTE}[[flow]]\nkind = \"readings\"\nbatch = {batch}\n"
        ))
    };
    let (batched, single) = (run(64), run(1));
    // Ten batches of 64; the rest waits, and counts neither way.
    assert_eq!(batched.flows[0].messages, Some([640, 640]));
    assert_eq!(single.flows[0].messages, Some([660, 660]));
    assert_eq!(batched.flows[0].bytes, 640 * 82);
    let duty = |run: &RunResult| run.nodes[1].counts.radio_duty();
    assert!(
        duty(&batched) < 0.7 * duty(&single),
        "{} {}",
        duty(&batched),
        duty(&single)
    );
    assert!(batched.flows[0].latency_max_ms > Some(60_000.0));
    assert!(single.flows[0].latency_max_ms < Some(2_000.0));
}

#[test]
fn readings_that_find_the_queue_full_are_lost() {
    let run = run_of(&format!(
        "duration_s = 300\nwarmup_s = 10\nwire.loss = 1.0\n{MOTE}[[flow]]\nkind = \"readings\"\nqueue = 64\n"
    ));
    // None comes through, and TCP's buffer takes some of those that did not fit the queue.
    let [made, came] = run.flows[0].messages.unwrap();
    assert_eq!(came, 0);
    assert!((150..=236).contains(&made), "{made}");
}

#[test]
fn readings_go_on_after_an_outage() {
    let run = run_of(&format!(
        "duration_s = 900\nwarmup_s = 10\n{MOTE}[[flow]]\nkind = \"readings\"\nbatch = 16\n[[fault]]\n\
         kind = \"off\"\nnode = 1\nat_s = 200\nfor_s = 100\n"
    ));
    let flow = &run.flows[0];
    assert!(flow.intact, "numbers go on where they were");
    let [made, came] = flow.messages.unwrap();
    assert!(
        (780..=800).contains(&made) && came + 40 >= made,
        "{came} of {made}"
    );
}

#[test]
fn a_long_run_has_its_hours_and_a_battery_its_days() {
    let run = run_of(&format!(
        "duration_s = 7300\nwarmup_s = 10\n{MOTE}[battery]\ncell_mah = 2000\nsensor_ua = 100\n[[flow]]\nkind \
         = \"readings\"\n"
    ));
    let hours: Vec<_> = run
        .hours
        .iter()
        .map(|hour| (hour.node, hour.hour))
        .collect();
    assert_eq!(hours, [(1, 0), (1, 1)]);
    let duty = run.nodes[1].counts.radio_duty();
    let of_hours = (run.hours[0].radio_duty + run.hours[1].radio_duty) / 2.0;
    assert!((duty / of_hours - 1.0).abs() < 0.1, "{duty} {of_hours}");
    // The sensor alone would let them last 833 days.
    let days = run.nodes[1].battery_days.unwrap();
    assert!((100.0..833.0).contains(&days), "{days}");
    assert_eq!(
        run.nodes[0].battery_days, None,
        "the border router has a cable"
    );
}

#[test]
fn nights_are_quieter_than_days() {
    let folder = std::env::temp_dir().join(format!("motet-night-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let noise = |name: &str, dbm: i32| {
        let file = folder.join(name);
        std::fs::write(&file, format!("{dbm}\n")).unwrap();
        file.display().to_string()
    };
    let (day, night) = (noise("day", -60), noise("night", -110));
    let retries = |hour: &str| {
        let run = run_of(&format!(
            "duration_s = 120\nwarmup_s = 10\n[topology]\nchain = 1\njoining = \"static\"\n[interference]\n\
             trace = \"{day}\"\nnight = \"{night}\"\nhour = {hour}\n[[flow]]\nkind = \"udp\"\n"
        ));
        run.flows[0].messages.unwrap()[1]
    };
    assert_eq!(retries("12"), 0, "louder than any frame");
    assert!(retries("22") > 110);
    assert!(
        (40..80).contains(&retries("7.98333")),
        "the day begins within"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_contradicts_itself_is_refused() {
    let chain = "[topology]\nchain = 2\n[[flow]]\n";
    for (more, words) in [
        (
            "kind = \"readings\"\nqueue = 20\nbatch = 21",
            &["flow.batch is 21", "flow.queue, which is 20"][..],
        ),
        (
            "kind = \"readings\"\nfrom = \"host\"\nto = 1",
            &["flow.from is \"host\"", "must be a mote"],
        ),
        (
            "kind = \"periodic\"\nbatch = 3",
            &["flow.batch is 3", "unless flow.kind is \"readings\""],
        ),
        (
            "[interference]\ntrace = \"Cargo.toml\"\nhour = 3",
            &["interference.hour is 3", "without interference.night"],
        ),
        (
            "[interference]\ntrace = \"a\"\nnight = \"b\"\nday_from_h = 18\nday_to_h = 8",
            &["interference.trace", "no such file"],
        ),
        (
            "[battery]\ncell_mah = 0",
            &["battery.cell_mah is 0", "from 1"],
        ),
    ] {
        let refused = plan(&format!("{chain}{more}\n")).unwrap_err().to_string();
        for word in words {
            assert!(refused.contains(word), "{more}: {refused}");
        }
        assert_eq!(refused.lines().count(), 1, "{refused}");
    }
}
