//! Where other threads ask the router's own thread for a [`Snapshot`].
//!
//! The router's thread has packets to let go in time: it answers between two packets, all that
//! have asked at once, with one snapshot. Writing it down is the askers' work.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use motet_router::wake::Bell;

use super::snapshot::Snapshot;

/// The router's side.
#[derive(Debug)]
pub(super) struct Desk {
    questions: Receiver<SyncSender<Arc<Snapshot>>>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    questions: SyncSender<SyncSender<Arc<Snapshot>>>,
    bell: Bell,
}

/// A desk whose askers ring `bell`.
pub(super) fn open(bell: Bell) -> (Desk, Asker) {
    let (sender, questions) = sync_channel(QUESTIONS_MAX);
    let asker = Asker {
        questions: sender,
        bell,
    };
    (Desk { questions }, asker)
}

impl Desk {
    /// Answers whoever has asked; `look` is called once, and only where somebody has.
    pub(super) fn answer(&self, look: impl FnOnce() -> Snapshot) {
        let Ok(first) = self.questions.try_recv() else {
            return;
        };
        let snapshot = Arc::new(look());
        for asker in std::iter::once(first).chain(self.questions.try_iter()) {
            // Room for the one answer is there; an asker may have gone.
            let _ = asker.try_send(Arc::clone(&snapshot));
        }
    }
}

impl Asker {
    /// The router now; `None` where it is too busy to answer, or about to end.
    pub(super) fn ask(&self) -> Option<Arc<Snapshot>> {
        let (sender, answer) = sync_channel(1);
        match self.questions.try_send(sender) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return None,
        }
        self.bell.ring();
        answer.recv_timeout(PATIENCE).ok()
    }
}

/// As many as can ask at a time: no more connections are served.
const QUESTIONS_MAX: usize = 16;

/// A router answers within a turn, which is milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use motet_router::wake::Wake;
    use motet_taim::{Config, Router};

    #[test]
    fn all_who_ask_are_answered_with_one_look() {
        let wake = Wake::new().unwrap();
        let (desk, asker) = open(wake.bell());
        let mut router = Router::new(Config::default());
        let status = router.status(motet::time::Instant::ORIGIN);
        let snapshot = Snapshot::of(&status, "wpan0", Duration::from_secs(3));
        desk.answer(|| unreachable!("nobody has asked"));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let asker = asker.clone();
                std::thread::spawn(move || asker.ask())
            })
            .collect();
        let mut looks = 0;
        while !threads.iter().all(std::thread::JoinHandle::is_finished) {
            desk.answer(|| {
                looks += 1;
                snapshot.clone()
            });
        }
        assert!((1..=4).contains(&looks), "{looks}");
        for thread in threads {
            assert_eq!(*thread.join().unwrap().unwrap(), snapshot);
        }
        drop(desk);
        assert_eq!(asker.ask(), None);
    }
}
