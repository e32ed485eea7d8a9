//! reqwless on one mote, picoserve on another.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use reqwless::client::HttpClient;
use reqwless::request::Method;

use crate::counted::Counted;
use crate::executor::now_us;
use crate::motes::{Run, Setting};
use crate::page::{LONG, SHORT, serve};
use crate::report::Check;

const APP: &str = "picoserve+reqwless";

/// Pages over one hop: how long they take, connection included.
pub(crate) fn times() -> Vec<Check> {
    let setting = Setting {
        hops: 1,
        frame_loss: 0.0,
        seed: 1,
    };
    let pages = [
        ("18-byte page, one hop", "/", 150.0),
        ("4,000-byte page, one hop", "/long", 480.0),
    ];
    let checks = pages.map(|(name, path, most)| {
        let mut run = Run::new(setting);
        run.executor.spawn(async move {
            let _ended = serve(run.server, &Cell::new(0)).await;
        });
        let (client, url) = (run.client, format!("http://[{}]{path}", run.address));
        let took = run.executor.block_on(60, async move {
            let begun = now_us();
            get(client, &url)
                .await
                .map(|_| (now_us() - begun) as f64 / 1000.0)
        });
        let took = took.unwrap_or_else(|| Err("not done in time".to_owned()));
        Check::at_most(APP, name, took, most, "ms")
    });
    checks.into()
}

/// How often a task is woken for each call of its sockets that gave something: of the client, and
/// of the server.
pub(crate) fn wakes() -> Vec<Check> {
    let setting = Setting {
        hops: 1,
        frame_loss: 0.0,
        seed: 3,
    };
    let mut run = Run::new(setting);
    let server = run.server;
    let answered = Rc::new(Cell::new(0));
    let counts = answered.clone();
    let server_task = run.executor.spawn(async move {
        let _ended = serve(server, &counts).await;
    });
    let (client, url) = (run.client, format!("http://[{}]/long", run.address));
    let useful = Rc::new(Cell::new(0));
    let is_done = Rc::new(Cell::new(false));
    let (calls, done) = (useful.clone(), is_done.clone());
    let task = run.executor.spawn(async move {
        for _ in 0..50 {
            let counted = Counted::new(client, calls.clone());
            let mut http = HttpClient::new(&counted, &client);
            let mut buffer = [0; 6000];
            if let Ok(mut request) = http.request(Method::GET, &url).await
                && let Ok(response) = request.send(&mut buffer).await
            {
                let _body = response.body().read_to_end().await;
            }
        }
        done.set(true);
    });
    let waits = async move {
        while !is_done.get() {
            embassy_time::Timer::after_millis(500).await;
        }
    };
    let done = run.executor.block_on(600, waits);
    let checks = [("client", task, useful), ("server", server_task, answered)];
    let checks = checks.map(|(end, task, useful)| {
        let each = f64::from(task.wakes()) / f64::from(useful.get());
        let each = done.map(|()| each).ok_or("not done in time".to_owned());
        let name = format!("wakes per useful call, {end}");
        Check::at_most(APP, &name, each, 1.5, "wakes")
    });
    checks.into()
}

/// `pages` requests over three hops: whole each, and no place for a connection missing after.
pub(crate) fn pages(frame_loss: f64, pages: u32) -> Vec<Check> {
    let setting = Setting {
        hops: 3,
        frame_loss,
        seed: 2,
    };
    let mut run = Run::new(setting);
    let server = run.server;
    run.executor.spawn(async move {
        let _ended = serve(server, &Cell::new(0)).await;
    });
    let (client, address) = (run.client, run.address);
    let whole = Rc::new(RefCell::new(0));
    let count = whole.clone();
    let reason = run.executor.block_on(u64::from(pages) * 60, async move {
        for page in 0..pages {
            let (path, expected) = match page % 2 {
                0 => ("/", SHORT),
                _ => ("/long", LONG),
            };
            let url = format!("http://[{address}]{path}");
            match get(client, &url).await {
                Ok(body) if body == expected.as_bytes() => *count.borrow_mut() += 1,
                Ok(body) => eprintln!("{url}: {} bytes differ", body.len()),
                Err(reason) => eprintln!("{url}: {reason}"),
            }
        }
        // What was dropped last closes in the background.
        embassy_time::Timer::after_secs(200).await;
    });
    if reason.is_none() {
        eprintln!("{pages} pages at {frame_loss} loss are not done in time");
    }
    let name = format!("whole pages, three hops, {:.0} % loss", frame_loss * 100.0);
    let gone = run.places_lost();
    vec![
        Check::at_least(
            APP,
            &name,
            f64::from(*whole.borrow()),
            pages.into(),
            "pages",
        ),
        Check::at_most(
            APP,
            &format!("places lost, {:.0} % loss", frame_loss * 100.0),
            Ok(gone as f64),
            0.0,
            "places",
        ),
    ]
}

/// The body at `url`.
pub(crate) async fn get(stack: motet_embassy::Stack, url: &str) -> Result<Vec<u8>, String> {
    let mut client = HttpClient::new(&stack, &stack);
    let mut buffer = [0; 6000];
    let request = client.request(Method::GET, url).await;
    let mut request = request.map_err(|error| format!("{error:?}"))?;
    let response = request.send(&mut buffer).await;
    let body = response.map_err(|error| format!("{error:?}"))?.body();
    let body = body.read_to_end().await;
    body.map(|body| body.to_vec())
        .map_err(|error| format!("{error:?}"))
}
