//! Styles, wrapping and alignment of terminal output.

use std::ops::RangeInclusive;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// The title of a table.
pub(super) const TITLE: Style = Style::new().bold();
/// The headings of columns.
const HEADING: Style = Style::new().underline();
/// The fastest row of its group with equal work.
pub(super) const FASTEST: Style = AnsiColor::Green.on_default();
/// A wrong outcome.
const WRONG: Style = AnsiColor::Red.on_default().bold();
/// All other rows.
pub(super) const PLAIN: Style = Style::new();

/// Text in a style.
pub(super) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Text without the escape sequences of styles, each from the escape character to an `m`.
pub(super) fn plain(styled: &str) -> String {
    let mut parts = styled.split('\u{1b}');
    let before = parts.next().unwrap_or_default();
    let after = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    std::iter::once(before).chain(after).collect()
}

/// Styles text between double asterisks as wrong; the asterisks stay for readers without colour.
pub(super) fn mark_wrong(text: &str) -> String {
    let mut parts = text.split("**");
    let mut marked = parts.next().unwrap_or_default().to_owned();
    while let Some(word) = parts.next() {
        match parts.next() {
            Some(rest) => marked += &(styled(WRONG, &format!("**{word}**")) + rest),
            None => marked += &format!("**{word}"),
        }
    }
    marked
}

/// A table without borders.
pub(super) struct Grid {
    table: Table,
    styles: Vec<Style>,
}

impl Grid {
    pub(super) fn new<S: AsRef<str>>(headings: impl IntoIterator<Item = S>) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(headings.into_iter().map(|heading| heading.as_ref().to_owned()));
        Self { table, styles: Vec::new() }
    }

    pub(super) fn row<S: AsRef<str>>(&mut self, style: Style, cells: impl IntoIterator<Item = S>) {
        self.table.add_row(cells.into_iter().map(|cell| cell.as_ref().to_owned()));
        self.styles.push(style);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.styles.is_empty()
    }

    pub(super) fn align_right(&mut self, columns: RangeInclusive<usize>) {
        for column in columns {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    pub(super) fn hide(&mut self, column: usize) {
        if let Some(column) = self.table.column_mut(column) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }

    /// The lines of the table: headings underlined, rows in their styles, text between double asterisks as wrong.
    pub(super) fn render(&self) -> String {
        let rows = self.styles.iter().chain(std::iter::repeat(&PLAIN));
        let styles = std::iter::once(&HEADING).chain(rows);
        let text = self.table.trim_fmt();
        let lines = text.lines().zip(styles).map(|(line, style)| mark_wrong(&styled(*style, line)));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Breaks lines at spaces; every line but the first begins with `indent` spaces.
pub(super) fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line from the start");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{:indent$}{word}", ""));
        }
    }
    lines.join("\n")
}

/// Columns of running text.
const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_heading_and_rows_and_reads_the_same_without_colour() {
        let mut grid = Grid::new(["peer", "must"]);
        grid.row(FASTEST, ["a", "**accepts**"]);
        grid.row(PLAIN, ["b", "refuses"]);
        let text = grid.render();
        assert!(text.starts_with("\u{1b}[4m peer  must"), "{text:?}");
        assert!(text.contains("\n\u{1b}[32m a "), "{text:?}");
        assert!(text.contains("\u{1b}[31m**accepts**\u{1b}[0m"), "{text:?}");
        assert!(text.ends_with("\n b     refuses"), "{text:?}");
        let without = " peer  must\n a     **accepts**\n b     refuses";
        assert_eq!(plain(&text), without);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), without);
    }

    #[test]
    fn asterisks_that_enclose_nothing_are_left_alone() {
        for text in ["", "a ** b", "no word"] {
            assert_eq!(mark_wrong(text), text);
        }
    }
}
