//! The threads that runs go on.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// This process's pool, one thread a core. Python forks processes, and a forked one has the pool's memory but none of
/// its threads: it would wait for them for ever.
pub(crate) fn own() -> PyResult<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &*pool
        && *owner == process
    {
        return Ok(pool.clone());
    }
    // A run that panics drops its end of the channel, and `running::wait` raises an error. Without a handler
    // the process would end.
    let builder = ThreadPoolBuilder::new().panic_handler(drop);
    let new = builder.build().map(Arc::new);
    let new = new.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    // The parent's is left alone: to end it would be to speak to threads that are not here.
    std::mem::forget(pool.replace((process, new.clone())));
    Ok(new)
}
