//! New firmware over HTTP, for devices whose flash may lose power at any instant.
//!
//! ```
//! use embedded_io_async::{Read, Write};
//! use embedded_nal_async::TcpConnect;
//! use embedded_storage_async::nor_flash::NorFlash;
//! use motet_update::{Access, Demands, Firmware, PublicKey, Served, Slot, SlotError};
//!
//! /// The resource: MCUboot's secondary slot, two pages for notes, who may write, and whose
//! /// signature an image has to have.
//! async fn resource<F: NorFlash>(
//!     slot: F,
//!     notes: F,
//!     key: PublicKey,
//! ) -> Result<Firmware<'static, F>, SlotError> {
//!     let demands = Demands { key: Some(key), version_min: None };
//!     let slot = Slot::open(slot, notes, demands).await?;
//!     Ok(Firmware::new(slot, Access::Bearer(b"a token of this device")))
//! }
//!
//! /// One connection; `stack` fetches where a `POST` asks for it.
//! async fn serve<F: NorFlash, C: Read + Write, T: TcpConnect>(
//!     firmware: &Firmware<'_, F>,
//!     mut connection: C,
//!     stack: &T,
//! ) -> bool {
//!     let served = firmware.serve(&mut connection, stack, &mut [0; 1024]).await;
//!     // Then a reset lets MCUboot try it.
//!     matches!(served, Ok(Served::Pending(_)))
//! }
//! ```
//!
//! # What it answers
//!
//! | request for `/firmware` | answer |
//! |---|---|
//! | `HEAD` | 200: `Content-Length` is how many bytes are stored, `Repr-Digest` their SHA-256 (RFC 9530); of the image that runs where nothing is stored and the maker has told of it |
//! | `PUT` | 201: the image is verified and pending; 202: a part is stored, which `Content-Range` named (RFC 9110 §14.5); both with the digest of what is stored |
//! | `GET` | 200: an image that was verified |
//! | `GET`, `Range` | 206: a part of it, or of what is stored of one that is not whole; that is no more than bytes, whose hash and signature are still to come |
//! | `POST`, `text/uri-list` | 201: the image was fetched from `http://[ADDRESS]:PORT/PATH`, or the part that was missing |
//! | the same, `Range` | 202: the bytes up to the last one that `Range` names are stored |
//!
//! 401: no token, or a wrong one. 403: the source is no other host. 409: the bytes begin elsewhere
//! than those stored end; or there is no whole image to give. 411: a body without a length. 413:
//! the image is longer than the slot. 416: none of the bytes asked for is there. 422: an image
//! that is refused. 502: the source failed. 503: another upload is under way. Each explains itself
//! in a sentence. A connection carries one request.
//!
//! # Place
//!
//! Between an async socket and flash, both by their traits: `motet-embassy` has such sockets, so
//! have embassy-net and others. MCUboot takes the image from the slot at the next reset.
//!
//! Over a mesh an image is there 7 to 22 % sooner with segments of twelve frames than with five,
//! with and without loss: `motet::tcp::Config::mss_frames` is the setting of a listener and of a
//! connection for it.
//!
//! Memory: [`Firmware`] takes some 500 bytes, a request's future 2 KiB with its buffer. Left out:
//! the boot loader, TLS, names of sources, deltas, images that are encrypted.
//!
//! Sources: RFC 9110, RFC 9112, RFC 9530, RFC 6750, RFC 2483; MCUboot's design document.
#![no_std]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![forbid(unsafe_code)]

mod answer;
mod body;
mod fetch;
mod image;
mod journal;
mod key;
mod pages;
mod request;
mod response;
mod running;
mod server;
mod shared;
mod slot;
mod store;
mod uri;
mod verify;

pub use answer::Status;
pub use fetch::NoConnect;
pub use image::{Header, ImageError, Version};
pub use key::PublicKey;
pub use request::{ContentRange, Method, Range, Request};
pub use response::{BadResponse, Response};
pub use server::{Access, Firmware, Served};
pub use slot::{Held, Slot, SlotError};
pub use uri::{Source, UriError};
pub use verify::Demands;
