//! Power that goes at any instant: at each word written and each page erased.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use embassy_futures::block_on;
use motet_update::{Access, Demands, Firmware, Held, NoConnect, Served, Slot, SlotError};

use crate::conversation::{Said, ask, get, put};
use crate::flash::{Chip, Part, image, noise, sha256};

/// Pages of 512 bytes, words of 4, as many tests as that gives operations.
type Small<'c> = Part<'c, 1, 4, 512>;

const PAGE: usize = 512;
const PAGES: usize = 10;

fn parts(chip: &Chip) -> (Small<'_>, Small<'_>) {
    (chip.part(2 * PAGE, PAGES * PAGE), chip.part(0, 2 * PAGE))
}

fn chip() -> Chip {
    Chip::new((2 + PAGES) * PAGE)
}

fn open(chip: &Chip) -> Result<Firmware<'static, Small<'_>>, SlotError> {
    let (slot, notes) = parts(chip);
    let slot = block_on(Slot::open(slot, notes, Demands::default()))?;
    Ok(Firmware::new(slot, Access::Open))
}

/// What `HEAD` says: bytes stored and their digest.
fn held(firmware: &Firmware<'_, Small<'_>>) -> (usize, String) {
    let answer = ask(firmware, &get("HEAD", ""));
    assert_eq!(answer.status, 200);
    let len = answer.field("content-length").unwrap().parse().unwrap();
    (len, answer.field("repr-digest").unwrap().to_owned())
}

fn digest(bytes: &[u8]) -> String {
    use base64ct::{Base64, Encoding as _};
    let mut text = [0; 44];
    let text = Base64::encode(&sha256(bytes), &mut text).unwrap();
    format!("sha-256=:{text}:")
}

/// The image in the slot if MCUboot would take it: its magic number is whole.
fn is_pending(chip: &Chip) -> bool {
    let bytes = chip.bytes.borrow();
    bytes[bytes.len() - 16..] == 0x77c2_95f3_60d2_ef7f_3552_500f_2cb6_7980_u128.to_be_bytes()
}

fn slot_begins_with(chip: &Chip, image: &[u8]) -> bool {
    chip.bytes.borrow()[2 * PAGE..].starts_with(image)
}

struct Trial {
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Trial {
    /// Checks what a cut has left and brings the new image to its end. `stored`: bytes that had
    /// been stored before the cut at least.
    fn recover(&self, chip: &Chip, at_least: usize, what: &str) {
        let Self { old, new } = self;
        chip.power_up(u64::MAX, 0);
        if is_pending(chip) {
            let is_whole = slot_begins_with(chip, old) || slot_begins_with(chip, new);
            assert!(is_whole, "{what}: what is pending is no whole image");
        }
        let firmware = open(chip).unwrap();
        let (len, said) = held(&firmware);
        let is_old = said == digest(old) && len == old.len();
        let is_prefix = new.get(..len).is_some_and(|prefix| said == digest(prefix));
        assert!(is_old || is_prefix, "{what}: {len} bytes of neither image");
        assert!(is_old || len >= at_least, "{what}: {len} < {at_least}");
        if len < new.len() || is_old {
            let from = if is_old { 0 } else { len };
            let request = put(from, &new[from..], new.len());
            let answer = ask(&firmware, &request);
            assert_eq!(answer.status, 201, "{what}: {}", answer.text());
        }
        assert!(is_pending(chip), "{what}");
        assert!(slot_begins_with(chip, new), "{what}");
        let got = ask(&open(chip).unwrap(), &get("GET", ""));
        assert_eq!(got.body, *new, "{what}");
    }
}

fn trial() -> (Trial, Vec<u8>) {
    let trial = Trial {
        old: image(&noise(3 * PAGE + 33, 1), [1; 8]),
        new: image(&noise(5 * PAGE + 101, 2), [2; 8]),
    };
    let chip = chip();
    let firmware = open(&chip).unwrap();
    let old = &trial.old;
    assert_eq!(ask(&firmware, &put(0, old, old.len())).status, 201);
    let before = chip.bytes.borrow().clone();
    (trial, before)
}

/// How many bytes the slot had taken when the power went: a client learns no more than that.
fn upload_until_the_cut(chip: &Chip, new: &[u8], erases_ahead: bool) -> usize {
    let (slot, notes) = parts(chip);
    block_on(async {
        let Ok(mut slot) = Slot::open(slot, notes, Demands::default()).await else {
            return 0;
        };
        if erases_ahead {
            slot = slot.erasing_ahead();
        }
        if slot
            .begin(new.len() as u32, new.first_chunk().unwrap())
            .await
            .is_err()
        {
            return 0;
        }
        let mut taken = 0;
        for piece in new.chunks(61) {
            if slot.append(piece).await.is_err() {
                return taken;
            }
            taken += piece.len();
        }
        let _ = slot.finish().await;
        taken
    })
}

#[test]
fn a_cut_at_any_operation_costs_a_page_at_most() {
    let (trial, before) = trial();
    for erases_ahead in [false, true] {
        let count = {
            let chip = chip();
            chip.bytes.borrow_mut().clone_from(&before);
            chip.power_up(u64::MAX, 0);
            upload_until_the_cut(&chip, &trial.new, erases_ahead);
            chip.operations.get()
        };
        assert!(count > 600, "{count} operations");
        for (seed, cut) in (1..4).flat_map(|seed| (0..count).map(move |cut| (seed, cut))) {
            let chip = chip();
            chip.bytes.borrow_mut().clone_from(&before);
            chip.power_up(cut, seed);
            let taken = upload_until_the_cut(&chip, &trial.new, erases_ahead);
            assert!(!chip.has_power());
            let least = taken.saturating_sub(PAGE);
            let what = format!("seed {seed}, cut {cut}, ahead {erases_ahead}");
            trial.recover(&chip, least, &what);
        }
    }
}

/// The notes' two pages are full after some uploads: they are erased in turn, also while the power
/// goes again and again.
#[test]
fn cuts_again_and_again_leave_an_image_that_ends_well() {
    let (trial, before) = trial();
    let mut seed = 1_u64;
    for round in 0..200 {
        let chip = chip();
        chip.bytes.borrow_mut().clone_from(&before);
        for _ in 0..40 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let cut = (seed >> 33) % 300;
            chip.power_up(cut, seed);
            let Ok(firmware) = open(&chip) else { continue };
            let mut client = Said::new(&get("HEAD", ""));
            let _ = block_on(firmware.serve(&mut client, &NoConnect, &mut [0; 512]));
            let said = String::from_utf8_lossy(&client.output).into_owned();
            let len = said.split("Content-Length: ").nth(1);
            let len = len.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            let mut from: usize = len.unwrap_or(0);
            let is_prefix = |prefix| said.contains(&digest(prefix));
            if !trial.new.get(..from).is_some_and(is_prefix) {
                from = 0;
            }
            let request = put(from, &trial.new[from..], trial.new.len());
            let mut client = Said::new(&request);
            let _ = block_on(firmware.serve(&mut client, &NoConnect, &mut [0; 512]));
        }
        trial.recover(&chip, 0, &format!("round {round}"));
    }
}

/// A future that is dropped leaves the slot of the same process in order, too.
#[test]
fn a_request_that_is_dropped_costs_a_page_at_most() {
    let (trial, before) = trial();
    let new = &trial.new;
    for polls in (0..1_500).step_by(3) {
        let chip = chip();
        chip.bytes.borrow_mut().clone_from(&before);
        chip.power_up(u64::MAX, 0);
        let firmware = open(&chip).unwrap();
        chip.yields.set(true);
        let mut client = Said::new(&put(0, new, new.len()));
        let mut buffer = [0; 512];
        let mut has_ended = false;
        {
            let mut serving = pin!(firmware.serve(&mut client, &NoConnect, &mut buffer));
            let mut cx = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                if let Poll::Ready(served) = serving.as_mut().poll(&mut cx) {
                    assert!(matches!(served, Ok(Served::Pending(_))));
                    has_ended = true;
                    break;
                }
            }
        }
        chip.yields.set(false);
        let (len, said) = held(&firmware);
        let is_old = len == trial.old.len() && said == digest(&trial.old);
        if !is_old && !has_ended {
            assert_eq!(said, digest(&new[..len]), "{polls} polls");
            let answer = ask(&firmware, &put(len, &new[len..], new.len()));
            assert_eq!(answer.status, 201, "{polls} polls: {}", answer.text());
            assert!(is_pending(&chip) && slot_begins_with(&chip, new));
        }
        drop(firmware);
        trial.recover(&chip, 0, &format!("{polls} polls"));
    }
}

/// A boot loader that has exchanged the images leaves notes that flash does not bear out.
#[test]
fn notes_that_flash_does_not_bear_out_are_not_believed() {
    let (trial, before) = trial();
    let chip = chip();
    chip.bytes.borrow_mut().clone_from(&before);
    chip.bytes.borrow_mut()[2 * PAGE..].fill(0x5A);
    let firmware = open(&chip).unwrap();
    assert_eq!(held(&firmware), (0, digest(&[])));
    drop(firmware);
    trial.recover(&chip, 0, "exchanged");
}

/// After MCUboot's swap the slot has the image that ran before, whole and right, and as long.
#[test]
fn the_image_that_ran_before_is_not_taken_for_the_one_that_was_stored() {
    let chip = chip();
    let (before, new) = (
        image(&noise(1_500, 5), [5; 8]),
        image(&noise(1_500, 6), [6; 8]),
    );
    let firmware = open(&chip).unwrap();
    assert_eq!(ask(&firmware, &put(0, &new, new.len())).status, 201);
    assert_eq!(held(&firmware), (new.len(), digest(&new)));
    drop(firmware);
    // A reset alone changes nothing.
    assert_eq!(held(&open(&chip).unwrap()), (new.len(), digest(&new)));
    {
        let mut bytes = chip.bytes.borrow_mut();
        bytes[2 * PAGE..].fill(0xFF);
        bytes[2 * PAGE..][..before.len()].copy_from_slice(&before);
    }
    assert_eq!(held(&open(&chip).unwrap()), (0, digest(&[])));
    let primary = Chip::new(PAGES * PAGE);
    let part = || primary.part::<1, 4, 512>(0, PAGES * PAGE);
    assert_eq!(block_on(Held::in_primary(part())), None);
    primary.bytes.borrow_mut()[..new.len()].copy_from_slice(&new);
    let running = block_on(Held::in_primary(part()));
    let firmware = open(&chip).unwrap().running(running);
    assert_eq!(held(&firmware), (new.len(), digest(&new)));
    assert_eq!(ask(&firmware, &get("GET", "")).status, 409);
    // What is stored goes first.
    let part = put(0, &before[..700], before.len());
    assert_eq!(ask(&firmware, &part).status, 202);
    assert_eq!(held(&firmware), (700, digest(&before[..700])));
}

#[test]
fn flash_that_is_not_served_is_refused() {
    let chip = Chip::new(8 * 4_096);
    let open = block_on(Slot::open(
        chip.part::<1, 4, 4_096>(4_096, 4 * 4_096),
        chip.part::<1, 4, 4_096>(0, 4_096),
        Demands::default(),
    ));
    assert_eq!(open.err(), Some(SlotError::Flash), "one page of notes");
    let open = block_on(Slot::open(
        chip.part::<1, 64, 4_096>(8_192, 4 * 4_096),
        chip.part::<1, 64, 4_096>(0, 8_192),
        Demands::default(),
    ));
    assert_eq!(open.err(), Some(SlotError::Flash), "words of 64 bytes");
}
