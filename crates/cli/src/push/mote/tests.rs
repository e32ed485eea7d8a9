//! What a mote is announced to, and how one is found that is not there.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv6Addr, TcpListener, TcpStream},
};

use base64ct::{Base64, Encoding as _};

use super::*;

/// What a mote that a test plays has stored: bytes, and the length of the whole that they are of.
/// `None`: `GET` finds nothing, as where `HEAD` gives the length of the running image.
struct Stored {
    bytes: Vec<u8>,
    total: Option<usize>,
}

/// Prepares a mote that has `stored` for `image`; returns the requests that came, each by its
/// method and its range.
fn asked_by_prepare(stored: Stored, image: &[u8]) -> Vec<String> {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mote = SocketAddrV6::new(Ipv6Addr::LOCALHOST, port, 0, 0);
    let plays = thread::spawn(move || play(&listener, &stored));
    prepare(&Client::new(mote, None), image);
    // The end.
    drop(TcpStream::connect(mote).unwrap());
    plays.join().unwrap()
}

fn play(listener: &TcpListener, stored: &Stored) -> Vec<String> {
    let mut asked = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap() == 0 {
                return asked;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let method = head.split(' ').next().unwrap().to_owned();
        let range = head
            .lines()
            .find_map(|line| line.split_once("Range: bytes"))
            .map_or("", |(_, range)| range);
        asked.push(format!("{method}{range}"));
        let len = stored.bytes.len();
        let mut text = [0; 64];
        let digest = Base64::encode(&Sha256::digest(&stored.bytes), &mut text).unwrap();
        let digest = format!("Repr-Digest: sha-256=:{digest}:\r\n");
        let answer = match (&*method, stored.total) {
            ("HEAD", _) => format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n{digest}\r\n"),
            ("GET", Some(total)) => format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/{total}\r\n\
                 Content-Length: 1\r\n\r\n="
            ),
            ("GET", None) => "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n".to_owned(),
            // The body is waited for only by 100.
            _ => "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).unwrap();
    }
    asked
}

/// An image that is verified and pending stays until the mote's own turn; whatever is less gives
/// way to the announcement.
#[test]
fn a_pending_image_is_not_announced_over() {
    let image = vec![1; 9_000];
    let of = |bytes: &[u8], total| Stored {
        bytes: bytes.to_vec(),
        total,
    };
    for (what, stored, expected) in [
        (
            "another, pending",
            of(&[2; 5_000], Some(5_000)),
            &["HEAD", "GET=0-0"][..],
        ),
        (
            "as long, pending",
            of(&[2; 9_000], Some(9_000)),
            &["HEAD", "GET=0-0"],
        ),
        (
            "another, in part",
            of(&[2; 5_000], Some(6_000)),
            &["HEAD", "GET=0-0", "PUT 0-31/9000"],
        ),
        (
            "the one that runs",
            of(&[2; 5_000], None),
            &["HEAD", "GET=0-0", "PUT 0-31/9000"],
        ),
        ("nothing", of(&[], None), &["HEAD", "PUT 0-31/9000"]),
        (
            "a part of this one",
            of(&[1; 5_000], Some(9_000)),
            &["HEAD"],
        ),
        ("this one, pending", of(&[1; 9_000], Some(9_000)), &["HEAD"]),
    ] {
        assert_eq!(asked_by_prepare(stored, &image), expected, "{what}");
    }
}
