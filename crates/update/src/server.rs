//! `/firmware`: a request in, an answer out.

use embedded_io_async::{Read, Write};
use embedded_nal_async::TcpConnect;
use embedded_storage_async::nor_flash::NorFlash;
use subtle::ConstantTimeEq as _;

use crate::answer::{Answer, Status, slot_answer, write_image_head, write_unsatisfiable};
use crate::body::{Body, Broken};
use crate::fetch::fetch;
use crate::image::Version;
use crate::request::{Method, Range, Request};
use crate::shared::Shared;
use crate::slot::{Held, Slot, SlotError};
use crate::store::{Fault, store};

/// Who may read and write the firmware. There is no default: who makes the device says it.
#[derive(Clone, Copy, Debug)]
pub enum Access<'t> {
    /// Everyone who reaches the device.
    Open,
    /// Who has this token (RFC 6750). It crosses the network in clear unless the link or TLS hides
    /// it. An empty token is nobody's.
    Bearer(&'t [u8]),
}

/// The resource `/firmware` above a slot. Any number of connections may be served at a time, on one
/// executor; one of them writes.
#[derive(Debug)]
pub struct Firmware<'t, F, S = F> {
    access: Access<'t>,
    slot: Shared<F, S>,
    running: Option<Held>,
}

/// What came of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// It was answered, or the client left before.
    Done,
    /// The same, and an image of this version is pending: a reset would try it.
    Pending(Version),
}

/// A request, without the bytes that it was read from.
#[derive(Clone, Copy, Debug)]
struct Order {
    method: Method,
    is_here: bool,
    is_allowed: bool,
    len: Option<u64>,
    first: u64,
    total: Option<u64>,
    is_range_right: bool,
    range: Option<Range>,
    expects_continue: bool,
    is_uri_list: bool,
}

impl<'t, F: NorFlash, S: NorFlash> Firmware<'t, F, S> {
    /// The resource, for those who have access.
    pub const fn new(slot: Slot<F, S>, access: Access<'t>) -> Self {
        Self {
            access,
            slot: Shared::new(slot),
            running: None,
        }
    }

    /// The same, where this image runs ([`Held::in_primary`]): `HEAD` tells of it while nothing
    /// else is stored, so that nobody sends what the device has already.
    #[must_use]
    pub const fn running(mut self, image: Option<Held>) -> Self {
        self.running = image;
        self
    }

    /// Serves one request and its answer, after which the connection is to be closed.
    ///
    /// `buffer` holds the request's head, which is answered by 431 if it is longer, and later the
    /// pieces of a body: 1,024 bytes are enough for any client's. `connect` makes the connection to
    /// fetch from when a `POST` asks for that ([`crate::NoConnect`] refuses). There is no clock
    /// here: what a client may idle is the socket's to say. The future may be dropped at any time;
    /// that costs a page at most.
    ///
    /// # Errors
    /// The connection's.
    pub async fn serve<C, T>(
        &self,
        connection: &mut C,
        connect: &T,
        buffer: &mut [u8],
    ) -> Result<Served, C::Error>
    where
        C: Read + Write,
        T: TcpConnect,
    {
        let mut filled = 0;
        let (order, head_len) = loop {
            let room = buffer.get_mut(filled..).unwrap_or_default();
            if room.is_empty() {
                return refuse(connection, Status::HeadTooLarge).await;
            }
            match connection.read(room).await? {
                0 => return Ok(Served::Done),
                count => filled += count.min(room.len()),
            }
            match Request::parse(buffer.get(..filled).unwrap_or_default()) {
                Ok(None) => {}
                Ok(Some((request, head_len))) => break (self.order(&request), head_len),
                Err(status) => return refuse(connection, status).await,
            }
        };
        buffer.copy_within(head_len..filled, 0);
        let body_len = order.len.unwrap_or(0);
        let mut body = Body::new(connection, buffer, filled - head_len, body_len);
        let is_head = order.method == Method::Head;
        let answer = match self.refusal(&order) {
            Some(answer) => Err(answer),
            None => match order.method {
                Method::Head => return self.tell(body.from).await,
                Method::Get => return self.give(&order, body.from).await,
                Method::Put => self.put(&order, &mut body).await?,
                Method::Post | Method::Other => self.post(&order, connect, &mut body).await?,
            },
        };
        let (served, answer) = match answer {
            Ok((served, answer)) => (served, answer),
            Err(answer) => (Served::Done, answer),
        };
        answer.write(body.from, is_head).await?;
        if !(order.expects_continue && body.is_awaited()) {
            body.drain().await;
        }
        Ok(served)
    }

    fn order(&self, request: &Request<'_>) -> Order {
        let range = request.content_range;
        let len = request.content_length;
        let is_range_right = range.is_none_or(|range| {
            let count = range.last - range.first + 1;
            len == Some(count)
        });
        Order {
            method: request.method,
            is_here: request.path == PATH,
            is_allowed: match self.access {
                Access::Open => true,
                Access::Bearer(token) => request
                    .bearer()
                    .is_some_and(|given| !token.is_empty() && bool::from(given.ct_eq(token))),
            },
            len,
            first: range.map_or(0, |range| range.first),
            total: range.map(|range| range.total).or(len),
            is_range_right,
            range: request.range,
            expects_continue: request.expects_continue,
            is_uri_list: request.is_uri_list,
        }
    }

    /// Why a request is refused whatever the slot holds.
    fn refusal(&self, order: &Order) -> Option<Answer> {
        let has_body = matches!(order.method, Method::Put | Method::Post);
        let status = match order {
            Order { is_here: false, .. } => Status::NotFound,
            Order {
                is_allowed: false, ..
            } => Status::Unauthorized,
            Order {
                method: Method::Other,
                ..
            } => Status::NotAllowed,
            Order { len: None, .. } if has_body => Status::LengthRequired,
            Order {
                is_range_right: false,
                ..
            } => Status::BadRequest,
            Order {
                method: Method::Post,
                is_uri_list: false,
                ..
            } => Status::UnsupportedType,
            _ => return None,
        };
        Some(status.into())
    }

    /// Answers `HEAD`, also while there is a writer.
    async fn tell<C: Write>(&self, to: &mut C) -> Result<Served, C::Error> {
        match self.slot.held().await {
            Ok(held) => {
                let running = self.running.filter(|_| held.len == 0);
                let held = running.unwrap_or(held);
                let whole = (0, held.len, held.len);
                write_image_head(to, Status::Ok, whole, Some(&held.sha256)).await?;
                to.flush().await?;
            }
            Err(error) => slot_answer(error, 0).write(to, true).await?,
        }
        Ok(Served::Done)
    }

    /// Answers `GET` with an image that was verified, or a part of it; or with a part of what is
    /// stored of one that is not whole yet.
    async fn give<C: Write>(&self, order: &Order, to: &mut C) -> Result<Served, C::Error> {
        let part = match self.part(order).await {
            Ok(part) => part,
            Err(Refusal::Unsatisfiable(len)) => {
                write_unsatisfiable(to, len).await?;
                return Ok(Served::Done);
            }
            Err(Refusal::Answer(answer)) => {
                answer.write(to, false).await?;
                return Ok(Served::Done);
            }
        };
        let (first, count, _) = part.bytes;
        write_image_head(to, part.status, part.bytes, part.sha256.as_ref()).await?;
        let mut block = [0; BLOCK_LEN];
        let (mut at, end) = (first, first + count);
        while at < end {
            let len = (end - at).min(BLOCK_LEN as u32) as usize;
            let block = block.get_mut(..len).unwrap_or_default();
            // Where a new image has begun since, the answer ends short, which its reader notices.
            if !self.slot.read(at, block, part.epoch).await {
                break;
            }
            to.write_all(block).await?;
            at += len as u32;
        }
        to.flush().await?;
        Ok(Served::Done)
    }

    /// Which bytes a `GET` gets.
    async fn part(&self, order: &Order) -> Result<Part, Refusal> {
        let refused = |error| Refusal::Answer(slot_answer(error, 0));
        let held = self.slot.held().await.map_err(refused)?;
        let extent = self.slot.extent().await;
        let total = extent.total;
        let asked = match order.range {
            Some(range) if total > 0 => Some(range.of(total).ok_or(Refusal::Unsatisfiable(total))?),
            _ => None,
        };
        let (first, count) = asked.unwrap_or((0, total));
        let is_verified = held.is_verified && extent.is_verified;
        // Its hash and its signature are still to come: who asks for a part of it judges by these.
        let is_there = asked.is_some() && first + count <= extent.stored && !extent.is_verified;
        if extent.is_verified && !is_verified {
            // A writer is about to replace it.
            return Err(Refusal::Answer(Status::Busy.into()));
        }
        if !is_verified && !is_there {
            let stored = extent.stored;
            let text = format_args!("no verified image is here: {stored} bytes of one are");
            return Err(Refusal::Answer(Answer::new(Status::Conflict, text)));
        }
        Ok(Part {
            status: match asked {
                None => Status::Ok,
                Some(_) => Status::PartialContent,
            },
            bytes: (first, count, total),
            sha256: is_verified.then_some(held.sha256),
            epoch: extent.epoch,
        })
    }

    /// Answers `PUT`.
    async fn put<C: Read + Write>(
        &self,
        order: &Order,
        body: &mut Body<'_, &mut C>,
    ) -> Result<Result<(Served, Answer), Answer>, C::Error> {
        let Some(_writer) = self.slot.begin_writing().await else {
            return Ok(Err(busy()));
        };
        let slot = self.slot.change().await;
        let capacity = slot.capacity();
        let numbers = (u32::try_from(order.first), order.total.map(u32::try_from));
        let (Ok(first), Some(Ok(total))) = numbers else {
            return Ok(Err(slot_answer(SlotError::TooLarge, capacity)));
        };
        if total > capacity {
            return Ok(Err(slot_answer(SlotError::TooLarge, capacity)));
        }
        if let Err(answer) = continues(&slot, first, total) {
            return Ok(Err(answer));
        }
        drop(slot);
        if order.expects_continue && body.is_awaited() {
            body.from.write_all(CONTINUE).await?;
            body.from.flush().await?;
        }
        match store(&self.slot, body, (first, total)).await {
            Ok(version) => Ok(self.stored(version).await),
            Err(Fault::Slot(error)) => Ok(Err(slot_answer(error, capacity))),
            // Nobody is there to be answered; what came is stored.
            Err(Fault::Body(Broken::Ended)) => Ok(Err(Status::BadRequest.into())),
            Err(Fault::Body(Broken::Failed(error))) => Err(error),
        }
    }

    /// The answer where an image is pending, or a part of one stored; with the digest of that.
    async fn stored(&self, version: Option<Version>) -> Result<(Served, Answer), Answer> {
        let held = self.slot.held().await;
        let held = held.map_err(|error| slot_answer(error, 0))?;
        let (served, answer) = match version {
            Some(version) => {
                let text = format_args!("version {version} is stored, verified and pending");
                (Served::Pending(version), Answer::new(Status::Created, text))
            }
            None => {
                let (stored, total) = (held.len, self.slot.extent().await.total);
                let text = format_args!("{stored} of {total} bytes are stored");
                (Served::Done, Answer::new(Status::Accepted, text))
            }
        };
        Ok((served, answer.with_digest(held.sha256)))
    }

    /// Answers `POST`: fetches what the list of URIs names.
    async fn post<C: Read, T: TcpConnect>(
        &self,
        order: &Order,
        connect: &T,
        body: &mut Body<'_, &mut C>,
    ) -> Result<Result<(Served, Answer), Answer>, C::Error> {
        let mut list = [0; LIST_LEN_MAX];
        let len = usize::try_from(order.len.unwrap_or(0)).unwrap_or(usize::MAX);
        let Some(list) = list.get_mut(..len) else {
            let text = format_args!("a list of URIs has {LIST_LEN_MAX} bytes at most");
            return Ok(Err(Answer::new(Status::TooLarge, text)));
        };
        let mut filled = 0;
        loop {
            match body.next().await {
                Ok(Some(bytes)) => {
                    for (place, byte) in list.iter_mut().skip(filled).zip(bytes) {
                        *place = *byte;
                    }
                    filled += bytes.len();
                }
                Ok(None) => break,
                Err(Broken::Ended) => return Ok(Err(Status::BadRequest.into())),
                Err(Broken::Failed(error)) => return Err(error),
            }
        }
        let Some(_writer) = self.slot.begin_writing().await else {
            return Ok(Err(busy()));
        };
        let token = match self.access {
            Access::Open => None,
            Access::Bearer(token) => Some(token),
        };
        let end = order.range.and_then(Range::end);
        let fetched = fetch(&self.slot, connect, (list, token), end, body.buffer());
        Ok(match fetched.await {
            Ok(version) => self.stored(version).await,
            Err(answer) => Err(answer),
        })
    }
}

/// The bytes that a `GET` gets.
struct Part {
    status: Status,
    /// The first, how many, and of how many.
    bytes: (u32, u32, u32),
    /// The SHA-256 of the whole, where it was verified.
    sha256: Option<[u8; 32]>,
    epoch: u32,
}

/// Why a `GET` gets none.
enum Refusal {
    Answer(Answer),
    /// The range begins behind the image's end; so long it is.
    Unsatisfiable(u32),
}

/// Whether bytes from `first` on, of `total`, go on where those stored end.
fn continues<F: NorFlash, S: NorFlash>(
    slot: &Slot<F, S>,
    first: u32,
    total: u32,
) -> Result<(), Answer> {
    let stored = slot.stored();
    let is_same = stored == first && slot.total() == total && !slot.is_verified();
    if first == 0 || is_same {
        return Ok(());
    }
    let of = slot.total();
    let text = match () {
        () if slot.is_verified() => format_args!("a whole image of {stored} bytes is stored"),
        () => format_args!("{stored} of {of} bytes are stored: go on there, or begin at 0"),
    };
    Err(Answer::new(Status::Conflict, text))
}

fn busy() -> Answer {
    Answer::new(
        Status::Busy,
        format_args!("another upload is under way: its bytes are kept"),
    )
}

async fn refuse<C: Write>(to: &mut C, status: Status) -> Result<Served, C::Error> {
    Answer::from(status).write(to, false).await?;
    Ok(Served::Done)
}

/// Where the firmware is.
const PATH: &str = "/firmware";

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bytes that are read from flash and sent at a time.
const BLOCK_LEN: usize = 128;

/// Bytes of a list of URIs that is read.
const LIST_LEN_MAX: usize = 256;
