//! Requests and what answers them.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use embassy_futures::block_on;
use embedded_io_async::{ErrorType, Read, Write};
use motet_update::{Access, Demands, Firmware, NoConnect, Served, Slot};

use crate::conversation::{ask, get, put};
use crate::flash::{Chip, Part, image, noise};

type Flash<'c> = Part<'c, 1, 4, 4_096>;

fn chip() -> Chip {
    Chip::new(10 * 4_096)
}

fn firmware<'t, 'c>(chip: &'c Chip, access: Access<'t>) -> Firmware<'t, Flash<'c>> {
    let slot = Slot::open(
        chip.part(8_192, 8 * 4_096),
        chip.part(0, 8_192),
        Demands::default(),
    );
    Firmware::new(block_on(slot).unwrap(), access)
}

fn small() -> Vec<u8> {
    image(&noise(9_000, 1), [1, 0, 0, 0, 0, 0, 0, 0])
}

#[test]
fn an_image_is_put_told_and_given() {
    let (chip, image) = (chip(), small());
    let firmware = firmware(&chip, Access::Open);
    let answer = ask(&firmware, &get("HEAD", ""));
    assert_eq!(answer.field("content-length"), Some("0"));
    let answer = ask(&firmware, &put(0, &image, image.len()));
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.text(),
        "version 1.0.0+0 is stored, verified and pending"
    );
    assert!(matches!(answer.served, Served::Pending(version) if version.major == 1));
    let answer = ask(&firmware, &get("HEAD", ""));
    assert_eq!(
        answer.field("content-length"),
        Some(&*image.len().to_string())
    );
    assert!(answer.body.is_empty());
    for (range, status, first, last) in [
        ("", 200, 0, image.len() - 1),
        ("Range: bytes=0-0\r\n", 206, 0, 0),
        ("Range: bytes=4090-5000\r\n", 206, 4_090, 5_000),
        ("Range: bytes=9000-\r\n", 206, 9_000, image.len() - 1),
        ("Range: bytes=-5\r\n", 206, image.len() - 5, image.len() - 1),
        ("Range: bytes=9000-99999\r\n", 206, 9_000, image.len() - 1),
        // Ignored, as RFC 9110 §14.2 allows.
        ("Range: bytes=0-1,5-6\r\n", 200, 0, image.len() - 1),
        ("Range: lines=0-1\r\n", 200, 0, image.len() - 1),
        ("Range: bytes=5-1\r\n", 200, 0, image.len() - 1),
    ] {
        let answer = ask(&firmware, &get("GET", range));
        assert_eq!(answer.status, status, "{range}");
        assert_eq!(answer.body, image[first..=last], "{range}");
        let len = (last - first + 1).to_string();
        assert_eq!(answer.field("content-length"), Some(&*len));
        let part = format!("bytes {first}-{last}/{}", image.len());
        let part = (status == 206).then_some(&*part);
        assert_eq!(answer.field("content-range"), part, "{range}");
    }
    for range in ["bytes=9072-", "bytes=-0", "bytes=9999999999-"] {
        let answer = ask(&firmware, &get("GET", &format!("Range: {range}\r\n")));
        assert_eq!(answer.status, 416, "{range}");
        assert_eq!(answer.field("content-range"), Some("bytes */9072"));
    }
}

#[test]
fn an_upload_goes_on_where_the_stored_bytes_end() {
    let (chip, image) = (chip(), small());
    let firmware = firmware(&chip, Access::Open);
    // The client is gone after 5,000 bytes: all of them are kept, as long as there is power.
    let mut request = put(0, &image, image.len());
    request.truncate(request.len() - image.len() + 5_000);
    let answer = ask(&firmware, &request);
    assert_eq!(answer.status, 400);
    let answer = ask(&firmware, &get("HEAD", ""));
    assert_eq!(answer.field("content-length"), Some("5000"));
    let answer = ask(&firmware, &get("GET", ""));
    assert_eq!(answer.status, 409);
    assert_eq!(
        answer.text(),
        "no verified image is here: 5000 bytes of one are"
    );
    for (first, total) in [(4_096, image.len()), (5_001, image.len()), (5_000, 10_000)] {
        let mut body = image.clone();
        body.resize(total, 0);
        let answer = ask(&firmware, &put(first, &body[first..], total));
        assert_eq!(answer.status, 409, "{first} of {total}");
        assert_eq!(
            answer.text(),
            "5000 of 9072 bytes are stored: go on there, or begin at 0"
        );
    }
    let answer = ask(&firmware, &put(5_000, &image[5_000..5_003], image.len()));
    assert_eq!(
        (answer.status, answer.text()),
        (202, "5003 of 9072 bytes are stored")
    );
    let answer = ask(&firmware, &put(5_003, &image[5_003..], image.len()));
    assert_eq!(answer.status, 201);
    let answer = ask(&firmware, &put(9_071, &image[9_071..], image.len()));
    assert_eq!(answer.status, 409);
    assert_eq!(answer.text(), "a whole image of 9072 bytes is stored");
}

/// A sender that comes later finds flash erased.
#[test]
fn an_image_whose_header_comes_alone_has_its_pages_erased() {
    let chip = chip();
    let firmware = firmware(&chip, Access::Open);
    let old = image(&noise(20_000, 2), [1; 8]);
    assert_eq!(ask(&firmware, &put(0, &old, old.len())).status, 201);
    let image = small();
    let answer = ask(&firmware, &put(0, &image[..32], image.len()));
    assert_eq!(
        (answer.status, answer.text()),
        (202, "32 of 9072 bytes are stored")
    );
    let is_erased = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0xFF);
    {
        let bytes = chip.bytes.borrow();
        let slot = &bytes[8_192..];
        assert_eq!(slot[..32], image[..32]);
        assert!(is_erased(&slot[32..3 * 4_096]));
        assert!(!is_erased(&slot[3 * 4_096..20_000]), "not the image's");
    }
    let rest = ask(&firmware, &put(32, &image[32..], image.len()));
    assert_eq!(rest.status, 201);
}

/// Announcements cost nothing but 32 bytes, so whoever sends many must not wear flash out.
#[test]
fn a_hundred_announcements_erase_the_slot_once() {
    use crate::flash::image as other_image;
    let chip = chip();
    let firmware = firmware(&chip, Access::Open);
    let image = small();
    let erasures_of = |page: usize| {
        let erasures = chip.erasures.borrow();
        erasures
            .iter()
            .filter(|at| **at == 8_192 + page * 4_096)
            .count()
    };
    let mut operations = Vec::new();
    for _ in 0..100 {
        let answer = ask(&firmware, &put(0, &image[..32], image.len()));
        assert_eq!(answer.status, 202);
        operations.push(chip.operations.get());
    }
    assert_eq!([0, 1, 2, 3].map(erasures_of), [1, 1, 1, 0]);
    assert_eq!(operations[0], operations[99], "nor are notes written");
    // Others of other lengths take the first page's place alone, and the longer one further pages.
    for payload in [9_000, 12_200, 9_000, 12_200] {
        let other = other_image(&noise(payload, 3), [2; 8]);
        let answer = ask(&firmware, &put(0, &other[..32], other.len()));
        assert_eq!(answer.status, 202);
    }
    assert_eq!([0, 1, 2, 3, 4].map(erasures_of), [5, 1, 1, 0, 0]);
    // One that is announced comes whole all the same; what follows it finds written pages.
    for (number, version) in (1..=2).zip([[1; 8], [2; 8]]) {
        let whole = other_image(&noise(20_000, 4), version);
        assert_eq!(
            ask(&firmware, &put(0, &whole[..32], whole.len())).status,
            202
        );
        assert_eq!(ask(&firmware, &put(0, &whole, whole.len())).status, 201);
        assert_eq!(
            [1, 2, 3, 4].map(erasures_of),
            [number, number, number, number]
        );
    }
}

#[test]
fn what_is_refused_keeps_what_was_stored() {
    let (chip, image) = (chip(), small());
    let firmware = firmware(&chip, Access::Open);
    let part = put(0, &image[..6_000], image.len());
    assert_eq!(ask(&firmware, &part).status, 202);
    let foreign = noise(9_072, 7);
    let mut older = image.clone();
    older[13] = 0xFF;
    for (body, status, text) in [
        (&foreign, 422, "this is no image of MCUboot"),
        (
            &older,
            422,
            "the image ends before what its header announces",
        ),
        (&noise(40_000, 1), 413, "the slot takes 28672 bytes"),
    ] {
        let answer = ask(&firmware, &put(0, body, body.len()));
        assert_eq!((answer.status, answer.text()), (status, text));
        let answer = ask(&firmware, &get("HEAD", ""));
        assert_eq!(answer.field("content-length"), Some("6000"), "{text}");
    }
    // A whole that is wrong is known only when it is here: then nothing is stored.
    let mut wrong = image[6_000..].to_vec();
    wrong[1] ^= 1;
    let answer = ask(&firmware, &put(6_000, &wrong, image.len()));
    assert_eq!(answer.status, 422);
    assert_eq!(
        answer.text(),
        "the image's SHA-256 is not that of its bytes"
    );
    let answer = ask(&firmware, &get("HEAD", ""));
    assert_eq!(answer.field("content-length"), Some("0"));
}

#[test]
fn heads_that_make_no_sense_are_refused() {
    let chip = chip();
    let firmware = firmware(&chip, Access::Open);
    let long = format!("GET /firmware HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(600));
    let many = format!("GET /firmware HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(30));
    for (request, status) in [
        ("nonsense\r\n\r\n", 400),
        ("GET /firmware HTTP/1.1\r\n\r\n", 400),
        ("GET /firmware HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /firmware HTTP/3.7\r\n\r\n", 505),
        ("GET /other HTTP/1.0\r\n\r\n", 404),
        ("GET http://m/firmware HTTP/1.0\r\n\r\n", 409),
        ("GET /firmware?x HTTP/1.0\r\n\r\n", 409),
        ("DELETE /firmware HTTP/1.0\r\n\r\n", 405),
        ("PUT /firmware HTTP/1.0\r\n\r\n", 411),
        (
            "PUT /firmware HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            411,
        ),
        (
            "PUT /firmware HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n",
            501,
        ),
        (
            "PUT /firmware HTTP/1.0\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n",
            415,
        ),
        ("PUT /firmware HTTP/1.0\r\nContent-Length: -1\r\n\r\n", 400),
        ("PUT /firmware HTTP/1.0\r\nContent-Length: +1\r\n\r\n", 400),
        (
            "PUT /firmware HTTP/1.0\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            400,
        ),
        (
            "PUT /firmware HTTP/1.0\r\nContent-Length: 99999999999999\r\n\r\n",
            413,
        ),
        (
            "PUT /firmware HTTP/1.0\r\nContent-Length: 4\r\nContent-Range: bytes 0-9/10\r\n\r\n",
            400,
        ),
        (
            "PUT /firmware HTTP/1.0\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/*\r\n\r\n",
            400,
        ),
        (
            "PUT /firmware HTTP/1.0\r\nExpect: tea\r\nContent-Length: 4\r\n\r\n",
            417,
        ),
        ("POST /firmware HTTP/1.0\r\nContent-Length: 4\r\n\r\n", 415),
        (
            "PUT /firmware HTTP/1.0\r\nContent-Length: 4\r\n\r\nabcd",
            422,
        ),
        (&long, 431),
        (&many, 431),
    ] {
        let answer = ask(&firmware, request.as_bytes());
        assert_eq!(answer.status, status, "{request}");
        assert_eq!(answer.field("connection"), Some("close"));
    }
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let (chip, image) = (chip(), small());
    let firmware = firmware(&chip, Access::Bearer(b"secret"));
    for (field, status) in [
        ("", 401),
        ("Authorization: Bearer wrong!\r\n", 401),
        ("Authorization: Bearer secre\r\n", 401),
        ("Authorization: Bearer \r\n", 401),
        ("Authorization: Basic secret\r\n", 401),
        ("Authorization: Bearer secret\r\n", 200),
        ("authorization: bearer secret\r\n", 200),
    ] {
        let answer = ask(&firmware, &get("HEAD", field));
        assert_eq!(answer.status, status, "{field}");
        let challenge = (status == 401).then_some("Bearer");
        assert_eq!(answer.field("www-authenticate"), challenge);
    }
    assert_eq!(ask(&firmware, &put(0, &image, image.len())).status, 401);
    let nobody = Firmware::new(
        block_on(Slot::open(
            chip.part::<1, 4, 4_096>(8_192, 8 * 4_096),
            chip.part::<1, 4, 4_096>(0, 8_192),
            Demands::default(),
        ))
        .unwrap(),
        Access::Bearer(b""),
    );
    let answer = ask(&nobody, &get("HEAD", "Authorization: Bearer \r\n"));
    assert_eq!(answer.status, 401);
}

#[test]
fn a_client_that_waits_is_told_to_go_on_or_not_to_begin() {
    let (chip, image) = (chip(), small());
    let firmware = firmware(&chip, Access::Open);
    let expecting = |len: usize| {
        format!(
            "PUT /firmware HTTP/1.1\r\nHost: m\r\nExpect: 100-continue\r\nContent-Length: {len}\r\n\r\n"
        )
        .into_bytes()
    };
    // The client's head alone comes in the first read, its body later.
    let mut client = crate::conversation::Said::new(&expecting(image.len()));
    client.piece = client.input.len();
    client.input.extend(&image);
    let served = block_on(firmware.serve(&mut client, &NoConnect, &mut [0; 512]));
    assert!(matches!(served, Ok(Served::Pending(_))));
    let said = String::from_utf8(client.output).unwrap();
    assert!(said.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n"));
    let answer = ask(&firmware, &expecting(99_999));
    assert_eq!(answer.status, 413);
}

/// A client whose bytes do not come.
struct Silent<'b>(&'b [u8], Vec<u8>);

impl ErrorType for Silent<'_> {
    type Error = std::convert::Infallible;
}

impl Read for Silent<'_> {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Self::Error> {
        if self.0.is_empty() {
            std::future::pending::<()>().await;
        }
        let (now, rest) = self.0.split_at(out.len().min(self.0.len()));
        out[..now.len()].copy_from_slice(now);
        self.0 = rest;
        Ok(now.len())
    }
}

impl Write for Silent<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Self::Error> {
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[test]
fn one_writes_while_others_ask_how_far_it_is() {
    let (chip, image) = (chip(), small());
    let firmware = firmware(&chip, Access::Open);
    let request = put(0, &image, image.len());
    let sent = &request[..request.len() - 3_000];
    let mut client = Silent(sent, Vec::new());
    let mut buffer = [0; 512];
    {
        let mut writing = pin!(firmware.serve(&mut client, &NoConnect, &mut buffer));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(writing.as_mut().poll(&mut cx), Poll::Pending));
        let answer = ask(&firmware, &get("HEAD", ""));
        assert_eq!(answer.field("content-length"), Some("6072"));
        let digest = answer.field("repr-digest").unwrap().to_owned();
        let answer = ask(&firmware, &put(0, &image, image.len()));
        assert_eq!(answer.status, 503);
        assert_eq!(answer.field("retry-after"), Some("10"));
        // What is stored already is given on, byte for byte.
        assert_eq!(ask(&firmware, &get("GET", "")).status, 409);
        let part = ask(&firmware, &get("GET", "Range: bytes=0-6071\r\n"));
        assert_eq!((part.status, &part.body[..]), (206, &image[..6_072]));
        let beyond = ask(&firmware, &get("GET", "Range: bytes=6000-6072\r\n"));
        assert_eq!(beyond.status, 409);
        let uris = "POST /firmware HTTP/1.0\r\nContent-Type: text/uri-list\r\nContent-Length: 8\r\n\r\nhttp://1";
        assert_eq!(ask(&firmware, uris.as_bytes()).status, 503);
        assert!(matches!(writing.as_mut().poll(&mut cx), Poll::Pending));
        assert_eq!(
            ask(&firmware, &get("HEAD", "")).field("repr-digest"),
            Some(&*digest)
        );
    }
    // Its connection is gone: what came is kept, and another may go on.
    let answer = ask(&firmware, &put(6_072, &image[6_072..], image.len()));
    assert_eq!(answer.status, 201, "{}", answer.text());
}
