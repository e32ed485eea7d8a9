//! A channel by which other threads request a [`Snapshot`] from the router's own thread.
//!
//! The router's thread must release packets in time. So it answers between two packets, all pending
//! requests with one snapshot, and the requesting threads format it.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use motet_router::wake::Bell;

use super::snapshot::Snapshot;

/// The router's end, which answers.
#[derive(Debug)]
pub(super) struct SnapshotServer {
    questions: Receiver<SyncSender<Arc<Snapshot>>>,
}

/// The end of a thread that asks; clones ask the same router.
#[derive(Clone, Debug)]
pub(super) struct SnapshotClient {
    questions: SyncSender<SyncSender<Arc<Snapshot>>>,
    bell: Bell,
}

/// Both ends; a request rings `bell`.
pub(super) fn open(bell: Bell) -> (SnapshotServer, SnapshotClient) {
    let (sender, questions) = sync_channel(QUESTIONS_MAX);
    let snapshot_client = SnapshotClient {
        questions: sender,
        bell,
    };
    (SnapshotServer { questions }, snapshot_client)
}

impl SnapshotServer {
    /// Answers whoever has asked; `look` is called once, and only where somebody has.
    pub(super) fn answer(&self, look: impl FnOnce() -> Snapshot) {
        let Ok(first) = self.questions.try_recv() else {
            return;
        };
        let snapshot = Arc::new(look());
        for answer in std::iter::once(first).chain(self.questions.try_iter()) {
            // Room for the one answer is there; the thread that asked may have gone.
            let _ = answer.try_send(Arc::clone(&snapshot));
        }
    }
}

impl SnapshotClient {
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
        let (snapshot_server, snapshot_client) = open(wake.bell());
        let mut router = Router::new(Config::default());
        let status = router.status(motet::time::Instant::ORIGIN);
        let snapshot = Snapshot::of(&status, "wpan0", Duration::from_secs(3));
        snapshot_server.answer(|| unreachable!("nobody has asked"));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let snapshot_client = snapshot_client.clone();
                std::thread::spawn(move || snapshot_client.ask())
            })
            .collect();
        let mut looks = 0;
        while !threads.iter().all(std::thread::JoinHandle::is_finished) {
            snapshot_server.answer(|| {
                looks += 1;
                snapshot.clone()
            });
        }
        assert!((1..=4).contains(&looks), "{looks}");
        for thread in threads {
            assert_eq!(*thread.join().unwrap().unwrap(), snapshot);
        }
        drop(snapshot_server);
        assert_eq!(snapshot_client.ask(), None);
    }
}
