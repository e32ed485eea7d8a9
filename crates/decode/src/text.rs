//! A frame for people: one line that says it all, and each layer indented below.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::model::{Field, Frame, Layer, Status};

/// How to print: with or without colour, how wide.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether the reader is a terminal that wants colour.
    pub colour: bool,
    /// Columns of a line; longer ones are folded between fields.
    pub columns: usize,
}

impl Look {
    /// Without colour, in lines of the usual length.
    pub const PLAIN: Self = Self {
        colour: false,
        columns: COLUMNS,
    };

    /// `text` in `style`, or plain where colour is not wanted.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Prints one frame and a blank line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn frame(self, out: &mut dyn Write, frame: &Frame) -> io::Result<()> {
        let number = self.paint(BOLD, &format!("#{}", frame.number));
        let time = self.paint(DIM, &seconds(frame.since_start_ns));
        let cut = if frame.captured_len as u64 == u64::from(frame.original_len) {
            String::new()
        } else {
            format!(" of {}", frame.original_len)
        };
        let style = match frame.status {
            Status::Malformed(_) => BAD,
            Status::Undecoded(_) => ODD,
            Status::Decoded | Status::Fragment => BOLD,
        };
        let length = format!("{}{cut} B", frame.captured_len);
        let used = format!(
            "#{}  {} s  {length}",
            frame.number,
            seconds(frame.since_start_ns)
        );
        let head = format!("{number}  {time} s  {length}  ");
        self.folded(
            out,
            (&head, used.chars().count() + 2),
            MARGIN,
            style,
            &frame.summary,
        )?;
        for layer in &frame.layers {
            self.layer(out, layer)?;
        }
        match &frame.status {
            Status::Malformed(problem) => {
                self.problem(out, BAD, "malformed", problem.layer, &problem.reason)?;
            }
            Status::Undecoded(problem) => {
                self.problem(out, ODD, "not decoded", problem.layer, &problem.reason)?;
            }
            Status::Decoded | Status::Fragment => {}
        }
        writeln!(out)
    }

    fn layer(self, out: &mut dyn Write, layer: &Layer) -> io::Result<()> {
        let name = self.paint(NAME, &format!("{:>9}", layer.name));
        let mut parts = layer.fields.iter().flat_map(Field::for_people);
        let mut line = layer.title.clone();
        if line.is_empty() {
            line = parts.next().unwrap_or_default();
        }
        let mut prefix = format!("{name}  ");
        for part in parts {
            // The separator, and a comma behind.
            if MARGIN + line.chars().count() + part.chars().count() + 3 > self.columns {
                self.folded(
                    out,
                    (&prefix, MARGIN),
                    MARGIN,
                    Style::new(),
                    &format!("{line},"),
                )?;
                prefix = " ".repeat(MARGIN);
                line = part;
            } else {
                let separator = if line.is_empty() { "" } else { ", " };
                line = format!("{line}{separator}{part}");
            }
        }
        self.folded(out, (&prefix, MARGIN), MARGIN, Style::new(), &line)
    }

    /// Writes `text` behind a head of so many columns; what has no room goes on below, at
    /// `margin`.
    pub(super) fn folded(
        self,
        out: &mut dyn Write,
        (head, used): (&str, usize),
        margin: usize,
        style: Style,
        text: &str,
    ) -> io::Result<()> {
        let mut line = String::new();
        let (mut prefix, mut used) = (head.to_owned(), used);
        for word in text.split(' ') {
            let len = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && used + len > self.columns {
                writeln!(out, "{prefix}{}", self.paint(style, line.trim_end()))?;
                (prefix, used) = (" ".repeat(margin), margin);
                line = word.to_owned();
            } else {
                let gap = if line.is_empty() { "" } else { " " };
                line = format!("{line}{gap}{word}");
            }
        }
        writeln!(out, "{prefix}{}", self.paint(style, &line))
    }

    /// Writes `text`, which stands `indent` blanks from the left, and goes on there where it has
    /// no room.
    pub(super) fn paragraph(
        self,
        out: &mut dyn Write,
        indent: usize,
        text: &str,
    ) -> io::Result<()> {
        let head = text.get(..indent).unwrap_or_default();
        let text = text.get(indent..).unwrap_or_default();
        self.folded(
            out,
            (head, head.chars().count()),
            MARGIN,
            Style::new(),
            text,
        )
    }

    fn problem(
        self,
        out: &mut dyn Write,
        style: Style,
        what: &str,
        layer: &str,
        reason: &str,
    ) -> io::Result<()> {
        let mark = format!("{:>9}  {what} at {layer}:", "!");
        let used = mark.chars().count() + 1;
        let head = format!("{} ", self.paint(style, &mark));
        self.folded(out, (&head, used), MARGIN, Style::new(), reason)
    }
}

/// Nanoseconds as seconds with six digits, or nine where the capture is that fine.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let (whole, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    if rest.is_multiple_of(1_000) {
        format!("{sign}{whole}.{:06}", rest / 1_000)
    } else {
        format!("{sign}{whole}.{rest:09}")
    }
}

/// Columns of a line that is not for a terminal.
pub const COLUMNS: usize = 110;
/// Columns before a layer's text: its name, right-aligned, and two blanks.
const MARGIN: usize = 11;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const ODD: Style = AnsiColor::Yellow.on_default();
