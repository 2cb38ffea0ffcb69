//! How is a table printed? The first column to the left, numbers to the right, no lines.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// The table with this header and these rows, each line ended.
pub(crate) fn of<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Seconds as milliseconds.
pub(crate) fn ms(seconds: f64) -> String {
    format!("{:.3}", seconds * 1e3)
}
