//! Tables of text.

use crate::output::Output;

/// Rows under a header; columns are as wide as what is in them.
pub(crate) struct Table<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Columns whose title begins with '>' are aligned to the right.
    pub fn new(header: [&'static str; N]) -> Self {
        Self { header, rows: Vec::new() }
    }

    pub fn push(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    pub fn render(&self, output: &Output) -> String {
        let titles = self.header.map(|title| title.trim_start_matches('>'));
        let mut widths = titles.map(|title| title.chars().count());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: [&str; N]| {
            let mut line = String::new();
            for ((cell, width), title) in cells.iter().zip(widths).zip(self.header) {
                let padded = if title.starts_with('>') {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                };
                line += &padded;
                line += "  ";
            }
            line.truncate(line.trim_end().len());
            line
        };
        let mut text = output.bold(&line(titles));
        text.push('\n');
        for row in &self.rows {
            text += &line(std::array::from_fn(|column| row[column].as_str()));
            text.push('\n');
        }
        text
    }
}
