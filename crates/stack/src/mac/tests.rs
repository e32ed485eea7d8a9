//! The MAC against a virtual radio, and its parts against naive models.

mod bench;
#[cfg(feature = "security")]
mod cipher;
mod immediate;
#[cfg(feature = "offload")]
mod offload;
mod queue_model;
mod reception;
#[cfg(feature = "security")]
mod secured;
mod silence;
#[cfg(feature = "sleepy")]
mod sleep;
#[cfg(feature = "security")]
mod strangers;
mod timing;
mod transmission;
