//! What is a script, and where others go wrong.

use super::*;
use crate::packet::TcpOption;

fn event(text: &str) -> Event {
    let script = parse(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    script.events.into_iter().next().unwrap()
}

#[test]
fn times_are_read_exactly() {
    let cases = [
        ("0 close(3) = 0", Time::Absolute(0)),
        ("+0 close(3) = 0", Time::Relative(0)),
        ("+ 1.00 close(3) = 0", Time::Relative(1_000_000)),
        ("+.1 close(3) = 0", Time::Relative(100_000)),
        ("+.000001 close(3) = 0", Time::Relative(1)),
        ("12.345678 close(3) = 0", Time::Absolute(12_345_678)),
        ("* > . 1:1(0) ack 1", Time::Any),
        ("+0~+0.02 > . 1:1(0) ack 1", Time::RelativeRange(0, 20_000)),
        (
            "1~2.5 > . 1:1(0) ack 1",
            Time::AbsoluteRange(1_000_000, 2_500_000),
        ),
    ];
    for (text, time) in cases {
        assert_eq!(event(text).time, time, "{text}");
    }
}

#[test]
fn a_call_that_blocks_says_until_when() {
    for (text, until) in [
        ("+0...0.100 read(4, ..., 2000) = 2000", 100_000),
        ("+.1...0.200 accept(3, ..., ...) = 4", 200_000),
        ("0...0.5 connect(3, ..., ...) = 0", 500_000),
    ] {
        match event(text).action {
            Action::Call(call) => assert_eq!(call.until, Some(until), "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn segments_are_read_field_by_field() {
    let text = "+0 > (hlim 4, ect0) SEW. 1:11(10) ack 5 win 7 urg 2 <mss 9,nop,nop,sackOK>";
    let Action::Expect(spec) = event(text).action else {
        panic!("not a segment");
    };
    assert_eq!(spec.flags, 0x2 | 0x10 | 0x40 | 0x80);
    assert_eq!((spec.seq, spec.len, spec.ack), (Some(1), 10, Some(5)));
    assert_eq!((spec.window, spec.urgent), (Some(7), 2));
    assert_eq!(spec.ip.hop_limit, Some(4));
    assert_eq!(spec.ip.ecn, Some(EcnSpec::Is(2)));
    let options = [
        TcpOption::Mss(9),
        TcpOption::Nop,
        TcpOption::Nop,
        TcpOption::SackOk,
    ];
    assert_eq!(spec.options.as_deref(), Some(&options[..]));

    let Action::Expect(spec) = event("+0 > S. ...(0) ack 1 <...>").action else {
        panic!("not a segment");
    };
    assert_eq!((spec.seq, spec.options), (None, None));
}

#[test]
fn icmp_quotes_a_segment_in_front_or_behind() {
    let wanted = IcmpSpec {
        kind: [2, 0],
        mtu: 1280,
        seq: Some(1),
        len: 10,
    };
    for text in [
        "+0 < icmp packet_too_big mtu 1280 [1:11(10)]",
        "+0 < [1:11(10)] icmp packet_too_big mtu 1280",
    ] {
        match event(text).action {
            Action::InjectIcmp(spec) => assert_eq!(spec, wanted, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let Action::InjectIcmp(spec) = event("+0 < icmp unreachable port_unreachable [0:0(0)]").action
    else {
        panic!("not ICMP");
    };
    assert_eq!(spec.kind, [1, 4]);
}

#[test]
fn conditional_lines_take_the_standards_arm() {
    let text = "#ifdef STANDARD\n+0 close(3) = 0\n#else\n+0 close(4) = 0\n#endif\n\
                #ifdef FreeBSD\n+0 close(5) = 0\n#endif\n+0 close(6) = 0\n";
    let script = parse(text).unwrap();
    let lines: Vec<usize> = script.events.iter().map(|event| event.at.line).collect();
    assert_eq!(lines, [2, 9]);
}

#[test]
fn values_nest() {
    let text = "0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLIN}], 1, 0) = 1";
    let Action::Call(call) = event(text).action else {
        panic!("not a call");
    };
    let word = |name: &str| Value::Word(name.to_owned());
    let field = |name: &str, value| Value::Field(name.to_owned(), Box::new(value));
    let watch = Value::Struct(vec![
        field("fd", Value::Number(4)),
        field("events", Value::Or(vec![word("POLLIN"), word("POLLOUT")])),
        field("revents", word("POLLIN")),
    ]);
    assert_eq!(call.args.first(), Some(&Value::List(vec![watch])));
}

#[test]
fn an_error_names_line_column_and_what_is_missing() {
    let cases = [
        ("", 1, 1, "expected at least one event"),
        ("+0 socket(3\n", 2, 1, "expected `,` or `)`"),
        ("+0 close(3)\n+0 close(4) = 0", 2, 1, "expected `=`"),
        ("\n+0 > S 0:5(4)", 2, 8, "do not match"),
        ("+0 > Q 0:0(0)", 1, 6, "expected TCP flags"),
        ("+0 > S 0:0(0) <mss 70000>", 1, 20, "above 65535"),
        ("+0 > S 0:0(0) <sackOK>", 1, 16, "not padded"),
        ("+0 > S 0:0(0) <foo>", 1, 16, "expected a TCP option"),
        (
            "+0 < S 0:0(0) <...>",
            1,
            6,
            "is for segments that the stack sends",
        ),
        ("+0 > udp (10)", 1, 6, "udp packets cannot be expressed"),
        ("* < S 0:0(0)", 1, 3, "only a segment sent"),
        ("+2~+1 > S 0:0(0)", 1, 2, "backwards"),
        ("+x close(3) = 0", 1, 2, "expected a time"),
        ("`true", 1, 2, "expected a closing"),
        ("+0 %{ assert 1", 1, 6, "expected a closing"),
        ("#ifdef STANDARD\n+0 close(3) = 0", 1, 1, "without #endif"),
        ("#endif", 1, 1, "without #ifdef"),
        ("#if 1", 1, 1, "expected #ifdef"),
        ("+0 < icmp redirect [1:1(0)]", 1, 11, "expected unreachable"),
        (
            "+0 < icmp unreachable why [1:1(0)]",
            1,
            23,
            "expected a code",
        ),
        ("+0 > icmp unreachable", 1, 10, "TCP sends none"),
        (
            "+0 close(3) = 0\n--mtu=1500",
            2,
            1,
            "before the first event",
        ),
        ("99999999999 close(3) = 0", 1, 1, "too large"),
        ("+0 > . 1:1(0) ack 4294967296", 1, 19, "above 4294967295"),
    ];
    let mut wrong = Vec::new();
    for (text, line, column, message) in cases {
        let error = parse(text).expect_err(text);
        if (error.at.line, error.at.column) != (line, column) || !error.message.contains(message) {
            wrong.push(format!("{text:?}: {error:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
