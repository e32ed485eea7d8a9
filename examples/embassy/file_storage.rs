//! A mote's frame counters in a file, where there is an operating system.
//!
//! ```ignore
//! let storage = FileStorage::open("/var/lib/mote".as_ref(), &NETWORK_KEY, EUI64)?;
//! let config = SecurityConfig::new(NetworkKey::new(NETWORK_KEY), 0);
//! let mut runner = runner.secure(&SECURED, config, storage).await?;
//! runner.run().await
//! ```

use std::path::Path;

use motet::mac::security::Reservation;
use motet_embassy::Storage;
use motet_state::{Counters, Error, KeyName, Past};

/// One mote's counters, which no other process has meanwhile.
#[derive(Debug)]
pub struct FileStorage {
    counters: Counters,
    eui64: [u8; 8],
}

impl FileStorage {
    /// Opens a mote's file below `folder`, or makes it.
    ///
    /// # Errors
    /// One sentence that says what to do.
    pub fn open(folder: &Path, network_key: &[u8; 16], eui64: [u8; 8]) -> Result<Self, Error> {
        let name: String = eui64.iter().map(|byte| format!("{byte:02x}")).collect();
        let counters = Counters::open(folder, KeyName::of(network_key), &name)?;
        Ok(Self { counters, eui64 })
    }
}

impl Storage for FileStorage {
    type Error = Error;

    async fn load(&mut self) -> Result<Option<Reservation>, Error> {
        let Past {
            sequence, counter, ..
        } = self.counters.past(self.eui64);
        // A mote that has never had the key goes on at zero, too.
        Ok(Some(Reservation { sequence, counter }))
    }

    // It blocks for some milliseconds, once for thousands of frames.
    async fn store(&mut self, reservation: Reservation) -> Result<(), Error> {
        let past = Past {
            sequence: reservation.sequence,
            counter: reservation.counter,
            number: 0,
        };
        self.counters.keep(self.eui64, past)
    }
}
