//! edge-http on one mote serves reqwless on another.

use std::cell::RefCell;
use std::rc::Rc;

use edge_http::io::server::Connection;
use embassy_time::{Duration, with_timeout};
use embedded_io_async::Write;
use motet_embassy::{Stack, TcpSocket};

use crate::http::get;
use crate::motes::{Run, Setting};
use crate::page::{LONG, SHORT};
use crate::report::Check;

const APP: &str = "edge-http";

/// `count` pages over three hops.
pub(crate) fn pages(frame_loss: f64, count: u32) -> Vec<Check> {
    let mut run = Run::new(Setting {
        hops: 3,
        frame_loss,
        seed: 6,
    });
    let server = run.server;
    run.executor.spawn(async move {
        if let Err(error) = serve(server).await {
            eprintln!("{APP}: {error}");
        }
    });
    let (client, address) = (run.client, run.address);
    let whole = Rc::new(RefCell::new(0));
    let counted = whole.clone();
    let ended = run.executor.block_on(u64::from(count) * 60, async move {
        for page in 0..count {
            let (path, expected) = match page % 2 {
                0 => ("/", SHORT),
                _ => ("/long", LONG),
            };
            let url = format!("http://[{address}]{path}");
            match get(client, &url).await {
                Ok(body) if body == expected.as_bytes() => *counted.borrow_mut() += 1,
                Ok(body) => eprintln!("{APP}: {url}: {} bytes differ", body.len()),
                Err(reason) => eprintln!("{APP}: {url}: {reason}"),
            }
        }
        // What was dropped last closes in the background.
        embassy_time::Timer::after_secs(200).await;
    });
    if ended.is_none() {
        eprintln!("{APP}: {count} pages at {frame_loss} loss are not done in time");
    }
    let percent = frame_loss * 100.0;
    let gone = run.places_lost();
    vec![
        Check::at_least(
            APP,
            &format!("whole pages, three hops, {percent:.0} % loss"),
            f64::from(*whole.borrow()),
            count.into(),
            "pages",
        ),
        Check::at_most(
            APP,
            &format!("places lost, {percent:.0} % loss"),
            Ok(gone as f64),
            0.0,
            "places",
        ),
    ]
}

/// A request that is not answered after so long makes room for another one.
const REQUEST_MAX: Duration = Duration::from_secs(120);

/// Serves one peer after the other.
async fn serve(stack: Stack) -> Result<(), motet_embassy::Error> {
    let listener = stack.listen(80)?;
    loop {
        let mut socket = listener.accept().await?;
        match with_timeout(REQUEST_MAX, answer(&mut socket)).await {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => eprintln!("{APP}: {reason}"),
            Err(_timeout) => {
                eprintln!("{APP}: a request took longer than {REQUEST_MAX}");
                socket.abort();
            }
        }
    }
}

/// Answers one request and closes.
async fn answer(socket: &mut TcpSocket) -> Result<(), String> {
    let mut buffer = [0; 1_024];
    let said = |error: edge_http::io::Error<motet_embassy::Error>| format!("{error:?}");
    let mut request: Connection<'_, _, 16> =
        Connection::new(&mut buffer, socket).await.map_err(said)?;
    let body = match request.headers().map_err(said)?.path {
        "/long" => LONG,
        _ => SHORT,
    };
    let len = body.len().to_string();
    let headers = [("Content-Length", len.as_str()), ("Connection", "Close")];
    let begun = request.initiate_response(200, Some("OK"), &headers).await;
    begun.map_err(said)?;
    request.write_all(body.as_bytes()).await.map_err(said)?;
    request.complete().await.map_err(said)
}
