//! Which of the planted bugs is in force: a file of the copy of the stack that holds them all.
//!
//! The stack itself knows nothing of this; `cargo xtask check planted` makes the copy.

use core::sync::atomic::{AtomicU8, Ordering};

/// A bug, by what it breaks; the patch of the same name puts it into the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Bug {
    /// Acknowledgments are compared as plain numbers, not modulo 2^32.
    SequenceWrap = 1,
    /// Timestamps are compared as plain numbers.
    TimestampWrap,
    /// A zero-window probe is not followed by another.
    LostTimer,
    /// A range kept out of order claims one byte more than came.
    ReassemblyOverlap,
    /// TCP's checksum is not verified.
    ChecksumIgnored,
    /// Frames that a neighbour repeats are delivered again.
    DuplicateFrame,
    /// Every packet in fragments gets the same tag.
    TagReuse,
    /// A window that opens again is not announced.
    WindowUpdateLost,
    /// Segments outside the window are dropped without being counted.
    DropUncounted,
    /// In recovery, an acknowledgment takes a byte too many off the send buffer.
    SendBufferTrimmed,
    /// A handshake that nobody accepts keeps its place.
    HalfOpenLeak,
    /// The last acknowledgment of a connection does not end it.
    LastAckIgnored,
    /// A new connection starts with what the last one left in its buffers.
    BuffersKept,
    /// A closed connection whose peer is slow gives up at once.
    HastyEnd,
    /// Data that come after all was read are not reported.
    EdgeLost,
    /// A route that the root has acknowledged is not repeated before it ends.
    DaoForgotten,
    /// A mote stays in its version of the DODAG, whatever the root begins.
    VersionIgnored,
    /// A router leaves out a step of a source route that has several.
    SegmentSkipped,
    /// A node that starts again begins with frame counters that it has used.
    CounterReused,
    /// A frame counter below the last one of a neighbour is believed.
    ReplayBelieved,
    /// A packet from outside with the address of a mote is passed on.
    ForgedSourceBelieved,
    /// TCP headers of segments with data are not compressed.
    HeadersPlain,
    /// Of a flow's packets into the mesh the newest goes first.
    NewestFirst,
    /// A frame waits three seconds longer in a relay's radio than it may.
    WaitTooLong,
    /// A receiver does not see that a packet was marked.
    MarkUnheard,
    /// A newer ACK takes the place of one that echoes a mark.
    EchoThinned,
    /// What link security adds to a frame is not counted in the MSS.
    SealForgotten,
    /// A segment that is sent again has a header as short as any.
    RepeatTrusted,
    /// A prefetched segment does not wait until its TCP has sent it.
    HeldLetGo,
    /// A relay that has nothing to do switches its receiver off.
    RelayAsleep,
    /// The border router's queues drop what is behind the second packet.
    QueueShortened,
    /// The policy holds packets that are not TCP.
    DatagramHeld,
    /// The policy `auto` holds the packets of a single flow.
    OneIsACrowd,
    /// Nothing is prefetched.
    NothingPrefetched,
    /// A frame that is sent again leaves at once where its condition comes true.
    RepeatAtOnce,
    /// Forged heads go on firing what waits for their neighbour.
    ForgeryForgiven,
    /// A packet whose TCP header is restored is taken for a marked one.
    RestoredMarked,
}

impl Bug {
    /// Bugs of parts that get in one another's way, and the requirement of `combined-all` whose row
    /// finds each.
    pub const INTERPLAY: [(Self, u8); 16] = [
        (Self::HeadersPlain, 1),
        (Self::NewestFirst, 2),
        (Self::WaitTooLong, 3),
        (Self::RepeatAtOnce, 4),
        (Self::ForgeryForgiven, 4),
        (Self::MarkUnheard, 5),
        (Self::EchoThinned, 6),
        (Self::SealForgotten, 7),
        (Self::RepeatTrusted, 8),
        (Self::RestoredMarked, 9),
        (Self::HeldLetGo, 10),
        (Self::RelayAsleep, 11),
        (Self::QueueShortened, 12),
        (Self::DatagramHeld, 13),
        (Self::OneIsACrowd, 14),
        (Self::NothingPrefetched, 15),
    ];

    /// Every bug that the soak finds, by number.
    pub const ALL: [Self; 21] = [
        Self::SequenceWrap,
        Self::TimestampWrap,
        Self::LostTimer,
        Self::ReassemblyOverlap,
        Self::ChecksumIgnored,
        Self::DuplicateFrame,
        Self::TagReuse,
        Self::WindowUpdateLost,
        Self::DropUncounted,
        Self::SendBufferTrimmed,
        Self::HalfOpenLeak,
        Self::LastAckIgnored,
        Self::BuffersKept,
        Self::HastyEnd,
        Self::EdgeLost,
        Self::DaoForgotten,
        Self::VersionIgnored,
        Self::SegmentSkipped,
        Self::CounterReused,
        Self::ReplayBelieved,
        Self::ForgedSourceBelieved,
    ];
}

/// The number of the bug; 0: none. One for the whole process: a run proves one bug.
static IN_FORCE: AtomicU8 = AtomicU8::new(0);

/// Puts `bug` into force instead of any other; `None` takes it out.
pub fn plant(bug: Option<Bug>) {
    IN_FORCE.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
}

/// Whether this bug is in force.
pub fn is(bug: Bug) -> bool {
    IN_FORCE.load(Ordering::Relaxed) == bug as u8
}
