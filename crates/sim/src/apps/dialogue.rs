//! Applications of lines: a page of a web server, and a shell to look at a mote by.
//!
//! Place: [`super::Services`] accepts the connections and takes their buffers back; here a client's
//! lines become answers. Left out: anything that a client could change. Source: RFC 9112 for
//! HTTP/1.1, of which each connection carries one request; RFC 854 for the end of a shell's lines.

use motet::tcp::{self, Handle, RecvError};
use motet::time::{Duration, Instant};

/// An application that a mote has besides its small services.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Application {
    /// A web server at port 80.
    Http,
    /// A shell at port 23.
    Shell,
}

/// Facts about a mote for use in answers.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Time since the simulation began, s.
    pub(super) uptime_s: u64,
    /// The mote's addresses, one a line.
    pub(super) addresses: String,
    /// Connections that the mote has at this time.
    pub(super) connections: usize,
    /// Segments that its TCP has sent.
    pub(super) segments: u32,
}

/// A dialogue with one client.
#[derive(Debug)]
pub(super) struct Dialogue {
    application: Application,
    /// The received part of the line under way.
    line: Vec<u8>,
    /// The request line, from its end to the end of the headers.
    request: Option<String>,
    /// The bytes still to be sent.
    out: Vec<u8>,
    /// The last answer has been given.
    is_over: bool,
    is_shut: bool,
}

impl Application {
    /// The port that it listens at.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Shell => 23,
        }
    }

    pub(super) fn begin(self) -> Dialogue {
        let greeting = match self {
            Self::Http => "",
            Self::Shell => concat!("a mote; try help\r\n", "> "),
        };
        Dialogue {
            application: self,
            line: Vec::new(),
            request: None,
            out: greeting.as_bytes().to_vec(),
            is_over: false,
            is_shut: false,
        }
    }
}

impl Dialogue {
    /// Whether the idle time counts until a request is complete: otherwise a client that sends a
    /// byte now and then would keep its place for ever.
    pub(super) fn awaits_request(&self) -> bool {
        self.application == Application::Http && !self.is_over
    }

    /// How long the client may make no progress. A web server's is a program, and has its request
    /// ready.
    pub(super) const fn idle_max(&self) -> Duration {
        match self.application {
            Application::Http => REQUEST_MAX,
            Application::Shell => IDLE_MAX,
        }
    }

    /// Reads the available input and sends the available output; returns whether it read or sent
    /// anything.
    pub(super) fn step(
        &mut self,
        handle: Handle,
        tcp: &mut tcp::Tcp<'_>,
        facts: &Facts,
        now: Instant,
    ) -> bool {
        let mut acted = self.send(handle, tcp, now);
        // The next line is processed only after the answer to the last one has been sent, so the
        // output is bounded.
        while self.out.is_empty() && !self.is_shut {
            if self.is_over {
                self.is_shut = true;
                tcp.shutdown(handle, now);
                return true;
            }
            let bytes = match tcp.peek(handle) {
                Ok(bytes) => bytes,
                Err(RecvError::Finished) => {
                    self.is_over = true;
                    continue;
                }
                Err(_) => return acted,
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(bytes.len(), |end| end + 1);
            let room = LINE_LEN_MAX.saturating_sub(self.line.len());
            self.line.extend(bytes.iter().take(count.min(room)));
            tcp.consume(handle, count);
            acted = true;
            if end.is_some() {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                self.answer(line.trim_end(), facts);
                self.send(handle, tcp, now);
            }
        }
        acted
    }

    fn send(&mut self, handle: Handle, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        match tcp.send(handle, &self.out, now) {
            Ok(taken) if taken > 0 => {
                self.out.drain(..taken);
                true
            }
            _ => false,
        }
    }

    fn answer(&mut self, line: &str, facts: &Facts) {
        match self.application {
            Application::Shell => {
                let (answer, is_over) = obey(line, facts);
                self.out.extend(answer.as_bytes());
                self.is_over = is_over;
                if !is_over {
                    self.out.extend(b"> ");
                }
            }
            Application::Http => match self.request.take() {
                // An empty line before a request is skipped (RFC 9112 §2.2).
                None if line.is_empty() => {}
                None => self.request = Some(line.to_owned()),
                Some(request) if line.is_empty() => {
                    self.out = respond(&request, facts);
                    self.is_over = true;
                }
                // Headers change nothing here.
                request => self.request = request,
            },
        }
    }
}

/// The shell's answer to a line, and whether the dialogue ends with it.
fn obey(line: &str, facts: &Facts) -> (String, bool) {
    let (command, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let answer = match command {
        "" => String::new(),
        "help" => "addresses  connections  echo TEXT  exit  help  segments  uptime\r\n".to_owned(),
        "addresses" => facts.addresses.replace('\n', "\r\n"),
        "connections" => format!("{}\r\n", facts.connections),
        "segments" => format!("{}\r\n", facts.segments),
        "uptime" => format!("{} s\r\n", facts.uptime_s),
        "echo" => format!("{rest}\r\n"),
        "exit" => return ("bye\r\n".to_owned(), true),
        unknown => format!("no command {unknown}; try help\r\n"),
    };
    (answer, false)
}

/// The answer to a request line.
fn respond(request: &str, facts: &Facts) -> Vec<u8> {
    let mut words = request.split(' ');
    let (method, path) = (words.next(), words.next());
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    let (status, body) = match (method, path) {
        _ if !is_http || words.next().is_some() => ("400 Bad Request", "no request\n".to_owned()),
        (Some("GET" | "HEAD"), Some("/")) => ("200 OK", "hello from a mote\n".to_owned()),
        (Some("GET" | "HEAD"), Some("/status")) => ("200 OK", status_of(facts)),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "no such page\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET and HEAD alone\n".to_owned()),
    };
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len}\r\n\
         Allow: GET, HEAD\r\nConnection: close\r\n\r\n"
    );
    match method {
        Some("HEAD") => head.into_bytes(),
        _ => (head + &body).into_bytes(),
    }
}

fn status_of(facts: &Facts) -> String {
    let Facts {
        uptime_s,
        addresses,
        connections,
        segments,
    } = facts;
    format!("uptime {uptime_s} s\nconnections {connections}\nsegments {segments}\n{addresses}")
}

/// How long a client of a shell may be idle: as long as many of the boxes that translate addresses
/// remember it.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(300);

/// How long a web server's client may take for its request, and then for what it has to take of the
/// answer or to close.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// The most that is kept of a line, bytes; the rest of a longer one is dropped.
const LINE_LEN_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_get_the_answer_that_fits() {
        // (request line, status, body)
        let cases = [
            ("GET / HTTP/1.1", "200", "hello from a mote\n"),
            ("HEAD / HTTP/1.1", "200", ""),
            (
                "GET /status HTTP/1.0",
                "200",
                "uptime 7 s\nconnections 0\nsegments 0\nfe80::1\n",
            ),
            ("GET /etc/passwd HTTP/1.1", "404", "no such page\n"),
            ("PUT / HTTP/1.1", "405", "GET and HEAD alone\n"),
            ("GET /", "400", "no request\n"),
            ("\u{fffd}", "400", "no request\n"),
        ];
        let facts = Facts {
            uptime_s: 7,
            addresses: "fe80::1\n".to_owned(),
            ..Facts::default()
        };
        for (request, status, body) in cases {
            let answer = String::from_utf8(respond(request, &facts)).expect("text");
            let (head, rest) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(
                head.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}"
            );
            assert_eq!(rest, body, "{request}");
        }
    }

    #[test]
    fn a_shell_obeys_what_it_knows() {
        let facts = Facts::default();
        assert_eq!(obey("echo a  b", &facts).0, "a  b\r\n");
        assert_eq!(obey("uptime", &facts).0, "0 s\r\n");
        assert_eq!(obey("", &facts).0, "");
        assert!(obey("rm", &facts).0.starts_with("no command rm"));
        assert!(obey("exit", &facts).1);
    }
}
