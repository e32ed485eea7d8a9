//! The one writer of tables: rows of cells under heads, no wider than the terminal.
//!
//! Numbers stand to the right, words to the left. Where names take more than half of the line,
//! each is on a line of its own. Where there is no room, columns that say less leave; prose, in
//! the last column, is folded beside the others, or below them where little is left. Lines of
//! text are folded by [`folded`].

use std::io;

use anstyle::Style;

use crate::{
    error::Error,
    output::{self, DIM, Out},
};

/// A table for people, drawn within the width of the terminal.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: Vec<Head>,
    rows: Vec<Vec<Cell>>,
}

/// The heading of a column.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    text: String,
    /// Columns with the highest number go first where there is no room; 0 stays.
    leaves: u8,
    kind: Kind,
}

/// How the cells of a column stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// To the right, as numbers do.
    Number,
    /// To the left.
    Word,
    /// To the left, and folded where there is no room; only the last column is.
    Prose,
}

/// A cell, and how it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        let style = Style::new();
        Self { text, style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// In this style.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        Self { text, style }
    }
}

impl Head {
    /// A column that is always there.
    pub(crate) fn fixed(text: &str) -> Self {
        Self::new(text, 0)
    }

    /// A column called `text`; its lines stand above each other.
    pub(crate) fn new(text: &str, leaves: u8) -> Self {
        Self {
            text: text.to_owned(),
            leaves,
            kind: Kind::Number,
        }
    }

    /// Its cells are words.
    pub(crate) const fn words(mut self) -> Self {
        self.kind = Kind::Word;
        self
    }

    /// Its cells are sentences; it is the last column.
    pub(crate) const fn prose(mut self) -> Self {
        self.kind = Kind::Prose;
        self
    }
}

impl Grid {
    pub(crate) const fn new(columns: Vec<Head>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// One cell for each column.
    pub(crate) fn push<C: Into<Cell>>(&mut self, row: impl IntoIterator<Item = C>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the columns that fit, without empty ones; returns the heads of the columns for
    /// which there was no room.
    pub(crate) fn print(self, out: Out) -> Result<Vec<String>, Error> {
        let (lines, left_out) = self.lines(columns());
        for line in lines {
            output::line_to(out, line)?;
        }
        Ok(left_out)
    }

    /// The lines of the columns that fit into `width`, and the heads of the others.
    pub(crate) fn lines(mut self, width: usize) -> (Vec<String>, Vec<String>) {
        let empty = |place: usize| self.rows.iter().all(|row| row[place].text.is_empty());
        for place in (0..self.columns.len())
            .rev()
            .filter(|place| empty(*place))
            .collect::<Vec<_>>()
        {
            self.remove(place);
        }
        let names = self.long_names(width);
        let (indent, width) = match names {
            None => (0, width),
            Some(_) => (NAME_INDENT, width - NAME_INDENT),
        };
        let left_out = self.fit(width);
        let widths = self.widths(width);
        let mut lines = self.head_lines(&widths);
        let mut names = names.into_iter().flatten();
        for row in &self.rows {
            let indented = lines.len();
            if let Some(name) = names.next() {
                lines.push(shown(&name, &name.text));
            }
            self.row_lines(row, &widths, width, &mut lines);
            // The heads stand above the figures, not above the name.
            let figures = lines.iter_mut().skip(indented + usize::from(indent > 0));
            figures.for_each(|line| line.insert_str(0, &" ".repeat(indent)));
        }
        if indent > 0 {
            let heads = self.head_lines(&widths).len();
            let heads = lines.iter_mut().take(heads);
            heads.for_each(|line| line.insert_str(0, &" ".repeat(indent)));
        }
        (lines, left_out)
    }

    /// Takes the first column away, if its names take more than half of the line.
    fn long_names(&mut self, width: usize) -> Option<Vec<Cell>> {
        let first = self.columns.first()?;
        let longest = self.rows.iter().filter_map(|row| row.first());
        let longest = longest.map(|cell| cell.text.chars().count()).max()?;
        if first.kind != Kind::Word || self.columns.len() < 3 || longest * 2 <= width {
            return None;
        }
        let names = self.rows.iter().filter_map(|row| row.first().cloned());
        let names = names.collect();
        self.remove(0);
        Some(names)
    }

    fn head_lines(&self, widths: &[usize]) -> Vec<String> {
        let heads: Vec<Vec<&str>> = self
            .columns
            .iter()
            .map(|head| head.text.split('\n').collect())
            .collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        let line = |line: usize| {
            // The last line of each head stands right above the numbers.
            let cells = heads.iter().zip(widths).map(|(lines, width)| {
                let place = (line + lines.len()).checked_sub(height);
                // Prose that stands below has no head.
                let place = place.filter(|_| *width > 0);
                Cell::from(place.map_or("", |place| lines[place]))
            });
            let text = self.joined(&cells.collect::<Vec<_>>(), widths);
            format!("{DIM}{text}{DIM:#}")
        };
        let has_heads = self.columns.iter().any(|head| !head.text.is_empty());
        (0..height).filter(|_| has_heads).map(line).collect()
    }

    /// The line of a row, and further ones where its last cell is folded.
    fn row_lines(&self, row: &[Cell], widths: &[usize], width: usize, lines: &mut Vec<String>) {
        let last = self.columns.last().filter(|head| head.kind == Kind::Prose);
        let (Some(_), Some((prose, others)), Some(column)) =
            (last, row.split_last(), widths.last())
        else {
            lines.push(self.joined(row, widths));
            return;
        };
        if *column == 0 {
            lines.push(self.joined(others, widths));
            let text = format!("{}{}", " ".repeat(BELOW_INDENT), prose.text);
            let below = folded(&text, width, BELOW_INDENT).into_iter();
            let below = below.filter(|line| !line.trim().is_empty());
            lines.extend(below.map(|line| shown(prose, &line)));
            return;
        }
        let indent = widths.iter().rev().skip(1).sum::<usize>() + GAP.len() * others.len();
        for (at, piece) in folded(&prose.text, *column, 0).into_iter().enumerate() {
            let piece = Cell::styled(piece, prose.style);
            lines.push(match at {
                0 => self.joined(&[others, &[piece]].concat(), widths),
                _ => format!("{}{}", " ".repeat(indent), shown(&piece, &piece.text)),
            });
        }
    }

    /// Takes columns away until `width` is enough for the rest.
    fn fit(&mut self, width: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        let total = |widths: &[usize]| {
            let shown = widths.iter().filter(|width| **width > 0).count();
            widths.iter().sum::<usize>() + GAP.len() * shown.saturating_sub(1)
        };
        while total(&self.widths(width)) > width {
            let places = self.columns.iter().enumerate();
            let Some((place, head)) = places.max_by_key(|(_, head)| head.leaves) else {
                break;
            };
            if head.leaves == 0 {
                break;
            }
            left_out.push(head.text.replace('\n', " "));
            self.remove(place);
        }
        left_out.reverse();
        left_out
    }

    fn remove(&mut self, place: usize) {
        self.columns.remove(place);
        for row in &mut self.rows {
            row.remove(place);
        }
    }

    /// How wide each column is; prose takes what is left of `width`, if that is not too little.
    fn widths(&self, width: usize) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        let widest = columns.map(|(place, head)| {
            let cells = self.rows.iter().map(|row| row[place].text.chars().count());
            let heads = head.text.split('\n').map(|text| text.chars().count());
            cells.chain(heads).max().unwrap_or(0)
        });
        let mut widths: Vec<usize> = widest.collect();
        if let (Some(Kind::Prose), Some((last, others))) = (
            self.columns.last().map(|head| head.kind),
            widths.split_last_mut(),
        ) {
            let taken = others.iter().sum::<usize>() + GAP.len() * others.len();
            // Nothing stands for a place below the others.
            *last = match width.saturating_sub(taken) {
                left if left >= PROSE_MIN || left >= *last => left.min(*last),
                _ => 0,
            };
        }
        widths
    }

    /// Joins the cells of a row.
    fn joined(&self, cells: &[Cell], widths: &[usize]) -> String {
        let last = cells.iter().rposition(|cell| !cell.text.is_empty());
        let cells = cells.iter().zip(widths).zip(&self.columns).enumerate();
        let cells = cells.map(|(place, ((cell, width), head))| {
            let text = match head.kind {
                _ if last.is_none_or(|last| place > last) => String::new(),
                Kind::Number => format!("{:>width$}", cell.text),
                // Nothing follows that would have to stand in line.
                Kind::Word | Kind::Prose if last == Some(place) => cell.text.clone(),
                Kind::Word | Kind::Prose => format!("{:<width$}", cell.text),
            };
            shown(cell, &text)
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

fn shown(cell: &Cell, text: &str) -> String {
    let style = cell.style;
    format!("{style}{text}{style:#}")
}

/// `text` in lines of at most `width` columns, broken at blanks where possible; those behind the
/// first begin with `indent` blanks.
pub(crate) fn folded(text: &str, width: usize, indent: usize) -> Vec<String> {
    let words = text.trim_start_matches(' ');
    let begin = text.len() - words.len();
    let mut lines = vec![" ".repeat(begin)];
    let (mut used, mut is_empty) = (begin, true);
    for word in words.split(' ') {
        let len = word.chars().count();
        if !is_empty && used + 1 + len > width {
            lines.push(" ".repeat(indent));
            (used, is_empty) = (indent, true);
        }
        if let Some(line) = lines.last_mut() {
            if !is_empty {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
        }
        used += len;
        is_empty = false;
    }
    lines
}

/// How wide lines may be: the terminal, what `COLUMNS` says, or the usual.
pub(crate) fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    size.map(|(width, _)| usize::from(width.0))
        .or_else(variable)
        .unwrap_or(COLUMNS)
        .max(COLUMNS_MIN)
}

const GAP: &str = "  ";

/// The width where no terminal reports one.
const COLUMNS: usize = 110;

/// Narrower tables wrap.
const COLUMNS_MIN: usize = 60;

/// Columns that prose has at least beside others.
const PROSE_MIN: usize = 24;

/// Blanks before prose that stands below, and before figures below their name.
const BELOW_INDENT: usize = 4;
const NAME_INDENT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_leaves_in_its_order() {
        let heads = [("flow", 0), ("kb/s", 1), ("energy\nmJ", 3), ("RTT\nms", 2)];
        let heads = heads.map(|(text, leaves)| Head::new(text, leaves));
        let mut grid = Grid::new(heads.to_vec());
        grid.push(["1 → host", "12.5", "1234.5 ± 60.1", "250"]);
        assert_eq!(grid.fit(34), Vec::<String>::new());
        assert_eq!(grid.widths(34), [8, 4, 13, 3]);
        assert_eq!(grid.fit(33), ["energy mJ"]);
        assert_eq!(grid.fit(5), ["kb/s", "RTT ms"]);
        assert_eq!(grid.rows[0][0].text, "1 → host");
    }

    #[test]
    fn prose_is_folded_beside_the_other_columns() {
        let heads = vec![
            Head::fixed("what").words(),
            Head::fixed("n"),
            Head::fixed("why").words().prose(),
        ];
        let mut grid = Grid::new(heads);
        grid.push(["one", "10", "a sentence that is too long for its line"]);
        grid.push(["three", "5", ""]);
        let plain = |grid: Grid, width| {
            let (lines, _) = grid.lines(width);
            let plain = anstream::adapter::strip_str(&lines.join("\n")).to_string();
            assert!(
                plain.lines().all(|line| line.chars().count() <= width),
                "{plain}"
            );
            plain
        };
        let mut narrow = Grid::new(grid.columns.clone());
        narrow.rows.clone_from(&grid.rows);
        assert_eq!(
            plain(grid, 36),
            "what    n  why\n\
             one    10  a sentence that is too\n\
             \u{20}          long for its line\n\
             three   5"
        );
        assert_eq!(
            plain(narrow, 30),
            "what    n\n\
             one    10\n\
             \u{20}   a sentence that is too\n\
             \u{20}   long for its line\n\
             three   5"
        );
    }

    #[test]
    fn long_names_have_a_line_of_their_own() {
        let heads = vec![
            Head::fixed("flow").words(),
            Head::fixed("n"),
            Head::new("m", 1),
        ];
        let mut grid = Grid::new(heads);
        grid.push(["[fd00::1]:4242 to [fd00::2]:80", "10", "5"]);
        let (lines, left_out) = grid.lines(40);
        let plain = anstream::adapter::strip_str(&lines.join("\n")).to_string();
        assert_eq!(plain, "   n  m\n[fd00::1]:4242 to [fd00::2]:80\n  10  5");
        assert!(left_out.is_empty());
    }

    #[test]
    fn text_is_folded_at_blanks() {
        assert_eq!(folded("a bc def", 5, 2), ["a bc", "  def"]);
        assert_eq!(folded("", 5, 2), [""]);
        let long = "x".repeat(20);
        assert_eq!(
            folded(&format!("a {long} b"), 10, 1),
            ["a", &format!(" {long}"), " b"]
        );
    }
}
