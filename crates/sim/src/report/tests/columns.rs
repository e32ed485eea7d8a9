//! A table has every figure of the lines that it is made of.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::*;
use crate::report::json_lines;
use crate::scenario::{Captures, Overrides, Watch};

const ALL: [Of; 6] = [
    Of::Runs,
    Of::Flows,
    Of::Nodes,
    Of::Links,
    Of::Samples,
    Of::Summary,
];

fn ran(text: &str) -> (Plan, Vec<RunResult>) {
    let plan = Plan::parse(text, Path::new("test.toml"), Overrides::default()).unwrap();
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let results = plan.run(&watch, Captures::default());
    (plan, results)
}

/// A value of a table as JSON has it.
fn value(values: &Values, row: usize) -> Value {
    match values {
        Values::Whole(all) => all[row].map_or(Value::Null, Value::from),
        Values::Real(all) => all[row].map_or(Value::Null, Value::from),
        Values::Flag(all) => all[row].map_or(Value::Null, Value::from),
        Values::Text(all) => all[row].clone().map_or(Value::Null, Value::from),
    }
}

#[test]
fn a_table_has_what_the_lines_have() {
    let (plan, results) = ran(
        "duration_s = 3\nwarmup_s = 1\nseeds = 2\n[topology]\nchain = 2\n\
         [[flow]]\n[[flow]]\nkind = \"udp\"\nfrom = 1\n\
         [sweep]\nradio.frame_loss = [0, 0.1]\nstack.sack = [true]\n",
    );
    for of in ALL {
        let table = table(&plan, &results, of);
        let text = json_lines(&plan, &results);
        let lines = text.lines().map(|line| {
            let line: Map<String, Value> = serde_json::from_str(line).unwrap();
            line
        });
        let lines: Vec<_> = lines.filter(|line| line["record"] == of.record()).collect();
        assert!(!lines.is_empty() && table.rows == lines.len(), "{of:?}");
        let names: BTreeSet<&str> = table.columns.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names.len(), table.columns.len(), "{of:?}");
        for (row, line) in lines.iter().enumerate() {
            for column in &table.columns {
                let found = value(&column.values, row);
                let same = |wanted: &Value| {
                    let shown = wanted.to_string();
                    let is_number = wanted.as_f64().is_some() && wanted.as_f64() == found.as_f64();
                    *wanted == found || is_number || found.as_str() == Some(&shown)
                };
                let name = column.name.as_str();
                if let Some(wanted) = line.get(name).filter(|_| name != "point") {
                    assert!(same(wanted), "{of:?}.{name}: {wanted}, not {found}");
                } else if let Some(wanted) = line["point"].get(name) {
                    assert!(same(wanted), "{of:?}.{name}: {wanted}, not {found}");
                }
            }
            // No key of a line is left out.
            for (key, value) in line {
                let is_there = names.iter().any(|name| name.split('.').next() == Some(key));
                let is_whole = ["schema", "record", "outcomes"].contains(&key.as_str());
                assert!(is_there || is_whole, "{of:?}: {key} = {value}");
            }
        }
    }
}

#[test]
fn counts_that_a_line_leaves_out_are_zero() {
    let (plan, results) = ran("duration_s = 3\nwarmup_s = 1\n[topology]\nchain = 1\n[[flow]]\n");
    let table = table(&plan, &results, Of::Links);
    let of = |name: &str| {
        let column = table.columns.iter().find(|column| column.name == name);
        match &column.unwrap().values {
            Values::Whole(all) => all.iter().map(|count| count.unwrap()).sum::<u64>(),
            other => panic!("{other:?}"),
        }
    };
    let sum: u64 = Fate::NAMES
        .iter()
        .map(|name| of(&format!("fates.{name}")))
        .sum();
    assert_eq!(sum, of("frames"));
    assert_eq!(of("fates.injected"), 0);
}

#[test]
fn swept_values_have_one_type() {
    let whole = [Whole, Whole];
    assert_eq!(Type::of_all(&whole), Whole);
    assert_eq!(Type::of_all(&[Whole, Real]), Real);
    assert_eq!(Type::of_all(&[Flag, Whole]), Text);
    assert_eq!(Type::of(&toml::Value::Integer(-1)), Real);
}
