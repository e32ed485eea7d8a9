//! New firmware over CoAP: blocks into the same slot that `/firmware` writes.
//!
//! Place: a variant of [`crate::apps::App`], for comparison with HTTP. Flash, digests and the
//! signature cost what they cost there.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use motet::node::Node;
use motet::time::{Duration, Instant};
use motet::udp::{Inbox, Received};
use motet_update::{Demands, Header, Slot, SlotError};

use super::flash::{Flash, Partition};
use super::stored::Stored;
use crate::Arena;
use crate::apps::lines::Task;
use crate::apps::readings::take_inbox;
use crate::coap;
use crate::coap::take::{Taken, Taker};

/// A mote that takes new firmware over CoAP.
#[derive(Debug)]
pub struct BlockTaker<'m> {
    inbox: Option<Inbox<'m>>,
    demands: Demands,
    flash: Rc<Flash>,
    mail: Rc<Mail>,
    task: Option<Task<()>>,
    halted_until: Instant,
    halt: Duration,
    /// When an image first became pending.
    pending_since: Option<Instant>,
}

/// Messages for the task, and from it.
#[derive(Debug, Default)]
struct Mail {
    input: RefCell<VecDeque<(Received, Vec<u8>)>>,
    output: RefCell<VecDeque<(Received, Vec<u8>)>>,
    is_pending: std::cell::Cell<bool>,
}

impl<'m> BlockTaker<'m> {
    pub(in crate::apps) fn new(demands: Demands, arena: &'m Arena) -> Self {
        let memory = arena.alloc_slice_fill_copy(INBOX_LEN, 0);
        Self {
            inbox: Some(Inbox::new(arena.alloc_slice_copy(&[coap::PORT]), memory)),
            demands,
            flash: Flash::new(),
            mail: Rc::default(),
            task: None,
            halted_until: Instant::ORIGIN,
            halt: Duration::ZERO,
            pending_since: None,
        }
    }

    /// What the flash holds of `image`.
    pub(in crate::apps) fn stored(&self, image: &[u8]) -> Stored {
        Stored::new(&self.flash, image, self.pending_since)
    }

    pub(in crate::apps) fn next_deadline(&self) -> Option<Instant> {
        Some(self.halted_until).filter(|at| *at > Instant::ORIGIN)
    }

    pub(in crate::apps) fn take_halt(&mut self) -> Duration {
        std::mem::take(&mut self.halt)
    }

    pub(in crate::apps) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.inbox = take_inbox(node).or(self.inbox.take());
        self.task = None;
        self.mail = Rc::default();
        self.halt = Duration::ZERO;
        self.halted_until = Instant::ORIGIN;
    }

    pub(in crate::apps) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if let Some(inbox) = self.inbox.take() {
            node.set_inbox(inbox);
            return true;
        }
        if now < self.halted_until {
            return false;
        }
        self.halted_until = Instant::ORIGIN;
        let mut acted = false;
        let mut bytes = [0; MESSAGE_LEN_MAX];
        // The rest waits in the inbox, which is bounded.
        while self.mail.input.borrow().is_empty()
            && let Some(datagram) = node.inbox_mut().and_then(|inbox| inbox.recv(&mut bytes))
        {
            acted = true;
            let message = bytes[..datagram.len].to_vec();
            self.mail.input.borrow_mut().push_back((datagram, message));
        }
        let task = self.task.get_or_insert_with(|| {
            let (slot, notes) = self.flash.partitions();
            let (mail, demands) = (self.mail.clone(), self.demands.clone());
            Task::new(serve(mail, slot, notes, demands))
        });
        task.run();
        if self.mail.is_pending.get() {
            self.pending_since.get_or_insert(now);
        }
        let halt = self.flash.take_halt();
        if halt > Duration::ZERO {
            self.halt = self.halt + halt;
            self.halted_until = now + halt;
            return true;
        }
        for (to, answer) in self.mail.output.take() {
            acted = true;
            // A client asks again where there was no room for it.
            let _ = node.send_datagram(to.from, to.port, &answer);
        }
        acted
    }
}

/// Takes messages for ever; ends where flash fails.
async fn serve(mail: Rc<Mail>, slot: Partition, notes: Partition, demands: Demands) {
    let Ok(mut slot) = Slot::open(slot, notes, demands).await else {
        return;
    };
    let (mut taker, mut same) = (Taker::default(), None);
    loop {
        let (from, message) = poll_fn(|_| match mail.input.borrow_mut().pop_front() {
            Some(next) => Poll::Ready(next),
            None => Poll::Pending,
        })
        .await;
        let Some(taken) = taker.on_message(from.from, &message) else {
            continue;
        };
        match store(&mut slot, &mut same, &taken).await {
            Ok(Progress::Stored) => {}
            Ok(Progress::Pending) => {
                taker.end(true);
                mail.is_pending.set(true);
            }
            Ok(Progress::Lost) => taker.lose(),
            Err(_) => taker.end(false),
        }
        if let Some(answer) = taker.answer(&taken) {
            mail.output.borrow_mut().push_back((from, answer));
        }
    }
}

/// What became of a block.
enum Progress {
    /// It is stored.
    Stored,
    /// It was the last: the image is verified and pending.
    Pending,
    /// The block differs from the pending image. The new image replaces it, so that its earlier
    /// blocks must be sent again.
    Lost,
}

/// Stores what came. An image that is verified is not touched before a byte differs from it: after
/// a reset a mote knows no client, and blocks of the image may still come. `same`: how many of its
/// bytes have come again.
async fn store(
    slot: &mut Slot<Partition, Partition>,
    same: &mut Option<u32>,
    taken: &Taken,
) -> Result<Progress, SlotError> {
    if let Some(total) = taken.begins {
        let header: Option<&[u8; Header::LEN]> = taken.bytes.first_chunk();
        let header = header.ok_or(SlotError::Misplaced)?;
        let is_whole = slot.is_verified() && slot.total() == total;
        let is_same = is_whole && !taken.was_lost && holds(slot, 0, header).await?;
        *same = is_same.then_some(0);
        if !is_same {
            slot.begin(total, header).await?;
        }
    }
    if let Some(at) = *same {
        if !holds(slot, at, &taken.bytes).await? {
            *same = None;
            return Ok(Progress::Lost);
        }
        *same = Some(at + taken.bytes.len() as u32);
        if taken.ends && *same < Some(slot.total()) {
            return Err(SlotError::Misplaced);
        }
    } else {
        if !taken.bytes.is_empty() {
            slot.append(&taken.bytes).await?;
        }
        if taken.ends {
            slot.finish().await?;
        }
    }
    Ok(match taken.ends {
        true => Progress::Pending,
        false => Progress::Stored,
    })
}

/// Whether the slot has these bytes at that place.
async fn holds(
    slot: &mut Slot<Partition, Partition>,
    at: u32,
    bytes: &[u8],
) -> Result<bool, SlotError> {
    let mut stored = vec![0; bytes.len()];
    let count = slot.read(at, &mut stored).await?;
    Ok(count == bytes.len() && stored == bytes)
}

/// Two sets of Q-Block1, as many as a server keeps in any case.
const INBOX_LEN: usize = 24 * 1_024;

/// More than a packet of the mesh has.
const MESSAGE_LEN_MAX: usize = 1_280;

#[cfg(test)]
mod tests {
    use motet::Remote;
    use motet::random::Rng;

    use super::*;
    use crate::apps::push::{demands, image};
    use crate::coap::push::{Mode, Push};

    /// A mote without its radio.
    struct Mote {
        flash: Rc<Flash>,
        mail: Rc<Mail>,
        task: Task<()>,
    }

    impl Mote {
        fn new(flash: Rc<Flash>) -> Self {
            let (slot, notes) = flash.partitions();
            let mail: Rc<Mail> = Rc::default();
            let task = Task::new(serve(mail.clone(), slot, notes, demands()));
            Self { flash, mail, task }
        }

        /// Takes a message, whatever flash costs; returns the answers.
        fn take(&mut self, message: &[u8]) -> Vec<Vec<u8>> {
            let from = Received {
                from: Remote::from((std::net::Ipv6Addr::LOCALHOST, 7)),
                port: coap::PORT,
                len: message.len(),
            };
            let input = (from, message.to_vec());
            self.mail.input.borrow_mut().push_back(input);
            for _ in 0..FLASH_STEPS {
                assert!(self.task.run().is_none(), "it serves for ever");
            }
            let output = self.mail.output.take();
            output.into_iter().map(|(_, answer)| answer).collect()
        }

        /// Takes a whole image; returns whether it is now pending, and the messages.
        fn get(&mut self, mode: Mode, seed: u64, image: &[u8]) -> (bool, Vec<Vec<u8>>) {
            let mut push = Push::new(mode, (image.len(), 256), Rng::from_seed([seed, 1]));
            let (mut now, mut messages) = (Instant::ORIGIN, Vec::new());
            while push.outcome().is_none() {
                let Some(message) = push.poll(image, now) else {
                    now = push.next_deadline().unwrap_or(now + Duration::from_secs(1));
                    continue;
                };
                for answer in self.take(&message) {
                    push.on_message(&answer, now);
                }
                messages.push(message);
            }
            let is_there = self.flash.begins_with(image) && self.mail.is_pending.get();
            (push.outcome() == Some(true) && is_there, messages)
        }
    }

    /// Neither a late block nor a reset with a late block, nor the whole image again, touches what
    /// is pending; another image does.
    #[test]
    fn an_image_that_is_pending_stays_until_another_comes() {
        let [first, second] = [1, 2].map(|seed| image([seed, 1], 9_000));
        for mode in [Mode::Block1, Mode::QBlock1] {
            let mut mote = Mote::new(Flash::new());
            let (is_pending, messages) = mote.get(mode, 1, &first);
            assert!(is_pending, "{mode:?}");
            for has_reset in [false, true] {
                if has_reset {
                    mote = Mote::new(mote.flash);
                }
                for message in messages.iter().chain(messages.iter().rev()) {
                    mote.take(message);
                    assert!(mote.flash.begins_with(&first), "{mode:?} {has_reset}");
                }
            }
            mote = Mote::new(mote.flash);
            assert!(
                mote.get(mode, 3, &first).0,
                "{mode:?}: what it has, is taken"
            );
            let mut open = Mote::new(mote.flash);
            assert!(open.get(mode, 4, &second).0, "{mode:?}: another");
        }
    }

    /// More than pages and words of a block, of a verification and of a slot that is opened.
    const FLASH_STEPS: usize = 3_000;
}
