//! Chromium asks picoserve on a mote, three hops behind a port of this machine.

use std::cell::Cell;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use embassy_time::Timer;

use crate::bridge::{self, Folder};
use crate::motes::{Run, Setting};
use crate::page::{LONG, SHORT, serve};
use crate::report::Check;

const APP: &str = "picoserve+chromium";

/// Both pages, as Chromium shows them. None where there is no Chromium.
pub(crate) fn pages(frame_loss: f64) -> Vec<Check> {
    let Some(program) = bridge::find("chromium") else {
        eprintln!("{APP}: not run: no chromium");
        return Vec::new();
    };
    let percent = frame_loss * 100.0;
    let pages = [("/", SHORT), ("/long", LONG)];
    let shown = pages.map(|(path, page)| show(&program, frame_loss, path, page));
    let whole: usize = shown.iter().map(|shown| shown.bytes).sum();
    let gone: usize = shown.iter().map(|shown| shown.gone).sum();
    vec![
        Check::at_least(
            APP,
            &format!("bytes shown, two pages, {percent:.0} % loss"),
            whole as f64,
            (SHORT.len() + LONG.len()) as f64,
            "B",
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

struct Shown {
    /// Of the page: none where it is not what the mote has.
    bytes: usize,
    /// Places of both motes that were not free again.
    gone: usize,
}

/// Lets Chromium show the page at `path`, in a run of its own.
fn show(program: &Path, frame_loss: f64, path: &str, page: &str) -> Shown {
    let mut run = Run::new(Setting {
        hops: 3,
        frame_loss,
        seed: 7,
    });
    let server = run.server;
    run.executor.spawn(async move {
        let _ended = serve(server, &Cell::new(0)).await;
    });
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("this machine has a free port");
    let unblocked = listener.set_nonblocking(true);
    unblocked.expect("a listener can do without blocking");
    let port = listener.local_addr().expect("it is bound").port();
    let (listener, is_done) = (Rc::new(listener), Rc::new(Cell::new(false)));
    // A browser opens a second connection in advance.
    for _ in 0..2 {
        let (client, to) = (run.client, (run.address, 80).into());
        let offer = bridge::offer(client, listener.clone(), to, is_done.clone());
        run.executor.spawn(offer);
    }
    let folder = Folder::new("chromium");
    let url = format!("http://127.0.0.1:{port}{path}");
    let mut browser = match Browser::start(program, folder.path(), &url) {
        Ok(browser) => browser,
        Err(reason) => {
            eprintln!("{APP}: {reason}");
            return Shown { bytes: 0, gone: 0 };
        }
    };
    let dom = run.executor.block_on(3_600, async move {
        let dom = browser.dom().await;
        is_done.set(true);
        // What closes in the background has the time that it is given.
        Timer::after_secs(200).await;
        dom
    });
    let dom = dom.unwrap_or_else(|| Err("not done in time".to_owned()));
    let bytes = match dom {
        // Chromium shows plain text in an element of its own.
        Ok(dom) if dom.contains(&format!(">{page}</pre>")) => page.len(),
        Ok(dom) => {
            eprintln!("{APP}: {url}: {} bytes of DOM without the page", dom.len());
            0
        }
        Err(reason) => {
            eprintln!("{APP}: {url}: {reason}");
            0
        }
    };
    let gone = run.places_lost();
    Shown { bytes, gone }
}

/// A Chromium without a window; it ends with this.
struct Browser(Child);

impl Browser {
    fn start(program: &Path, folder: &Path, url: &str) -> Result<Self, String> {
        let child = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-background-networking", "--no-first-run"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .args(["--dump-dom", url])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        child.map(Self).map_err(|error| error.to_string())
    }

    /// The document, once it has been shown.
    async fn dom(&mut self) -> Result<String, String> {
        let Self(child) = self;
        while child
            .try_wait()
            .map_err(|error| error.to_string())?
            .is_none()
        {
            Timer::after_millis(100).await;
        }
        let mut dom = String::new();
        let output = child.stdout.as_mut().ok_or("no output")?;
        let read = output.read_to_string(&mut dom);
        read.map_err(|error| error.to_string())?;
        Ok(dom)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let Self(child) = self;
        // It may have ended by itself.
        let _ended = child.kill();
        let _status = child.wait();
    }
}
