//! `motet model`: what it computes, and what it refuses.

use serde_json::Value;

use crate::common::run;

fn answer(arguments: &[&str]) -> Value {
    let output = run([&["model", "--json"], arguments].concat());
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_published_example_is_met() {
    let row = answer(&[
        "--mss", "462", "--rtt", "755", "--loss", "0.00436", "--window", "4",
    ]);
    let second = row["eq2_kbps"].as_f64().unwrap();
    assert!(
        (second / 19.8 - 1.0).abs() < 0.06,
        "{second}: TCPlp Table 9 has 19.8"
    );
    assert!(row["eq1_kbps"].as_f64().unwrap() > 2.0 * second);
}

#[test]
fn without_loss_the_first_equation_has_no_value() {
    let row = answer(&[
        "--mss", "462", "--rtt", "213", "--loss", "0", "--window", "4",
    ]);
    assert!(row["eq1_kbps"].is_null());
    assert_eq!(row["eq2_kbps"], row["eq3_kbps"]);
}

#[test]
fn absurd_figures_are_refused_in_one_sentence() {
    let good = [
        ("--mss", "462"),
        ("--rtt", "755"),
        ("--loss", "0"),
        ("--window", "4"),
    ];
    let bad = [
        ("--mss", "0"),
        ("--mss", "many"),
        ("--rtt", "0"),
        ("--rtt", "nan"),
        ("--rtt", "inf"),
        ("--loss", "1"),
        ("--loss", "2.5"),
        ("--window", "0"),
    ];
    for (name, value) in bad {
        let arguments = good
            .iter()
            .flat_map(|(own, own_value)| [*own, if *own == name { value } else { own_value }]);
        let output = run(["model"].into_iter().chain(arguments));
        assert_eq!(output.status.code(), Some(2), "{name} {value}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(name), "{stderr}");
    }
}
