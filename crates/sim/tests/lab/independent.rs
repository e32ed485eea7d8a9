//! Six results by plain arithmetic of the standards, and the lab's beside them.
//!
//! Nothing on the left of a comparison comes from the code that makes the right: no time, length or
//! interval of the stack or of the lab. What frames a run had is read from its capture.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_lab::capture::{Capture, Records};
use motet_lab::keys::{KeyFile, SECRET_LEN};
use motet_lab::scenario::{Captures, Overrides, Plan, RunResult, STATES, Watch};

/// IEEE 802.15.4-2006 §6.5, O-QPSK at 2.4 GHz: 62,500 symbols a second, two of them a byte.
const SYMBOL_US: f64 = 16.0;
const BYTE_US: f64 = 2.0 * SYMBOL_US;
/// Preamble, start of frame, length: §6.3.
const BEFORE_PSDU: f64 = 6.0;
/// `aTurnaroundTime`, `aUnitBackoffPeriod`, the assessment (8 symbols), `macMinLIFSPeriod`.
const TURNAROUND_US: f64 = 12.0 * SYMBOL_US;
const UNIT_BACKOFF_US: f64 = 20.0 * SYMBOL_US;
const ASSESSMENT_US: f64 = 8.0 * SYMBOL_US;
const LIFS_US: f64 = 40.0 * SYMBOL_US;
/// `macMinBE`: backoffs of 0 to 7 units.
const BACKOFFS: u32 = 8;
/// Frame control, sequence number, FCS (§7.2.2.3).
const ACK_LEN: f64 = 5.0;

fn air_us(psdu_len: f64) -> f64 {
    (BEFORE_PSDU + psdu_len) * BYTE_US
}

/// A frame on the air: when it began, s, and its PSDU.
struct Heard {
    at_s: f64,
    psdu: Vec<u8>,
}

impl Heard {
    /// Frame type, §7.2.1.1.1.
    fn kind(&self) -> u8 {
        self.psdu[0] & 7
    }

    /// Whether it goes to all: a short destination, 0xffff.
    fn is_for_all(&self) -> bool {
        self.psdu[1] >> 2 & 3 == 2 && self.psdu[5..7] == [0xff, 0xff]
    }
}

const DATA: u8 = 1;
const COMMAND: u8 = 3;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("independent-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a scenario; the result, and what was on the air.
fn run(name: &str, text: &str) -> (RunResult, Vec<Heard>) {
    let folder = Folder::new(name);
    if text.contains("k.key") {
        key(&folder.file("k.key"));
    }
    let plan = Plan::parse(text, &folder.file("s.toml"), Overrides::default()).unwrap();
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let path = folder.file("air.pcap");
    // Of Bluetooth LE no frame is looked at.
    let is_captured = !text.contains("peripherals");
    let captures = Captures {
        air: is_captured.then(|| Capture::create(&path, Records::Frames, true).unwrap()),
        ..Captures::default()
    };
    let result = plan.run(&watch, captures).remove(0);
    assert!(result.failure.is_none(), "{:?}", result.failure);
    let mut heard = Vec::new();
    if !is_captured {
        return (result, heard);
    }
    let bytes = std::fs::read(path).unwrap();
    let mut rest = &bytes[24..];
    while let Some((head, after)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let (psdu, next) = after.split_at(word(8) as usize);
        rest = next;
        heard.push(Heard {
            at_s: f64::from(word(0)) + f64::from(word(4)) / 1e6,
            psdu: psdu.to_vec(),
        });
    }
    (result, heard)
}

/// Writes a key file that its owner alone may read.
fn key(path: &Path) {
    let text = KeyFile::new(&[7; SECRET_LEN]).text();
    std::fs::write(path, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn is_within(percent: f64, measured: f64, computed: f64) -> bool {
    (measured / computed - 1.0).abs() * 100.0 <= percent
}

/// A sender that has always a frame for its only neighbour: the frames a second, and how long they
/// are. Its backoffs are the standard's: a pace would shorten them.
fn saturated(name: &str, security: &str) -> (f64, f64) {
    let (_, heard) = run(
        name,
        &format!(
            "duration_s = 30\nwarmup_s = 0\n[topology]\nchain = 1\njoining = \"static\"\n[radio]\n\
             profile = \"ideal\"\n[stack]\npacing = \"off\"\n{security}\n[[flow]]\nkind = \"udp\"\n\
             interval_s = 0.003\nmessage_bytes = 60\n"
        ),
    );
    let data: Vec<&Heard> = heard.iter().filter(|frame| frame.kind() == DATA).collect();
    // Past the start: the queue is full from then on.
    let data = &data[data.len() / 4..];
    let len = data[0].psdu.len();
    assert!(data.iter().all(|frame| frame.psdu.len() == len));
    let seconds = data[data.len() - 1].at_s - data[0].at_s;
    ((data.len() - 1) as f64 / seconds, len as f64)
}

/// The spacing runs from the end of the ACK to the beginning of the next frame, and the backoff
/// within it (IEEE 802.15.4-2006 §7.5.1.3, Figure 63, and §7.5.1.4).
fn frames_a_second(psdu_len: f64) -> f64 {
    let before: f64 = (0..BACKOFFS)
        .map(|units| {
            let csma = f64::from(units) * UNIT_BACKOFF_US + ASSESSMENT_US + TURNAROUND_US;
            csma.max(LIFS_US)
        })
        .sum::<f64>()
        / f64::from(BACKOFFS);
    1e6 / (before + air_us(psdu_len) + TURNAROUND_US + air_us(ACK_LEN))
}

#[test]
fn frames_of_one_hop() {
    let (rate, len) = saturated("hop", "");
    let computed = frames_a_second(len);
    assert!(
        is_within(1.0, rate, computed),
        "{rate} and {computed} a second"
    );
}

/// Security control 1, frame counter 4, key index 1 (key identifier mode 1) and a MIC of 4 bytes
/// (§7.6.2, ENC-MIC-32): 10 bytes a frame, and the time that they take.
#[test]
fn the_overhead_of_a_key() {
    const OVERHEAD: f64 = 1.0 + 4.0 + 1.0 + 4.0;
    let (_, clear_len) = saturated("clear", "");
    let (rate, len) = saturated("secured", "[security]\nkey = \"k.key\"");
    assert_eq!(len - clear_len, OVERHEAD);
    let computed = frames_a_second(clear_len + OVERHEAD);
    assert!(
        is_within(1.0, rate, computed),
        "{rate} and {computed} a second"
    );
}

/// A data request (§7.3.4) with extended addresses: frame control 2, sequence 1, PAN 2, addresses 8
/// and 8, command 1, FCS 2. The radio assesses, turns round, sends, turns round and takes the ACK.
#[test]
fn the_radio_of_a_poll() {
    const REQUEST_LEN: f64 = 24.0;
    let poll_us =
        ASSESSMENT_US + TURNAROUND_US + air_us(REQUEST_LEN) + TURNAROUND_US + air_us(ACK_LEN);
    let (result, heard) = run(
        "poll",
        "duration_s = 1000\nwarmup_s = 100\n[topology]\nchain = 1\njoining = \"static\"\n[radio]\n\
         profile = \"ideal\"\n[stack]\nsleep = \"fixed\"\nsleep_interval_s = 1.0\n[[flow]]\n\
         kind = \"udp\"\ninterval_s = 100000\n",
    );
    let polls: Vec<&Heard> = heard.iter().filter(|it| it.kind() == COMMAND).collect();
    assert!(polls.len() > 900, "{}", polls.len());
    let len = polls[polls.len() / 2].psdu.len() as f64;
    assert_eq!(len, REQUEST_LEN);
    let counts = &result.nodes[1].counts;
    let all: u64 = counts.states_us.iter().sum();
    let sleep = STATES.iter().position(|state| *state == "sleep").unwrap();
    let awake_us = (all - counts.states_us[sleep]) as f64;
    let each = awake_us / 900.0;
    assert!(is_within(5.0, each, poll_us), "{each} and {poll_us} µs");
}

/// An hour of a Thread child asleep, which answers 64 B a minute and polls each 30 s: its radio is on
/// for what the capture has of it and its parent. Each exchange begins with an assessment; within
/// one, the child waits for frames that were promised, and for its own backoffs. A receiver
/// that stayed on between exchanges, or for a poll's time limit, is seen here.
#[test]
fn the_radio_of_a_thread_child_asleep() {
    // Longer than a backoff of `macMinBE`, and shorter than any wait between two exchanges.
    const WITHIN_US: f64 = 10_000.0;
    let (result, heard) = run(
        "child",
        "duration_s = 3700\nwarmup_s = 100\n[topology]\nchain = 1\njoining = \"thread\"\n[radio]\n\
         profile = \"ideal\"\n[stack]\nsleep = \"hinted\"\nsleep_idle_s = 30\n[[flow]]\n\
         kind = \"request\"\nfrom = \"host\"\nto = 1\nmessage_bytes = 64\nanswer_bytes = 64\n\
         interval_s = 60\n",
    );
    let counts = &result.nodes[1].counts;
    let all: u64 = counts.states_us.iter().sum();
    let sleep = STATES.iter().position(|state| *state == "sleep").unwrap();
    let awake_us = (all - counts.states_us[sleep]) as f64;
    // The router's broadcasts are not for those that sleep.
    let theirs = heard
        .iter()
        .filter(|it| it.at_s >= 100.0 && !it.is_for_all());
    let (mut on_us, mut polls) = (0.0, 0);
    let mut ended_us = f64::NEG_INFINITY;
    for it in theirs {
        let (at_us, air) = (it.at_s * 1e6, air_us(it.psdu.len() as f64));
        let gap_us = at_us - ended_us;
        on_us += match gap_us < WITHIN_US {
            true => gap_us,
            false => ASSESSMENT_US + TURNAROUND_US,
        };
        on_us += air;
        ended_us = at_us + air;
        polls += u32::from(it.kind() == COMMAND);
    }
    assert!((120..1_000).contains(&polls), "{polls}");
    assert!(
        is_within(15.0, awake_us, on_us),
        "{awake_us} and {on_us} µs, {polls} polls"
    );
}

/// Trickle (RFC 6206 §4.2) at rest: one DIO in each interval of Imax, by each node that hears fewer
/// than k of others. Imin 2^12 ms and 8 doublings: the configuration that DIOs of this root carry.
#[test]
fn dios_of_idle_hours() {
    const INTERVAL_S: f64 = 4.096 * 256.0;
    const HOURS: f64 = 10.0;
    let (_, heard) = run(
        "dios",
        "duration_s = 43200\nwarmup_s = 100\nsample_s = 1000\n[topology]\nchain = 3\n\
         joining = \"rpl\"\n[[flow]]\nkind = \"udp\"\ninterval_s = 1000000\n",
    );
    let end = heard.last().unwrap().at_s;
    let first = end - HOURS * 3_600.0;
    let at_rest = heard
        .iter()
        .filter(|it| it.at_s >= first && it.kind() == DATA);
    let dios = at_rest.filter(|it| it.is_for_all()).count() as f64;
    let computed = 4.0 * HOURS * 3_600.0 / INTERVAL_S;
    assert!(is_within(5.0, dios, computed), "{dios} and {computed} DIOs");
}

/// A connection event without data at 1 Mb/s (Core 5.4, vol 6 B §2.1 and §4.1): two packets of
/// preamble 1, access address 4, header 2 and CRC 3 bytes, 150 µs apart. A peripheral sends one of
/// them in each event.
#[test]
fn an_idle_bluetooth_event() {
    const EMPTY_US: f64 = (1.0 + 4.0 + 2.0 + 3.0) * 8.0;
    const INTERVAL_S: f64 = 0.05;
    const SECONDS: f64 = 900.0;
    let (result, _) = run(
        "ble",
        "duration_s = 1000\nwarmup_s = 100\n[topology]\nperipherals = 1\n[radio]\nkind = \"ble\"\n\
         interval_ms = 50\nadaptive = false\n[[flow]]\nkind = \"udp\"\ninterval_s = 1000000\n",
    );
    let events = SECONDS / INTERVAL_S;
    let sending = STATES
        .iter()
        .position(|state| *state == "transmit")
        .unwrap();
    let sent_us = result.nodes[1].counts.states_us[sending] as f64;
    let each = sent_us / events;
    assert!(is_within(1.0, each, EMPTY_US), "{each} and {EMPTY_US} µs");
}
