//! `POST`: a device fetches from a web server, or from another device.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;

use embassy_futures::block_on;
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use motet_update::{Access, Demands, Firmware, NoConnect, Served, Slot, Source, UriError};

use crate::conversation::{Answer, Said, ask, ask_with, get, put};
use crate::flash::{Chip, Part, image, noise};

type Flash<'c> = Part<'c, 1, 4, 4_096>;

/// A server, from a request to the bytes of its answer.
struct Web<'s> {
    serve: Box<Serve<'s>>,
    asked: RefCell<Vec<String>>,
}

impl<'s> Web<'s> {
    fn new(serve: impl Fn(&[u8]) -> Vec<u8> + 's) -> Self {
        Self {
            serve: Box::new(serve),
            asked: RefCell::default(),
        }
    }
}

type Serve<'s> = dyn Fn(&[u8]) -> Vec<u8> + 's;

struct Line<'a> {
    web: &'a Web<'a>,
    request: Vec<u8>,
    answer: Option<VecDeque<u8>>,
}

impl TcpConnect for Web<'_> {
    type Error = ErrorKind;
    type Connection<'a>
        = Line<'a>
    where
        Self: 'a;

    async fn connect<'a>(&'a self, remote: SocketAddr) -> Result<Line<'a>, ErrorKind> {
        assert_eq!(remote, "[fd00::2]:8080".parse().unwrap());
        Ok(Line {
            web: self,
            request: Vec::new(),
            answer: None,
        })
    }
}

impl ErrorType for Line<'_> {
    type Error = ErrorKind;
}

impl Read for Line<'_> {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, ErrorKind> {
        let answer = self.answer.get_or_insert_with(|| {
            let asked = String::from_utf8_lossy(&self.request).into_owned();
            self.web.asked.borrow_mut().push(asked);
            (self.web.serve)(&self.request).into()
        });
        let count = out.len().min(answer.len()).min(77);
        for (place, byte) in out.iter_mut().zip(answer.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for Line<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        self.request.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

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

fn new_image(seed: u8) -> Vec<u8> {
    image(&noise(9_000, seed), [seed; 8])
}

fn post(list: &str, fields: &str) -> Vec<u8> {
    let len = list.len();
    format!(
        "POST /firmware HTTP/1.1\r\nHost: m\r\n{fields}Content-Type: text/uri-list\r\nContent-Length: {len}\r\n\r\n{list}"
    )
    .into_bytes()
}

const LIST: &str = "# the parent\r\nhttp://[fd00::2]:8080/firmware\r\n";

/// Another device's answers.
fn device<'a>(parent: &'a Firmware<'a, Flash<'a>>) -> impl Fn(&[u8]) -> Vec<u8> + 'a {
    move |request| {
        let mut client = Said::new(request);
        block_on(parent.serve(&mut client, &NoConnect, &mut [0; 512])).unwrap();
        client.output
    }
}

fn stored(firmware: &Firmware<'_, Flash<'_>>) -> String {
    let answer = ask(firmware, &get("HEAD", "Authorization: Bearer t\r\n"));
    answer.field("content-length").unwrap().to_owned()
}

#[test]
fn a_device_fetches_from_another_with_its_token() {
    let (above, below, new) = (chip(), chip(), new_image(2));
    let parent = firmware(&above, Access::Bearer(b"t"));
    let child = firmware(&below, Access::Bearer(b"t"));
    let web = Web::new(device(&parent));
    let token = "Authorization: Bearer t\r\n";
    // The parent has nothing yet, then all.
    let answer = ask_with(&child, &web, &post(LIST, token));
    assert_eq!(
        (answer.status, answer.text()),
        (502, "the source answered 409")
    );
    let mut request = put(0, &new, new.len());
    let at = request.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
    request.splice(at..at, token.bytes());
    assert_eq!(ask(&parent, &request).status, 201);
    let answer = ask_with(&child, &web, &post(LIST, token));
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(matches!(answer.served, Served::Pending(version) if version.major == 2));
    assert_eq!(ask(&child, &get("GET", token)).body, new);
    // Again: a look at the end tells that all is here.
    let answer = ask_with(&child, &web, &post(LIST, token));
    assert_eq!(answer.status, 201);
    let asked = web.asked.borrow();
    assert!(asked.last().unwrap().contains("Range: bytes=8816-\r\n"));
    assert!(
        asked
            .iter()
            .all(|asked| asked.contains("Authorization: Bearer t\r\n"))
    );
}

/// A part is passed on before the whole is there: who asked for it learns its digest.
#[test]
fn a_device_fetches_part_by_part_what_another_one_has() {
    let (above, below, new) = (chip(), chip(), new_image(2));
    let (parent, child) = (
        firmware(&above, Access::Open),
        firmware(&below, Access::Open),
    );
    let web = Web::new(device(&parent));
    let upto = |end: usize| post(LIST, &format!("Range: bytes=0-{}\r\n", end - 1));
    let digest = |answer: &Answer| answer.field("repr-digest").unwrap().to_owned();
    let first = ask(&parent, &put(0, &new[..4_096], new.len()));
    assert_eq!(first.status, 202);
    // More than the parent has is not there to fetch.
    assert_eq!(ask_with(&child, &web, &upto(5_000)).status, 502);
    let answer = ask_with(&child, &web, &upto(4_096));
    assert_eq!(
        (answer.status, answer.text()),
        (202, "4096 of 9072 bytes are stored")
    );
    assert_eq!(digest(&answer), digest(&first));
    assert!(matches!(answer.served, Served::Done));
    let asked = web.asked.borrow().len();
    assert_eq!(ask_with(&child, &web, &upto(4_000)).status, 202);
    assert_eq!(web.asked.borrow().len(), asked, "it is there");
    let last = ask(&parent, &put(4_096, &new[4_096..], new.len()));
    assert_eq!(last.status, 201);
    let answer = ask_with(&child, &web, &upto(new.len()));
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(digest(&answer), digest(&last));
    let part = ask(&child, &get("GET", "Range: bytes=10-19\r\n"));
    assert_eq!((part.status, &part.body[..]), (206, &new[10..20]));
}

#[test]
fn a_part_of_an_image_is_given_and_not_called_the_whole() {
    let (chip, new) = (chip(), new_image(2));
    let device = firmware(&chip, Access::Open);
    assert_eq!(ask(&device, &put(0, &new[..5_003], new.len())).status, 202);
    let range = |first: usize, last: usize| {
        ask(
            &device,
            &get("GET", &format!("Range: bytes={first}-{last}\r\n")),
        )
    };
    let answer = range(4_990, 5_002);
    assert_eq!((answer.status, &answer.body[..]), (206, &new[4_990..5_003]));
    assert_eq!(answer.field("content-range"), Some("bytes 4990-5002/9072"));
    assert_eq!(answer.field("repr-digest"), None);
    assert_eq!(range(4_990, 5_003).status, 409);
    assert_eq!(range(9_072, 9_072).status, 416);
}

#[test]
fn a_token_does_not_go_to_a_web_server() {
    let (below, new) = (chip(), new_image(2));
    let child = firmware(&below, Access::Bearer(b"t"));
    let web = Web::new(|_| whole(&new));
    let list = "http://[fd00::2]:8080/files/fw.bin?v=2";
    let answer = ask_with(&child, &web, &post(list, "Authorization: Bearer t\r\n"));
    assert_eq!(answer.status, 201);
    let asked = web.asked.borrow();
    assert_eq!(
        *asked,
        ["GET /files/fw.bin?v=2 HTTP/1.1\r\nHost: [fd00::2]:8080\r\nConnection: close\r\n\r\n"]
    );
}

fn whole(image: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", image.len()).into_bytes();
    answer.extend_from_slice(image);
    answer
}

/// Half of an image is stored: the rest alone is fetched, where it is the same image.
fn resumed(half_of: &[u8], serve: impl Fn(&[u8]) -> Vec<u8>) -> (Answer, Vec<String>, String) {
    let below = chip();
    let child = firmware(&below, Access::Open);
    let half = put(0, &half_of[..5_001], half_of.len());
    assert_eq!(ask(&child, &half).status, 202);
    let web = Web::new(serve);
    let answer = ask_with(&child, &web, &post(LIST, ""));
    let ranges = web.asked.borrow();
    let range = |asked: &String| {
        let mut lines = asked.lines();
        let range = lines.find_map(|line| line.strip_prefix("Range: "));
        range.unwrap_or("whole").to_owned()
    };
    let ranges = ranges.iter().map(range).collect();
    (answer, ranges, stored(&child))
}

#[test]
fn what_is_stored_is_not_fetched_again() {
    let (above, new) = (chip(), new_image(2));
    let parent = firmware(&above, Access::Open);
    assert_eq!(ask(&parent, &put(0, &new, new.len())).status, 201);
    let (answer, ranges, stored) = resumed(&new, device(&parent));
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(
        (&*ranges, &*stored),
        (&["bytes=4745-".to_owned()][..], "9072")
    );

    // Another image of the same length; one that differs before the overlap alone; a server that
    // knows no ranges.
    let begin_anew = ["bytes=4745-".to_owned(), "whole".to_owned()];
    let (answer, ranges, _) = resumed(&new_image(3), device(&parent));
    assert_eq!((answer.status, &*ranges), (201, &begin_anew[..]));
    let mut similar = new.clone();
    similar[100] ^= 1;
    let (answer, ranges, _) = resumed(&similar, device(&parent));
    assert_eq!((answer.status, &*ranges), (201, &begin_anew[..]));
    let (answer, ranges, _) = resumed(&new, |_| whole(&new));
    assert_eq!((answer.status, &*ranges), (201, &begin_anew[..1]));
    // A shorter one: the range is beyond its end.
    let short = image(&noise(1_000, 4), [4; 8]);
    let other = chip();
    let parent = firmware(&other, Access::Open);
    assert_eq!(ask(&parent, &put(0, &short, short.len())).status, 201);
    let (answer, ranges, stored) = resumed(&new, device(&parent));
    assert_eq!((answer.status, &*ranges), (201, &begin_anew[..]));
    assert_eq!(stored, "1072");
}

#[test]
fn a_source_that_fails_costs_no_more_than_it_has_to() {
    let new = new_image(2);
    let cases: [(&str, &str); 7] = [
        ("HTTP/1.1 404 Not Found\r\n\r\n", "the source answered 404"),
        (
            "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
            "the source answered 302",
        ),
        (
            "",
            "the connection to the source ended: what came is stored",
        ),
        ("nonsense", "the source's answer makes no sense here"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "the source's answer makes no sense here",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\n",
            "the source does not say how long the image is",
        ),
        (
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/9072\r\n\r\n",
            "the source answered 206",
        ),
    ];
    for (said, text) in cases {
        let (answer, _, stored) = resumed(&new, |_| said.as_bytes().to_vec());
        assert_eq!((answer.status, answer.text()), (502, text));
        assert_eq!(stored, "5001", "{said}");
    }
    let (answer, _, stored) = resumed(&new, |_| whole(&noise(9_072, 9)));
    assert_eq!((answer.status, &*stored), (422, "5001"));
    let (answer, _, _) = resumed(&new, |_| whole(&noise(90_720, 9)));
    assert_eq!(answer.status, 413);
    // The source breaks off: what came is stored.
    let (answer, _, stored) = resumed(&new, |_| {
        let mut broken = whole(&new);
        broken.truncate(broken.len() - 1_000);
        broken
    });
    assert_eq!((answer.status, &*stored), (502, "8072"));
}

#[test]
fn lists_that_name_no_source_are_refused() {
    let below = chip();
    let child = firmware(&below, Access::Open);
    let long = format!("http://[fd00::2]/{}", "x".repeat(300));
    for (list, status) in [
        ("", 400),
        ("# nothing\n\n", 400),
        ("https://[fd00::2]/firmware", 422),
        ("http://mote1/firmware", 422),
        ("http://[fd00::2/firmware", 422),
        ("http://[fd00::2]x/firmware", 422),
        ("http://[fd00::2]:99999/firmware", 422),
        ("http://user@[fd00::2]/firmware", 422),
        ("http://[fd00::2]/a b", 422),
        ("http://[ff02::1]/firmware", 403),
        ("http://[::1]/firmware", 403),
        ("http://127.0.0.1/firmware", 403),
        ("http://[fd00::2]:0/firmware", 403),
        (&*long, 413),
        ("http://[fd00::2]/firmware", 502),
    ] {
        let answer = ask(&child, &post(list, ""));
        assert_eq!(answer.status, status, "{list}: {}", answer.text());
    }
}

#[test]
fn uris_are_read() {
    let source = Source::parse(b"HTTP://192.0.2.1:/x#y").unwrap();
    assert_eq!(source.server, "192.0.2.1:80".parse().unwrap());
    assert_eq!(source.path, "/x");
    let source = Source::parse(b"http://[fd00::2]").unwrap();
    assert_eq!((source.authority, source.path), ("[fd00::2]", "/"));
    assert_eq!(Source::parse(&[0xFF]), Err(UriError::Unusable));
}
