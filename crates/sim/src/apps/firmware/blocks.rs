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
    let mut taker = Taker::default();
    loop {
        let (from, message) = poll_fn(|_| match mail.input.borrow_mut().pop_front() {
            Some(next) => Poll::Ready(next),
            None => Poll::Pending,
        })
        .await;
        let Some(taken) = taker.on_message(from.from, &message) else {
            continue;
        };
        match store(&mut slot, &taken).await {
            Ok(false) => {}
            Ok(true) => {
                taker.end(true);
                mail.is_pending.set(true);
            }
            Err(_) => taker.end(false),
        }
        if let Some(answer) = taker.answer(&taken) {
            mail.output.borrow_mut().push_back((from, answer));
        }
    }
}

/// Stores what came; returns whether the image is now verified and pending.
async fn store(slot: &mut Slot<Partition, Partition>, taken: &Taken) -> Result<bool, SlotError> {
    if let Some(total) = taken.begins {
        let header: Option<&[u8; Header::LEN]> = taken.bytes.first_chunk();
        slot.begin(total, header.ok_or(SlotError::Misplaced)?)
            .await?;
    }
    if !taken.bytes.is_empty() {
        slot.append(&taken.bytes).await?;
    }
    if taken.ends {
        slot.finish().await?;
    }
    Ok(taken.ends)
}

/// Two sets of Q-Block1, as many as a server keeps in any case.
const INBOX_LEN: usize = 24 * 1_024;

/// More than a packet of the mesh has.
const MESSAGE_LEN_MAX: usize = 1_280;
