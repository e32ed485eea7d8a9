//! Rows of cells under heads, no wider than the terminal.

use std::io;

use crate::{
    error::Error,
    output::{self, DIM, Out},
};

/// A table for people, drawn within the width of the terminal.
#[derive(Debug)]
pub(super) struct Grid {
    columns: Vec<Head>,
    rows: Vec<Vec<String>>,
}

/// The heading of a column.
#[derive(Clone, Debug)]
pub(super) struct Head {
    text: String,
    /// Columns with the highest number go first where there is no room; 0 stays.
    leaves: u8,
}

impl Head {
    /// A column that is always there.
    pub(super) fn fixed(text: &str) -> Self {
        Self::new(text, 0)
    }

    /// A column called `text`, whose lines stand above each other.
    pub(super) fn new(text: &str, leaves: u8) -> Self {
        Self {
            text: text.to_owned(),
            leaves,
        }
    }
}

impl Grid {
    pub(super) fn new(columns: Vec<Head>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// One cell for each column.
    pub(super) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the columns that fit, without empty ones; returns the heads of the columns for
    /// which there was no room.
    pub(super) fn print(mut self, out: Out) -> Result<Vec<String>, Error> {
        let empty = |place: usize| self.rows.iter().all(|row| row[place].is_empty());
        for place in (0..self.columns.len())
            .rev()
            .filter(|place| empty(*place))
            .collect::<Vec<_>>()
        {
            self.remove(place);
        }
        let left_out = self.fit(columns());
        let widths = self.widths();
        let heads: Vec<Vec<&str>> = self
            .columns
            .iter()
            .map(|head| head.text.split('\n').collect())
            .collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            // The last line of each head stands right above the numbers.
            let cells = heads.iter().map(|lines| {
                let place = (line + lines.len()).checked_sub(height);
                place.map_or("", |place| lines[place])
            });
            let text = joined(cells, &widths);
            output::line_to(out, format_args!("{DIM}{text}{DIM:#}"))?;
        }
        for row in &self.rows {
            output::line_to(out, joined(row.iter().map(String::as_str), &widths))?;
        }
        Ok(left_out)
    }

    /// Takes columns away until `width` is enough for the rest.
    fn fit(&mut self, width: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        let total = |widths: &[usize]| {
            widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
        };
        while total(&self.widths()) > width {
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

    fn widths(&self) -> Vec<usize> {
        let width = |text: &str| text.chars().count();
        let columns = self.columns.iter().enumerate();
        let widths = columns.map(|(place, head)| {
            let cells = self.rows.iter().map(|row| width(&row[place]));
            cells
                .chain(head.text.split('\n').map(width))
                .max()
                .unwrap_or(0)
        });
        widths.collect()
    }
}

/// Joins the cells of a row, each to the right, as numbers stand.
fn joined<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
    let cells = cells.zip(widths);
    let cells: Vec<String> = cells
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    cells.join(GAP).trim_end().to_owned()
}

/// How wide lines may be: the terminal, or the usual elsewhere.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(COLUMNS, |(width, _)| usize::from(width.0))
        .max(COLUMNS_MIN)
}

const GAP: &str = "  ";

/// The width where no terminal reports one.
const COLUMNS: usize = 110;

/// Narrower tables wrap.
const COLUMNS_MIN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_leaves_in_its_order() {
        let heads = [("flow", 0), ("kb/s", 1), ("energy\nmJ", 3), ("RTT\nms", 2)];
        let heads = heads.map(|(text, leaves)| Head::new(text, leaves));
        let mut grid = Grid::new(heads.to_vec());
        grid.push(
            ["1 → host", "12.5", "1234.5 ± 60.1", "250"]
                .map(str::to_owned)
                .to_vec(),
        );
        assert_eq!(grid.fit(34), Vec::<String>::new());
        assert_eq!(grid.widths(), [8, 4, 13, 3]);
        assert_eq!(grid.fit(33), ["energy mJ"]);
        assert_eq!(grid.fit(5), ["kb/s", "RTT ms"]);
        assert_eq!(grid.rows, [["1 → host"]]);
    }
}
