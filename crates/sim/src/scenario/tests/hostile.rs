//! Scenarios written by somebody careless or malicious: one sentence, soon.

use std::time::{Duration, Instant};

use super::*;

/// What is said about a scenario of this text, whose folder has `matrix.csv` and `noise` in it.
fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.path().join("matrix.csv"), "- -60\n-60 -\n").unwrap();
    std::fs::write(folder.path().join("noise"), "-90\n").unwrap();
    let began = Instant::now();
    let error = Plan::read(&file, Overrides::default()).expect_err(text);
    assert!(began.elapsed() < Duration::from_secs(20), "{text}");
    error.to_string()
}

/// Every key that names a file, in a scenario that is good but for that file.
fn naming(file: &str) -> [String; 6] {
    let file = toml::Value::from(file);
    [
        format!("[topology]\nmatrix = {file}\n[[flow]]\n"),
        format!("[topology]\nk7 = {file}\n[[flow]]\n"),
        format!("[topology]\nchain = 1\n[[flow]]\n[interference]\ntrace = {file}\n"),
        format!(
            "[topology]\nchain = 1\n[[flow]]\n[interference]\ntrace = \"noise\"\nnight = {file}\n"
        ),
        format!("[topology]\nchain = 1\n[[flow]]\n[security]\nkey = {file}\n"),
        format!(
            "[topology]\nchain = 1\n[[flow]]\n[[attacker]]\nnear = 1\nkind = \"pcap\"\nfile = {file}\n"
        ),
    ]
}

#[test]
fn every_key_that_names_a_file_is_tried() {
    let files = keys::SECTIONS.iter().flat_map(|section| section.keys);
    let files = files.filter(|key| key.kind.is_file()).count();
    assert_eq!(files, naming("").len());
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let pipe = pipe.to_str().unwrap().to_owned();
    for (file, why) in [
        ("/dev/zero", "a device or a pipe"),
        ("/dev/full", "a device or a pipe"),
        (&*pipe, "a device or a pipe"),
        ("/", "a directory"),
        ("", "a directory"),
        ("missing", "no such file"),
    ] {
        for text in naming(file) {
            let error = refusal(&text);
            assert!(error.contains(why), "{file}: {error}");
        }
    }
    let error = Plan::read(Path::new("/dev/zero"), Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("a device"), "{error}");
}

/// As `motet run <(make-scenario)` and `make-scenario | motet run /dev/stdin` have it.
#[cfg(unix)]
#[test]
fn a_scenario_may_come_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, CHAIN)
    });
    let plan = Plan::read(&pipe, Overrides::default()).unwrap();
    assert_eq!(plan.points.len(), 1);
    writer.join().unwrap().unwrap();
}

#[test]
fn files_without_an_end_are_not_read_to_it() {
    let folder = tempfile::tempdir().unwrap();
    // Sparse: it takes no room on the disk.
    let huge = folder.path().join("huge");
    let file = std::fs::File::create(&huge).unwrap();
    file.set_len(300 << 20).unwrap();
    for text in naming(huge.to_str().unwrap()) {
        let error = refusal(&text);
        assert!(error.contains("longer than 256 MiB"), "{error}");
    }
    let error = Plan::read(&huge, Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
}

#[test]
fn nothing_in_a_scenario_breaks_the_line_or_floods_the_screen() {
    let long = "z".repeat(100_000);
    let many = "[0, 0], ".repeat(20_000);
    let mut cases: Vec<String> = vec![
        "\"a\\nb\" = 3".into(),
        "\"\\u001b[2Jduration\" = 3".into(),
        "\"a\\u202eb\" = 3".into(),
        format!("{long} = 3"),
        format!("[{long}]"),
        format!("{long} = 3\n{long} = 4"),
        format!("x = {long}"),
        format!("name = [\"{long}\"]"),
        "duration_s = \"a\\nb\"".into(),
        format!("duration_s = \"{long}\""),
        format!("[topology]\npositions = [{many}[1]]\n[[flow]]"),
        format!("[topology]\nchain = 1\nparents = [{many}]\n[[flow]]"),
        format!("[stack]\n{long} = 3"),
        "[stack]\n\"a\\nb\" = 3".into(),
        format!("[stack]\ncompression = \"{long}\""),
        format!("[sweep]\n{long} = [3]"),
        "[sweep]\n\"a\\nb\" = [3]".into(),
        format!("[sweep]\nstack.{long} = 3"),
        format!("[sweep]\nduration_s = \"{long}\""),
        format!("[sweep]\nduration_s = [\"{long}\"]"),
        format!(
            "[topology]\nchain = 1\n[[flow]]\n[sweep]\nstack.hold_ms = [{}1]",
            "7, ".repeat(9_000)
        ),
        format!("[topology]\nchain = 1\n[[flow]]\n\"a\\nb{long}\" = 1"),
    ];
    cases.extend(naming("a\nb"));
    cases.extend(naming(&format!("a\u{1b}[31m{}", &long[..200])));
    for text in &cases {
        let error = refusal(text);
        let short: String = text.chars().take(60).collect();
        assert!(!error.contains(char::is_control), "{short:?}: {error:?}");
        assert!(!error.contains('\u{202e}'), "{short:?}: {error:?}");
        assert!(error.len() < 1_500, "{short:?}: {} bytes", error.len());
    }
}

#[test]
fn a_matrix_with_odd_entries_is_quoted_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    std::fs::write(&file, "[topology]\nmatrix = \"m\"\n[[flow]]\n").unwrap();
    for matrix in ["x".repeat(100_000), "- \u{1b}[2J\n- -\n".to_owned()] {
        std::fs::write(folder.path().join("m"), matrix).unwrap();
        let error = Plan::read(&file, Overrides::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("line 1 has"), "{error}");
        assert!(
            error.len() < 400 && !error.contains(char::is_control),
            "{error:?}"
        );
    }
}

/// The product is counted before it is made.
#[test]
fn a_sweep_over_too_much_is_refused_at_once() {
    let many = |value: &str, count: usize| vec![value; count].join(", ");
    let text = format!(
        "[topology]\nchain = 1\n[[flow]]\n[sweep]\nwarmup_s = [{}]\nduration_s = [{}]\n",
        many("1", 9_000),
        many("9", 900_000)
    );
    assert!(refusal(&text).contains("more than 10000 points"));
}

/// Each is allowed alone: 10,000 points, and 100,000 seeds.
#[test]
fn points_and_seeds_have_a_limit_together() {
    let text = |values: usize, seeds: u32| {
        let values: Vec<String> = (0..values).map(|value| value.to_string()).collect();
        format!(
            "seeds = {seeds}\n[topology]\nchain = 1\n[[flow]]\n[sweep]\n\"wire.delay_ms\" = [{}]\n",
            values.join(", ")
        )
    };
    let said = refusal(&text(2, 100_000));
    assert!(
        said.ends_with(
            "s.toml: 2 points with 100000 seeds each are 200000 runs, but a scenario may have 100000: sweep over \
             fewer values, or take fewer seeds"
        ),
        "{said}"
    );
    let plan = Plan::parse(&text(2, 50_000), Path::new("x.toml"), Overrides::default());
    assert_eq!(plan.unwrap().runs(), 100_000);
}
