//! Documents that a program puts together, and keys that are options of a command line.

use motet::link::Forwarding;
use motet::time::Duration;

use super::*;
use crate::net::network::Tables;

fn made(keys: &[(&str, &str)]) -> Document {
    let mut document = Document::new();
    for (name, text) in keys {
        let setting = Setting::all().find(|setting| setting.name() == *name);
        let setting = setting.unwrap_or_else(|| panic!("there is no --{name}"));
        let text = setting.value_name().map(|_| *text);
        document.say(&setting, text).unwrap();
    }
    document.completed()
}

#[test]
fn every_option_is_a_key_with_values_that_it_may_have() {
    let mut names: Vec<&str> = Setting::all().map(|setting| setting.name()).collect();
    assert!(names.len() >= 17, "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Setting::all().count(), "two have one name");
    for setting in Setting::all() {
        let (section, key) = keys::find(&setting.path()).expect("a key of the table");
        if let Some(shown) = setting.shown_default() {
            assert_eq!(setting.read(shown).ok(), key.default_value(), "{shown}");
            let mut document = Document::new();
            document.say(&setting, Some(shown)).unwrap();
            assert_eq!(document.get(&setting.path()), None);
        }
        for choice in setting.choices().into_iter().flatten() {
            assert!(setting.read(choice).is_ok(), "{}: {choice}", key.name);
        }
        if setting.value_name().is_none() {
            let mut document = Document::new();
            document.say(&setting, None).unwrap();
            let said = document.get(&section.path(key.name));
            assert!(said.is_some() && said != key.default_value().as_ref());
        }
    }
}

#[test]
fn a_number_of_an_option_is_bounded_and_stepped() {
    let read = |name: &str, text: &str| {
        let setting = Setting::all().find(|setting| setting.name() == name);
        setting.unwrap().read(text).map(|value| value.to_string())
    };
    assert_eq!(read("retry-delay", "2000"), Ok("2000".to_owned()));
    let sentence = "it must be a whole number from 0 to 2000".to_owned();
    assert_eq!(read("retry-delay", "2001"), Err(sentence));
    assert_eq!(read("interval", "11.25"), Ok("11.25".to_owned()));
    assert!(read("interval", "11.3").unwrap_err().contains("steps"));
    for probability in ["1.5", "-0.1", "nan", "much"] {
        let sentence = "a probability lies between 0 and 1".to_owned();
        assert_eq!(read("frame-loss", probability), Err(sentence));
    }
}

/// A mesh that nobody has said anything of is TCPlp's three hops, with a measured pace.
#[test]
fn what_is_left_open_is_filled_in() {
    let scenario = made(&[]).scenario().unwrap();
    let network = &scenario.network;
    assert_eq!((network.nodes.len(), network.thins_acks), (4, true));
    let mote = &network.nodes[3];
    assert_eq!((mote.pace_percent, mote.window_segments), (100, 4));
    assert_eq!((mote.tables, network.hosts.len()), (Tables::RELAY, 1));
    let router = &network.nodes[0];
    assert_eq!((router.tables.bodies, router.tables.records), (32, 48));
    assert!(scenario.flows.is_empty());

    let scenario = made(&[("forwarding", "cit"), ("hops", "2")]).scenario();
    let mote = &scenario.unwrap().network.nodes[2];
    assert_eq!(mote.forwarding, Forwarding::Immediate);
    assert_eq!((mote.pace_percent, mote.window_segments), (100, 8));

    let by_hand = [("forwarding", "cit"), ("retry-delay", "15")];
    let scenario = made(&by_hand).scenario().unwrap();
    let mote = &scenario.network.nodes[3];
    assert_eq!(mote.pacing_step, Duration::from_millis(4));
    assert_eq!(mote.mac.retry_delay_max, Duration::from_millis(15));
    assert_eq!((mote.pace_percent, mote.window_segments), (0, 8));

    let ble = Document::new().with("radio.kind", "ble");
    let fixed = ble.clone().with("radio.interval_ms", 15.0).completed();
    for (document, interval, is_adaptive) in [(ble.completed(), 40, true), (fixed, 12, false)] {
        let network = document.scenario().unwrap().network;
        let ble = network.ble.unwrap();
        assert_eq!((ble.interval, ble.is_adaptive), (interval, is_adaptive));
        assert_eq!(network.nodes.len(), 2);
        assert_eq!(network.nodes[1].window_segments, 16);
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_a_rule_that_has_a_name() {
    let rule = |document: Document| document.scenario().unwrap_err().rule().cloned();
    let ble = |key, value: &str| {
        let document = Document::new().with("radio.kind", "ble");
        rule(document.with(key, value).completed())
    };
    let of_mesh = |key: &str| Some(Rule::OfMesh(vec![key.to_owned()]));
    assert_eq!(ble("stack.pacing", "auto"), of_mesh("stack.pacing"));
    assert_eq!(ble("stack.sleep", "hinted"), of_mesh("stack.sleep"));
    let two_hops = Document::new().with("radio.kind", "ble");
    let two_hops = two_hops.with("topology.chain", 2).completed();
    assert_eq!(rule(two_hops), of_mesh("topology.chain"));
    let of_ble = Rule::OfBle(vec!["radio.phy".to_owned()]);
    assert_eq!(rule(made(&[("phy", "2M")])), Some(of_ble));
    let by_hand = made(&[("pacing", "auto"), ("hold", "3")]);
    assert_eq!(rule(by_hand), Some(Rule::PaceByHand));
    let profile = |name| Document::new().with("radio.profile", name);
    let copies = profile("hamilton").with("stack.forwarding", "cit");
    assert_eq!(rule(copies.completed()), Some(Rule::SharedBuffer));
    let rcp = profile("rcp").with("stack.forwarding", "cit");
    assert_eq!(rule(rcp.completed()), Some(Rule::OwnAttempts));
    let rcp = profile("rcp").with("stack.deaf_backoff", true);
    assert_eq!(rule(rcp.completed()), Some(Rule::OwnAttempts));
    let silent = profile("telosb").with("stack.sleep", "hinted");
    assert_eq!(rule(silent.completed()), Some(Rule::NoPending));
    let tcple = Document::new().with("radio.kind", "ble");
    let tcple = tcple
        .with("radio.tcple", true)
        .with("radio.interval_ms", 15.0);
    assert_eq!(rule(tcple.completed()), Some(Rule::IntervalOfTcple));
}

/// What a key may not be is said when the document is used, as in a file.
#[test]
fn a_wrong_key_is_refused_as_in_a_file() {
    let sentence = |document: Document| document.scenario().unwrap_err().to_string();
    let wrong = Document::new().with("stack.hold_ms", -1.0);
    assert_eq!(
        sentence(wrong.with("stack.pacing", "off")),
        "stack.hold_ms is -1.0, but must be a number from 0 to 1000"
    );
    let unknown = sentence(Document::new().with("stack.hold", 1));
    assert!(unknown.contains("did you mean `hold_ms`?"), "{unknown}");
}
