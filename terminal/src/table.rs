// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Tables of text.

use crate::output::{Output, escape_line};

/// Rows under a header; columns are as wide as what is in them.
pub struct Table<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Columns whose title begins with '>' are aligned to the right. Where no column has a title, there is no header.
    pub fn new(header: [&'static str; N]) -> Self {
        Self { header, rows: Vec::new() }
    }

    /// A row; each cell stays in its line, whatever is in it.
    pub fn push(&mut self, row: [String; N]) {
        self.rows.push(row.map(|cell| escape_line(&cell)));
    }

    /// As text, its header in bold where colours are on.
    pub fn render(&self, output: &Output) -> String {
        self.lines(|header| output.bold(header))
    }

    /// As text without colours.
    pub fn text(&self) -> String {
        self.lines(str::to_owned)
    }

    /// As a LaTeX table with the rules of the package booktabs.
    pub fn latex(&self) -> String {
        let columns: String =
            self.header.iter().map(|title| if title.starts_with('>') { 'r' } else { 'l' }).collect();
        let line = |cells: [&str; N]| cells.map(latex).join(" & ") + " \\\\\n";
        let header = line(self.titles());
        let rows: String =
            self.rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str()))).collect();
        format!(
            "\\begin{{tabular}}{{{columns}}}\n\\toprule\n{header}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n"
        )
    }

    fn titles(&self) -> [&'static str; N] {
        self.header.map(|title| title.trim_start_matches('>'))
    }

    fn lines(&self, header: impl FnOnce(&str) -> String) -> String {
        let titles = self.titles();
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
            line + "\n"
        };
        let mut text = String::new();
        if titles.iter().any(|title| !title.is_empty()) {
            text += &header(line(titles).trim_end());
            text.push('\n');
        }
        for row in &self.rows {
            text += &line(std::array::from_fn(|column| row[column].as_str()));
        }
        text
    }
}

/// A text as LaTeX shows it.
fn latex(text: &str) -> String {
    let mut shown = String::new();
    for sign in text.chars() {
        match sign {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => shown.extend(['\\', sign]),
            '\\' => shown += r"\textbackslash{}",
            '~' => shown += r"\textasciitilde{}",
            '^' => shown += r"\textasciicircum{}",
            '<' | '>' => shown.extend(['$', sign, '$']),
            '±' => shown += r"$\pm$",
            '≥' => shown += r"$\geq$",
            '≤' => shown += r"$\leq$",
            'µ' => shown += r"$\mu$",
            _ => shown.push(sign),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_shows_what_the_table_says() {
        let mut table = Table::new(["arm", ">time s"]);
        table.push(["ramp:gain_pct=5 & {x}\\".into(), "≥ 2.50 ± 0.10".into()]);
        let shown = table.latex();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], r"\begin{tabular}{lr}");
        assert_eq!(lines[2], r"arm & time s \\");
        assert_eq!(lines[4], r"ramp:gain\_pct=5 \& \{x\}\textbackslash{} & $\geq$ 2.50 $\pm$ 0.10 \\");
        assert_eq!(lines.len(), 7, "{shown}");
    }

    #[test]
    fn whatever_is_in_a_cell_it_stays_in_its_line_and_column() {
        let output = Output::plain();
        let mut table = Table::new(["NAME", ">NUMBER"]);
        table.push(["a\x1b[2J\nforged  7\u{202e}\r\x07\x1b[1m".into(), "1".into()]);
        table.push(["b".into(), "22".into()]);
        let shown = crate::output::printable(&table.render(&output));
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        assert!(lines[1].starts_with(r"a\u001b[2J\u000aforged  7\u202e\u000d\u0007\u001b[1m"), "{shown}");
        assert!(
            !shown.chars().any(|sign| crate::output::is_terminal_control(sign) && sign != '\n'),
            "{shown:?}"
        );
        assert_eq!(lines[1].len(), lines[2].len(), "{shown}");
    }
}
