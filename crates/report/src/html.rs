//! HTML and SVG in which no text can become markup.
//!
//! [`Html`] consists of tags named in this program, and of texts and values that are escaped when they are added.
//! Tables have captions and scoped headings.

use std::fmt::{Display, Write};

/// Markup that is safe to put into a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// The text as itself.
    pub(crate) fn text(text: impl Display) -> Self {
        Self(escaped(&text.to_string()))
    }

    /// All of them, one after the other.
    pub(crate) fn all<H: Into<Self>>(parts: impl IntoIterator<Item = H>) -> Self {
        parts.into_iter().fold(Self::default(), Self::and)
    }

    pub(crate) fn and(mut self, next: impl Into<Self>) -> Self {
        self.0 += &next.into().0;
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Tag> for Html {
    fn from(tag: Tag) -> Self {
        let Tag { name, mut open, classes, inside } = tag;
        if !classes.is_empty() {
            write!(open, " class=\"{}\"", escaped(&classes)).expect("a string grows");
        }
        let is_void = VOID.contains(&name);
        Self(if is_void { format!("{open}>") } else { format!("{open}>{inside}</{name}>") })
    }
}

impl<H: Into<Html>> From<Option<H>> for Html {
    fn from(html: Option<H>) -> Self {
        html.map_or_else(Self::default, Into::into)
    }
}

/// An element that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    name: &'static str,
    /// All of the opening tag but its `>`.
    open: String,
    /// All of its classes: an attribute may occur only once.
    classes: String,
    inside: String,
}

/// An element without attributes or content.
pub(crate) fn tag(name: &'static str) -> Tag {
    Tag { name, open: format!("<{name}"), classes: String::new(), inside: String::new() }
}

impl Tag {
    pub(crate) fn attr(mut self, name: &'static str, value: impl Display) -> Self {
        write!(self.open, " {name}=\"{}\"", escaped(&value.to_string())).expect("a string grows");
        self
    }

    /// An attribute without a value.
    pub(crate) fn flag(mut self, name: &'static str) -> Self {
        write!(self.open, " {name}").expect("a string grows");
        self
    }

    /// Adds a class.
    pub(crate) fn class(mut self, class: &str) -> Self {
        if !self.classes.is_empty() {
            self.classes.push(' ');
        }
        self.classes += class;
        self
    }

    pub(crate) fn text(self, text: impl Display) -> Self {
        self.with(Html::text(text))
    }

    pub(crate) fn with(mut self, inside: impl Into<Html>) -> Self {
        self.inside += &inside.into().0;
        self
    }

    pub(crate) fn with_all<H: Into<Html>>(self, parts: impl IntoIterator<Item = H>) -> Self {
        self.with(Html::all(parts))
    }
}

/// A table with a caption, in a scrollable frame that can be focused by keyboard.
pub(crate) fn framed(caption: &str, class: &str, inside: impl Into<Html>) -> Tag {
    let table = tag("table").class(class).with(tag("caption").text(caption)).with(inside);
    tag("div")
        .class("frame")
        .attr("role", "region")
        .attr("aria-label", caption)
        .attr("tabindex", 0)
        .with(table)
}

/// The row of headings.
pub(crate) fn head(headings: impl IntoIterator<Item = Tag>) -> Tag {
    tag("thead").with(row().with_all(headings))
}

/// A body of rows.
pub(crate) fn body(rows: impl IntoIterator<Item = Tag>) -> Tag {
    tag("tbody").with_all(rows)
}

/// A row.
pub(crate) fn row() -> Tag {
    tag("tr")
}

/// The heading of a column.
pub(crate) fn heading(text: impl Display) -> Tag {
    tag("th").attr("scope", "col").text(text)
}

/// The heading of a column of numbers.
pub(crate) fn number_heading(text: impl Display) -> Tag {
    heading(text).class("number")
}

/// The heading of a row.
pub(crate) fn row_heading() -> Tag {
    tag("th").attr("scope", "row")
}

/// A cell.
pub(crate) fn cell() -> Tag {
    tag("td")
}

/// A cell with a number.
pub(crate) fn number(text: impl Display) -> Tag {
    cell().class("number").text(text)
}

/// A table of texts whose first column heads the rows; columns from `numbers_from` on hold numbers.
pub(crate) fn plain_table<const N: usize>(
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

/// Escapes text for elements, quoted attributes and SVG; control characters are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(letter),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Void elements: no content and no closing tag.
const VOID: [&str; 4] = ["br", "col", "input", "meta"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_markup_is_text() {
        let html: Html =
            tag("td").attr("title", "\" onclick='x'").text("</td><script>&\u{0}").into();
        assert_eq!(
            html.as_str(),
            "<td title=\"&quot; onclick=&#39;x&#39;\">&lt;/td&gt;&lt;script&gt;&amp;\u{fffd}</td>"
        );
    }

    #[test]
    fn classes_are_one_attribute() {
        let html: Html = tag("td").class("number").attr("title", "t").class("ratio").into();
        assert_eq!(html.as_str(), "<td title=\"t\" class=\"number ratio\"></td>");
    }

    #[test]
    fn parts_stand_in_their_order_and_void_elements_stay_open() {
        let list = tag("ul").with_all(["a", "b"].map(|item| tag("li").text(item)));
        let html = Html::from(list).and(tag("br")).and(None::<Tag>);
        assert_eq!(html.as_str(), "<ul><li>a</li><li>b</li></ul><br>");
    }
}
