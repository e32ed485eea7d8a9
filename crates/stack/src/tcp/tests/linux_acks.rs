//! The delayed ACK of Linux, after packets of Linux 6.18 (`cargo xtask interop kernel` compares).

use super::*;

const PSH: Flags = Flags::PSH;

const LINUX: Config = Config {
    linux_acks: true,
    accept_window: 60_000,
    ..PLAIN
};

/// A receiver to which segments of 400 octets come.
struct Reader {
    script: Script,
    next: u32,
}

impl Reader {
    fn new() -> Self {
        let mut script = Script::accepted_with(LINUX, say(SYN, 0, 0).mss(400), 8000, 60_000);
        script.wait_ms(50);
        Self { script, next: 1 }
    }

    /// A full segment comes; says whether it is acknowledged at once.
    fn is_answered(&mut self, flags: Flags) -> bool {
        let data = pattern(0, 400);
        let segment = say(ACK | flags, self.next, 1).data(&data);
        self.next += 400;
        self.script.peer(segment).unwrap();
        self.script.recv();
        let answer = self.script.poll();
        if let Some(answer) = &answer {
            assert_eq!(answer.header.ack.wrapping_sub(self.script.irs), self.next);
        }
        answer.is_some()
    }

    /// How long the ACK under way waits, ms.
    fn wait_ms(&mut self) -> u64 {
        let (answer, waited) = self.script.wait_for_segment();
        assert_eq!(answer.header.ack.wrapping_sub(self.script.irs), self.next);
        waited
    }

    /// Passes the ACKs that a connection begins with.
    fn settled() -> Self {
        let mut reader = Self::new();
        for number in 0..16 {
            assert!(reader.is_answered(ACK), "{number}");
            reader.script.wait_ms(10);
        }
        reader
    }
}

#[test]
fn the_first_sixteen_are_acknowledged_at_once_then_every_second() {
    let mut reader = Reader::settled();
    let answered: Vec<bool> = (0..6).map(|_| reader.is_answered(ACK)).collect();
    assert_eq!(answered, [false, true, false, true, false, true]);
}

#[test]
fn the_end_of_what_an_application_wrote_is_acknowledged_at_once() {
    let mut reader = Reader::settled();
    assert!(!reader.is_answered(ACK));
    assert!(reader.is_answered(PSH));
    assert!(reader.is_answered(PSH));
    assert!(!reader.is_answered(ACK));
}

/// A delay that was in vain is followed by one twice as long, no longer than the round trip and
/// never than 200 ms.
#[test]
fn a_delay_follows_the_time_between_segments() {
    let mut reader = Reader::settled();
    let delays: Vec<u64> = (0..3)
        .map(|_| {
            assert!(!reader.is_answered(ACK));
            let waited = reader.wait_ms();
            reader.script.wait_ms(100);
            waited
        })
        .collect();
    assert_eq!(delays[0], 40);
    assert!(
        delays.iter().all(|ms| (40..=200).contains(ms)),
        "{delays:?}"
    );
}

#[test]
fn a_duplicate_makes_it_quick_again() {
    let mut reader = Reader::settled();
    assert!(!reader.is_answered(ACK));
    assert!(reader.is_answered(ACK));
    let data = pattern(0, 400);
    let again = say(ACK, reader.next - 400, 1).data(&data);
    assert!(reader.script.peer(again).is_err());
    assert!(reader.script.poll().is_some());
    assert!(reader.is_answered(ACK));
    assert!(reader.is_answered(ACK));
}

#[test]
fn an_answer_takes_the_acknowledgment_along() {
    let mut reader = Reader::settled();
    for number in 0..3 {
        let data = pattern(0, 30);
        let request = say(ACK | PSH, reader.next, 1 + number * 10).data(&data);
        reader.next += 30;
        reader.script.peer(request).unwrap();
        reader.script.recv();
        reader.script.send(10);
        let answer = reader.script.poll().expect("an answer");
        assert_eq!(answer.payload.len(), 10);
        assert!(reader.script.poll().is_none(), "no ACK beside it");
    }
}
