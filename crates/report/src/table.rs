//! How is a table written so that it is one for everybody: with a caption, headers that say what they
//! head, and roles that stay when a narrow screen lays the cells out in another way?

use std::fmt::Display;

use crate::html::{Html, Tag, tag};

/// A table behind a caption, in a frame that scrolls by itself and can be reached by keyboard.
pub(crate) fn framed(caption: &str, class: &str, inside: impl Into<Html>) -> Tag {
    let table = tag("table")
        .attr("role", "table")
        .class(class)
        .with(tag("caption").text(caption))
        .with(inside);
    tag("div")
        .class("frame")
        .attr("role", "region")
        .attr("aria-label", caption)
        .attr("tabindex", 0)
        .with(table)
}

/// The row of headings.
pub(crate) fn head(headings: impl IntoIterator<Item = Tag>) -> Tag {
    tag("thead").attr("role", "rowgroup").with(row().with_all(headings))
}

/// A body of rows.
pub(crate) fn body(rows: impl IntoIterator<Item = Tag>) -> Tag {
    tag("tbody").attr("role", "rowgroup").with_all(rows)
}

/// A row.
pub(crate) fn row() -> Tag {
    tag("tr").attr("role", "row")
}

/// The heading of a column.
pub(crate) fn heading(text: impl Display) -> Tag {
    tag("th").attr("scope", "col").attr("role", "columnheader").text(text)
}

/// The heading of a column of numbers.
pub(crate) fn number_heading(text: impl Display) -> Tag {
    heading(text).class("number")
}

/// The heading of a row.
pub(crate) fn row_heading() -> Tag {
    tag("th").attr("scope", "row").attr("role", "rowheader")
}

/// A cell.
pub(crate) fn cell() -> Tag {
    tag("td").attr("role", "cell")
}

/// A cell with a number.
pub(crate) fn number(text: impl Display) -> Tag {
    cell().class("number").text(text)
}

/// A table of texts whose first column heads the rows; columns from `numbers_from` on hold numbers.
pub(crate) fn plain<const N: usize>(
    caption: &str,
    headings: [&str; N],
    numbers_from: usize,
    rows: impl IntoIterator<Item = [String; N]>,
) -> Tag {
    let headings = headings
        .into_iter()
        .enumerate()
        .map(|(at, text)| if at < numbers_from { heading(text) } else { number_heading(text) });
    let rows = rows.into_iter().map(|cells| {
        row().with_all(cells.into_iter().enumerate().map(|(at, text)| match at {
            0 => row_heading().text(text),
            at if at < numbers_from => cell().text(text),
            _ => number(text),
        }))
    });
    framed(caption, "plain", Html::from(head(headings)).and(body(rows)))
}
