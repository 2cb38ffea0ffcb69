//! Where does a reader find how a run works, and in whose favour it may lean? In the page itself.

use crate::html::{Html, Tag, tag};
use crate::markdown;

pub(super) fn of() -> Html {
    let method = document("method", "How a run works", bench::METHOD);
    let bias = document("bias", "In whose favour it may lean", bench::BIAS);
    Html::from(method).and(bias)
}

fn document(id: &'static str, title: &str, text: &str) -> Tag {
    let heading = tag("h2").attr("id", format!("{id}-title")).text(title);
    let summary = tag("summary").text(format!("Read bench/{}.md", id.to_uppercase()));
    tag("section")
        .class("document")
        .attr("id", id)
        .attr("aria-labelledby", format!("{id}-title"))
        .with(heading)
        .with(tag("details").with(summary).with(markdown::html(text)))
}
