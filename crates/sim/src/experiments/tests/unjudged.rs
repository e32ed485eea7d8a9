//! What the list does with a row.

use super::super::row::Point;
use super::*;

fn row(loss: &'static str) -> Row {
    let point = Point::default()
        .with("transport", "tcp")
        .with("hops", 3)
        .with("policy", loss);
    Row::new("tcplp-loss", point, ("coap_ahead", "%"), 1.0)
}

#[test]
fn a_withdrawn_criterion_gives_no_verdict_and_says_why() {
    let row = apply(row("a").at_least(0.0));
    assert_eq!((row.pass(), row.meets()), (None, None));
    assert!(row.is_withdrawn());
    let text = row.criterion.unwrap().text;
    assert!(text.starts_with("withdrawn, RACK"), "{text}");
    assert!(text.ends_with(": at least 0"), "{text}");
}

#[test]
fn a_published_figure_without_a_criterion_is_shown_and_nothing_else_is() {
    let text = apply(row("a").paper(1.0)).criterion.unwrap().text;
    assert!(text.starts_with("shown, RACK"), "{text}");
    assert_eq!(apply(row("a")).criterion, None);
    let fit = apply(row("a").at_least(0.0).fit());
    assert_eq!(fit.criterion.unwrap().text, "at least 0");
}

#[test]
fn keys_and_values_must_all_be_there() {
    let entry = rows(
        "tcplp-loss",
        "coap_ahead",
        &[("hops", "3"), ("policy", "a")],
        NEAR,
    );
    assert!(entry.has(&row("a")));
    assert!(!entry.has(&row("b")));
    let other = rows("tcplp-loss", "coap_ahead", &[("loss", "3")], NEAR);
    assert!(!other.has(&row("a")));
}
