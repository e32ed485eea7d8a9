//! libcoap's client as a judge of the lab's server of blocks, the rival of TCP in pushes: it puts a
//! file by Block1 (RFC 7959).

use std::{
    fs,
    net::{Ipv6Addr, SocketAddr, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use motet_lab::coap::take::Taker;

use crate::judge::{Routers, Row, missing};
use crate::peer::NotPermitted;

pub(crate) fn checks(_: &mut Routers) -> Result<Vec<Row>, NotPermitted> {
    if let Some(row) = missing(CLIENT) {
        return Ok(vec![row]);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("image");
    let image: Vec<u8> = (0..20_011_u32).map(|n| (n * n / 7) as u8).collect();
    fs::write(&file, &image).expect("room for an image");
    let mut rows = Vec::new();
    for size in [64, 256, 1_024] {
        for loses in [false, true] {
            let put = put(&file, size, loses);
            let is_same = put.as_ref().is_some_and(|stored| *stored == image);
            let lossy = if loses { ", two answers lost" } else { "" };
            rows.push(Row {
                check: format!("libcoap's client puts a file by Block1, blocks of {size}{lossy}"),
                value: put.map_or(0, |stored| stored.len()) as f64,
                unit: "B",
                pass: is_same,
                note: format!("of {} B, the same", image.len()),
            });
        }
    }
    Ok(rows)
}

/// Lets the client put a file in blocks of `size`; returns what the server has then, if the client
/// ends by itself.
fn put(file: &Path, size: usize, loses: bool) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).ok()?;
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .ok()?;
    let port = socket.local_addr().ok()?.port();
    let mut client = Command::new(CLIENT);
    client
        .args(["-m", "put", "-B", "60", "-b", &size.to_string(), "-f"])
        .arg(file)
        .arg(format!("coap://[::1]:{port}/firmware"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut client = client.spawn().ok()?;
    let (mut taker, mut stored, mut answers) = (Taker::default(), Vec::new(), 0);
    let mut bytes = [0; 2_048];
    // A quarter of a minute without a word is the end.
    let mut silent = 0;
    while silent < 150 && !has_ended(&mut client) {
        let Ok((len, from)) = socket.recv_from(&mut bytes) else {
            silent += 1;
            continue;
        };
        silent = 0;
        let SocketAddr::V6(remote) = from else {
            return None;
        };
        let Some(taken) = taker.on_message(remote.into(), bytes.get(..len)?) else {
            continue;
        };
        if taken.begins.is_some() {
            stored.clear();
        }
        stored.extend(&taken.bytes);
        if taken.ends {
            taker.end(true);
        }
        if let Some(answer) = taker.answer(&taken) {
            answers += 1;
            if !(loses && matches!(answers, 3 | 9)) {
                socket.send_to(&answer, from).ok()?;
            }
        }
    }
    let _ = client.kill();
    let _ = client.wait();
    Some(stored)
}

fn has_ended(client: &mut Child) -> bool {
    !matches!(client.try_wait(), Ok(None))
}

/// Of Debian's package libcoap3-bin.
const CLIENT: &str = "coap-client-notls";
