//! Motes with a key whose counters are in files: over power cuts, slow and failing storages no nonce comes twice.

mod common;
#[path = "../../../examples/embassy/file_storage.rs"]
#[allow(
    unreachable_pub,
    clippy::allow_attributes,
    reason = "applications copy the file"
)]
mod file_storage;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use embassy_time::Timer;
use embedded_io_async::{Read, Write};
use motet::mac::security::{NetworkKey, Reservation, SecurityConfig};
use motet::wire::ieee802154::{FrameType, Header, check_fcs};
use motet_embassy::{Config, Secured, Storage};

use common::{AirRadio, Pair};
use file_storage::FileStorage;

const KEY: [u8; 16] = *b"sixteen bytes of";

/// When a storage does what it should not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// It takes so many milliseconds.
    Slow(u64),
    /// It refuses.
    Refuses,
    /// It stores, and cannot say so.
    Loses,
    /// The runner's future is dropped each 25 ms and begun again; the first store takes longer.
    Dropped,
}

/// A storage in a file, and its fault.
#[derive(Debug)]
struct Faulty {
    file: FileStorage,
    fault: Rc<Cell<Fault>>,
    stored: Rc<Cell<u32>>,
    tries: u32,
}

impl Storage for Faulty {
    type Error = String;

    async fn load(&mut self) -> Result<Option<Reservation>, String> {
        self.file.load().await.map_err(|error| error.to_string())
    }

    async fn store(&mut self, reservation: Reservation) -> Result<(), String> {
        self.tries += 1;
        match self.fault.get() {
            Fault::Dropped if self.tries == 1 => Timer::after_millis(60).await,
            Fault::Refuses => return Err("refused".into()),
            Fault::Slow(ms) => Timer::after_millis(ms).await,
            Fault::None | Fault::Loses | Fault::Dropped => {}
        }
        let stored = self.file.store(reservation).await;
        stored.map_err(|error| error.to_string())?;
        self.stored.set(self.stored.get() + 1);
        match self.fault.get() {
            Fault::Loses => Err("nobody knows".into()),
            _ => Ok(()),
        }
    }
}

/// Of each sender, key index and counter: the frame.
type Nonces = HashMap<(String, u8, u32), Vec<u8>>;

/// A life of two motes.
struct Life {
    pair: Pair,
    fault: Rc<Cell<Fault>>,
    stored: Rc<Cell<u32>>,
    refused: Rc<RefCell<Vec<String>>>,
}

impl Life {
    fn begin(folder: &Path, fault: Fault) -> Self {
        let (fault, stored) = (Rc::new(Cell::new(fault)), Rc::new(Cell::new(0)));
        let refused = Rc::new(RefCell::new(Vec::new()));
        let pair = {
            let (fault, stored) = (fault.clone(), stored.clone());
            let (folder, refused) = (folder.to_owned(), refused.clone());
            // The same random numbers in each life: only counters tell its frames from those before.
            Pair::running(7, &Config::mesh(0x4d54), move |eui64, runner| {
                let file = FileStorage::open(&folder, &KEY, eui64);
                let (fault, stored, refused) = (fault.clone(), stored.clone(), refused.clone());
                async move {
                    let file = match file {
                        Ok(file) => file,
                        Err(error) => {
                            refused.borrow_mut().push(error.to_string());
                            return;
                        }
                    };
                    let memory: &'static Secured = Box::leak(Box::new(Secured::new()));
                    let config = SecurityConfig::new(NetworkKey::new(KEY), 0);
                    let is_dropped = fault.get() == Fault::Dropped;
                    let storage = Faulty {
                        file,
                        fault,
                        stored,
                        tries: 0,
                    };
                    let runner = runner.secure::<Faulty, 16>(memory, config, storage);
                    let mut runner: motet_embassy::SecuredRunner<AirRadio, Faulty> =
                        runner.await.expect("it loads");
                    // Each span it is dropped, whatever it does.
                    let span = embassy_time::Duration::from_millis(25);
                    loop {
                        let running = runner.run();
                        match is_dropped {
                            true => _ = embassy_time::with_timeout(span, running).await,
                            false => running.await,
                        }
                    }
                }
            })
        };
        Self {
            pair,
            fault,
            stored,
            refused,
        }
    }

    /// Carries bytes there and back for `limit_s` at most; says whether they came.
    fn echo(&mut self, limit_s: u64) -> bool {
        let (client, server, at) = (self.pair.client, self.pair.server, self.pair.at(7));
        self.pair.executor.spawn(async move {
            let listener = server.listen(7).unwrap();
            let mut socket = listener.accept().await.unwrap();
            let mut bytes = [0; 64];
            while let Ok(len @ 1..) = socket.read(&mut bytes).await {
                if socket.write_all(&bytes[..len]).await.is_err() {
                    break;
                }
            }
        });
        let ask = async move {
            let Ok(mut socket) = client.connect(at).await else {
                return false;
            };
            let mut bytes = [0; 1_500];
            socket.write_all(&[5; 1_500]).await.is_ok()
                && socket.read_exact(&mut bytes).await.is_ok()
        };
        let limited = embassy_time::with_timeout(embassy_time::Duration::from_secs(limit_s), ask);
        let done = async move { limited.await.unwrap_or(false) };
        common::block_on(&mut self.pair.executor, limit_s + 1, done)
    }

    /// The power goes. Returns how many frames were sealed, none with a nonce of another frame.
    fn end(self, nonces: &mut Nonces) -> usize {
        let mut sealed = 0;
        for psdu in &self.pair.air.borrow().frames {
            let (header, auxiliary, _) = Header::parse_secured(check_fcs(psdu).unwrap()).unwrap();
            if header.frame_type == FrameType::Ack {
                continue;
            }
            let auxiliary = auxiliary.expect("it is sealed");
            let nonce = (
                format!("{:?}", header.src),
                auxiliary.key_index,
                auxiliary.counter,
            );
            let before = nonces.entry(nonce.clone()).or_insert_with(|| psdu.clone());
            assert_eq!(before, psdu, "{nonce:?} is of two frames");
            sealed += 1;
        }
        sealed
    }
}

#[test]
fn lives_that_end_at_any_moment_share_no_nonce() {
    let folder = tempfile::tempdir().unwrap();
    let mut nonces = Nonces::new();
    for life in 0..12 {
        let mut motes = Life::begin(folder.path(), Fault::Slow(life % 5 * 3));
        if life % 3 == 2 {
            assert!(motes.echo(60), "life {life}");
        } else {
            // In the middle of a store, and of whatever else.
            let until = common::now_us() + life * 2_777;
            let wait = async move { Timer::at(embassy_time::Instant::from_micros(until)).await };
            common::block_on(&mut motes.pair.executor, 60, wait);
        }
        motes.end(&mut nonces);
    }
    assert!(nonces.len() > 100, "{}", nonces.len());
}

/// A store that was dropped with the future that waited for it once left the mote silent until it rebooted.
#[test]
fn a_runner_that_was_dropped_in_the_middle_of_a_store_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut motes = Life::begin(folder.path(), Fault::Dropped);
    assert!(motes.echo(60));
    motes.end(&mut Nonces::new());
}

#[test]
fn nothing_is_sent_that_was_not_stored_and_then_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut nonces = Nonces::new();
    for fault in [Fault::Refuses, Fault::Loses] {
        let mut motes = Life::begin(folder.path(), fault);
        assert!(!motes.echo(25), "{fault:?}");
        assert!(motes.pair.air.borrow().frames.is_empty(), "{fault:?}");
        let failures = motes.pair.client.with_node(|node| {
            let motet::link::Link::Mesh(mesh) = node.link_mut(motet::ip::InterfaceId(0)).unwrap()
            else {
                panic!("a mesh");
            };
            let security = mesh.mac().security().unwrap();
            security.counters().storage_failures
        });
        // At once, and each 10 s.
        assert!((2..=4).contains(&failures), "{fault:?}: {failures}");
        // Once there is room again the same motes go on.
        motes.fault.set(Fault::None);
        motes.pair.executor.run_until(30, || {
            !motes.pair.air.borrow().frames.is_empty() || { motes.stored.get() >= 4 }
        });
        motes.end(&mut nonces);
        let mut motes = Life::begin(folder.path(), Fault::None);
        assert!(motes.echo(60), "{fault:?}");
        assert!(motes.end(&mut nonces) > 20);
    }
}

#[test]
fn two_motes_of_one_identity_and_a_file_put_back_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut motes = Life::begin(folder.path(), Fault::None);
    assert!(motes.echo(60));
    assert!(motes.refused.borrow().is_empty());
    let eui64 = [0x02, 0, 0, 0, 0, 0, 0, 1];
    let again = || {
        FileStorage::open(folder.path(), &KEY, eui64)
            .unwrap_err()
            .to_string()
    };
    assert!(again().contains("is in use"), "{}", again());
    motes.end(&mut Nonces::new());
    let record = std::fs::read_dir(folder.path().join("counters")).unwrap();
    let record = record.map(|entry| entry.unwrap().path());
    let record = record
        .filter(|path| path.extension().is_none())
        .find(|path| path.to_string_lossy().ends_with("0200000000000001"));
    let (record, kept) = (record.unwrap(), folder.path().join("kept"));
    // The kernel's time of making goes by ticks of a few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(50));
    std::fs::copy(&record, &kept).unwrap();
    std::fs::copy(&kept, &record).unwrap();
    // In its place: the same file. Moved there it is another one.
    drop(FileStorage::open(folder.path(), &KEY, eui64).unwrap());
    std::fs::rename(&kept, &record).unwrap();
    assert!(again().contains("is a copy"), "{}", again());
}
