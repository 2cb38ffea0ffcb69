//! How is HTML and SVG written so that no text becomes markup?
//!
//! By type: [`Html`] is made of tags that are named in this program and of texts and values that are
//! escaped on their way in. There is no other way to make one.

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
    /// All of its classes: an attribute may stand there once.
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

    /// A class more.
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

/// What is the same text in an element, in a quoted attribute and in SVG. What no document may hold is
/// replaced.
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

/// Elements that hold nothing and are not closed.
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
        let html: Html = tag("td").class("number").attr("role", "cell").class("ratio").into();
        assert_eq!(html.as_str(), "<td role=\"cell\" class=\"number ratio\"></td>");
    }

    #[test]
    fn parts_stand_in_their_order_and_void_elements_stay_open() {
        let list = tag("ul").with_all(["a", "b"].map(|item| tag("li").text(item)));
        let html = Html::from(list).and(tag("br")).and(None::<Tag>);
        assert_eq!(html.as_str(), "<ul><li>a</li><li>b</li></ul><br>");
    }
}
