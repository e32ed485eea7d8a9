//! The judge itself: that it can fail, refuse, and say why.

use super::*;

const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 8000 <mss 1000>
+0 > S. 0:0(0) ack 1 win 9760 <mss 1440>
+0 < . 1:1(0) ack 1 win 8000
+0 accept(3, ..., ...) = 4
";

fn outcome(rest: &str) -> ScriptOutcome {
    run(&format!("{OPEN}{rest}"), &Judge::default())
}

fn problem(outcome: ScriptOutcome) -> String {
    match outcome {
        ScriptOutcome::Passed => panic!("it passed"),
        ScriptOutcome::Failed(problem) => format!("failed {problem}"),
        ScriptOutcome::Refused(problem) => format!("refused {problem}"),
    }
}

#[test]
fn a_script_that_holds_passes() {
    let text = "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n\
                +.1 < . 1:1(0) ack 101 win 8000\n+0 %{ assert tcpi_state == TCP_ESTABLISHED }%";
    assert_eq!(outcome(text), ScriptOutcome::Passed);
}

#[test]
fn every_field_of_a_segment_can_fail() {
    let cases = [
        ("> P. 2:102(100) ack 1", "differs in seq"),
        ("> P. 1:100(99) ack 1", "differs in length"),
        ("> P. 1:101(100) ack 2", "differs in ack"),
        ("> . 1:101(100) ack 1", "differs in flags"),
        ("> P. 1:101(100) ack 1 win 1", "differs in win"),
        (
            "> P. 1:101(100) ack 1 <nop,nop,sackOK>",
            "differs in options",
        ),
        ("> [ect0] P. 1:101(100) ack 1", "differs in ecn"),
        ("> (hlim 3) P. 1:101(100) ack 1", "differs in hlim"),
        ("> (class 0x20) P. 1:101(100) ack 1", "differs in class"),
        ("> P. 1:101(100) ack 1 urg 5", "differs in urg"),
        ("> 9 > 10 P. 1:101(100) ack 1", "differs in ports"),
    ];
    for (line, message) in cases {
        let text = problem(outcome(&format!("+0 write(4, ..., 100) = 100\n+0 {line}")));
        assert!(text.starts_with("failed 9:"), "{text}");
        assert!(text.contains(message), "{line}: {text}");
        assert!(text.contains("expected: +0 >"), "{text}");
        assert!(text.contains("seen:     > P. 1:101(100) ack 1"), "{text}");
    }
}

#[test]
fn times_count() {
    let early = problem(outcome(
        "+0 write(4, ..., 100) = 100\n+1 > P. 1:101(100) ack 1",
    ));
    assert!(early.contains("differs in time"), "{early}");
    let late = problem(outcome(
        "+0 < . 1:101(100) ack 1 win 8000\n+0 > . 1:1(0) ack 101",
    ));
    assert!(
        late.contains("expected 0.000000 s, seen 0.100000 s"),
        "{late}"
    );
    let never = problem(outcome("+0 > . 1:1(0) ack 1"));
    assert!(never.contains("the stack sent none"), "{never}");
}

/// Public scripts leave answers unclaimed; text is another matter.
#[test]
fn under_a_profile_an_answer_may_stay_unclaimed_and_text_may_not() {
    let judge = Judge {
        profile: Profile::FreeBsd,
        ..Judge::default()
    };
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 8000 <mss 1000>
+0 > S. 0:0(0) ack 1 win 65535 <mss 1440>
+0 < . 1:1(0) ack 1 win 8000
+0 accept(3, ..., ...) = 4
";
    let end = "+1 < . 1:1(0) ack 1 win 8000";
    let answered = format!("{open}+0 < . 0:0(0) ack 1 win 8000\n{end}");
    assert_eq!(run(&answered, &judge), ScriptOutcome::Passed);
    let babbled = format!("{open}+0 write(4, ..., 100) = 100\n{end}");
    let text = problem(run(&babbled, &judge));
    assert!(text.contains("the stack sent more"), "{text}");
}

#[test]
fn what_nobody_claims_fails_at_the_end() {
    let text = problem(outcome(
        "+0 write(4, ..., 100) = 100\n+1 %{ assert tcpi_state == TCP_ESTABLISHED }%",
    ));
    assert!(text.contains("the stack sent more"), "{text}");
    // The way out may provoke what it likes.
    assert_eq!(outcome("+0 close(4) = 0"), ScriptOutcome::Passed);
    // Not so what came before it.
    let text = problem(outcome("+0 write(4, ..., 100) = 100\n+1 close(4) = 0"));
    assert!(text.contains("the stack sent more"), "{text}");
}

#[test]
fn calls_are_judged() {
    let cases = [
        (
            "+0 write(4, ..., 100) = 99",
            "failed 8:1: write went otherwise",
        ),
        ("+0 close(9) = 0", "result: expected 0, got -1"),
        (
            "+0 close(9) = -1 EINVAL",
            "errno: expected EINVAL, got EBADF",
        ),
        ("+0 read(4, ..., 10) = 10", "the call blocks"),
        ("+0...1 read(4, ..., 10) = 10", "never returned"),
        (
            "+0...1 read(4, ..., 10) = 10\n+.1 < . 1:11(10) ack 1 win 8000",
            "expected to return at 1.000000 s, returned at 0.100000 s",
        ),
        (
            "+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [1], [4]) = 0",
            "value: expected 1, got 0",
        ),
        (
            "+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLIN}], 1, 0) = 1",
            "revents: expected 0x1, got 0x4",
        ),
        (
            "+0 %{ assert tcpi_state == TCP_LISTEN }%",
            "does not hold: tcpi_state = 1",
        ),
        (
            "+0 %{ assert 3 >= tcpi_state >= 2 }%",
            "does not hold: tcpi_state = 1",
        ),
        (
            "+0 %{ assert tcpi_state == 2 | 1 & 1 }%",
            "does not hold: tcpi_state = 1",
        ),
        (
            "+0 `sockstat | grep -c LAST_ACK | grep 1`",
            "finds nothing in",
        ),
    ];
    for (text, message) in cases {
        let seen = problem(outcome(text));
        assert!(seen.starts_with("failed"), "{text}: {seen}");
        assert!(seen.contains(message), "{text}: {seen}");
    }
}

#[test]
fn what_cannot_be_expressed_is_refused() {
    let cases = [
        ("+0 mmap(1) = 0", "the call `mmap` cannot be expressed"),
        ("+0 `rm -rf /tmp/x`", "is not known, and not executed"),
        (
            "+0 `sysctl -w net.inet.tcp.blackhole=1`",
            "cannot be expressed",
        ),
        ("+0 `sockstat | awk 1`", "is not known in a pipe"),
        ("+0 `set no_such=1`", "is no setting"),
        (
            "+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0",
            "`TCP_CORK` cannot be expressed",
        ),
        ("+0 send(4, ..., 1, MSG_OOB) = 1", "writing with flags 0x1"),
        (
            "+0 %{ assert tcpi_fantasy == 1 }%",
            "`tcpi_fantasy` is nothing that this stack keeps",
        ),
        (
            "+0 < S 0:0(0) win 8000 <FO TFO_COOKIE>",
            "`TFO_COOKIE` is no hexadecimal number",
        ),
        ("+0 %{ import os }%", "is no assertion"),
        ("+0 close(BOGUS) = 0", "the name `BOGUS` is not known"),
        ("+0 close() = 0", "takes 1 arguments"),
        (
            "+0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 5",
            "of this kind cannot be expressed",
        ),
        ("+0 close(4", "expected `,` or `)`"),
    ];
    for (text, message) in cases {
        let seen = problem(outcome(text));
        assert!(seen.starts_with("refused 8:"), "{text}: {seen}");
        assert!(seen.contains(message), "{text}: {seen}");
    }
    let seen = problem(run("--unheard_of=1\n0 close(3) = 0", &Judge::default()));
    assert!(
        seen.contains("refused 1:1: the option --unheard_of"),
        "{seen}"
    );
}

#[test]
fn strict_counts_bytes_and_loose_counts_meaning() {
    let text = OPEN.replace("<mss 1440>", "<nop,nop,nop,nop,mss 1440>");
    let strict = Judge {
        strict: true,
        ..Judge::default()
    };
    assert_eq!(run(&text, &Judge::default()), ScriptOutcome::Passed);
    assert!(problem(run(&text, &strict)).contains("differs in options"));
}

#[test]
fn a_line_may_stand_for_several_segments() {
    let text = "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1\n\
                +.01 < . 1:1(0) ack 3001 win 8000";
    assert_eq!(outcome(text), ScriptOutcome::Passed);
    let strict = Judge {
        strict_segments: true,
        ..Judge::default()
    };
    let seen = problem(run(&format!("{OPEN}{text}"), &strict));
    assert!(seen.contains("differs in"), "{seen}");
}

#[test]
fn both_profiles_open_as_their_system_does() {
    let open = |options: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
             +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
             +0 connect(3, ..., ...) = -1 EINPROGRESS (now)\n\
             +0 > S 0:0(0) <{options}>\n+0 close(3) = 0"
        )
    };
    for (profile, options) in [
        (
            Profile::FreeBsd,
            "mss 1440,nop,wscale 6,sackOK,TS val 1 ecr 0",
        ),
        (
            Profile::Linux,
            "mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 8",
        ),
        (Profile::Motet, "mss 1440,sackOK,TS val 1 ecr 0"),
    ] {
        let judge = Judge {
            profile,
            strict: true,
            ..Judge::default()
        };
        assert_eq!(
            run(&open(options), &judge),
            ScriptOutcome::Passed,
            "{profile:?}"
        );
    }
}

/// Linux marks the end of each packet that it hands down in one piece: half of cwnd at most.
#[test]
fn the_linux_profile_pushes_bursts() {
    let linux = Judge {
        profile: Profile::Linux,
        ..Judge::default()
    };
    let play = |rest: &str| {
        let open = OPEN.replace(" win 9760 <mss 1440>", " <mss 1460>");
        run(&format!("{open}{rest}"), &linux)
    };
    let write = "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [60000], 4) = 0\n\
                 +0 < . 1:1(0) ack 1 win 60000\n+0 write(4, ..., 30000) = 30000\n";
    let halves = "+0 > P. 1:5001(5000) ack 1\n+0 > P. 5001:10001(5000) ack 1\n";
    assert_eq!(play(&format!("{write}{halves}")), ScriptOutcome::Passed);
    // What follows the lines of a script in the same burst is left to the stack.
    let half = "+0 > P. 1:5001(5000) ack 1\n+0 %{ assert tcpi_state == TCP_ESTABLISHED }%\n";
    assert_eq!(play(&format!("{write}{half}")), ScriptOutcome::Passed);
    let thirds = "+0 > P. 1:3001(3000) ack 1\n";
    let seen = problem(play(&format!("{write}{thirds}")));
    assert!(seen.contains("differs in flags"), "{seen}");
}

/// As packetdrill: lines are about the connection that was opened last, unless they say more.
#[test]
fn segments_of_a_connection_left_behind_are_not_looked_at() {
    let text = "+0 close(4) = 0\n+0 close(3) = 0\n\
                +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n\
                +0 listen(3, 1) = 0\n+0 < S 0:0(0) win 8000 <mss 1000>\n\
                +0 > S. 0:0(0) ack 1 win 9760 <mss 1440>";
    assert_eq!(outcome(text), ScriptOutcome::Passed);
}
