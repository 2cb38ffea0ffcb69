//! Renders the Markdown of the benchmark's documents: headings, paragraphs, lists, tables, code blocks, and inline code,
//! strong text and links, whose text is kept.

use crate::html::{self, Html, Tag, tag};

/// The text as HTML. Its headings begin at the third level; its title is left out, as the page has one.
pub(crate) fn to_html(text: &str) -> Html {
    let lines: Vec<&str> = text.lines().collect();
    Html::all(blocks(&lines).into_iter().map(|block| self::block(&block)))
}

/// A run of lines that belong together.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    Heading(usize, String),
    Paragraph(String),
    List { is_numbered: bool, items: Vec<String> },
    Table(Vec<Vec<String>>),
    Code(String),
}

fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            blocks.push(Block::Paragraph(String::new()));
        } else if line.starts_with("```") {
            let code: Vec<&str> =
                lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            blocks.push(Block::Code(code.join("\n")));
        } else if let Some((marks, title)) =
            line.split_once(' ').filter(|(marks, _)| is_heading(marks))
        {
            blocks.push(Block::Heading(marks.len(), title.to_owned()));
        } else if line.starts_with('|') {
            add_row(&mut blocks, line);
        } else if let Some((is_numbered, item)) = item(line) {
            match blocks.last_mut() {
                Some(Block::List { items, .. }) => items.push(item.to_owned()),
                _ => blocks.push(Block::List { is_numbered, items: vec![item.to_owned()] }),
            }
        } else {
            add_line(&mut blocks, line.trim());
        }
    }
    blocks.retain(|block| *block != Block::Paragraph(String::new()));
    blocks
}

fn is_heading(marks: &str) -> bool {
    !marks.is_empty() && marks.bytes().all(|mark| mark == b'#')
}

fn item(line: &str) -> Option<(bool, &str)> {
    if let Some(item) = line.strip_prefix("- ") {
        return Some((false, item));
    }
    let (number, item) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some((true, item))
}

fn add_row(blocks: &mut Vec<Block>, line: &str) {
    let cells: Vec<String> =
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let is_rule = cells.iter().all(|cell| cell.bytes().all(|byte| b"-: ".contains(&byte)));
    match blocks.last_mut() {
        Some(Block::Table(_)) if is_rule => {}
        Some(Block::Table(rows)) => rows.push(cells),
        _ => blocks.push(Block::Table(vec![cells])),
    }
}

/// Adds a line that continues the previous block, or begins a paragraph.
fn add_line(blocks: &mut Vec<Block>, line: &str) {
    let before = match blocks.last_mut() {
        Some(Block::Paragraph(text)) => text,
        Some(Block::List { items, .. }) => items.last_mut().expect("a list has an item"),
        _ => return blocks.push(Block::Paragraph(line.to_owned())),
    };
    if !before.is_empty() {
        before.push(' ');
    }
    before.push_str(line);
}

fn block(block: &Block) -> Html {
    match block {
        Block::Heading(1, _) => Html::default(),
        Block::Heading(2, title) => tag("h3").with(line(title)).into(),
        Block::Heading(_, title) => tag("h4").with(line(title)).into(),
        Block::Paragraph(text) => tag("p").with(line(text)).into(),
        Block::List { is_numbered, items } => {
            let list = tag(if *is_numbered { "ol" } else { "ul" });
            list.with_all(items.iter().map(|item| tag("li").with(line(item)))).into()
        }
        Block::Code(code) => {
            let code = tag("code").text(code);
            tag("pre").attr("tabindex", 0).with(code).into()
        }
        Block::Table(rows) => table_of(rows),
    }
}

fn table_of(rows: &[Vec<String>]) -> Html {
    let Some((first, rows)) = rows.split_first() else { return Html::default() };
    let caption: Vec<&str> =
        first.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
    let headings = html::head(first.iter().map(|cell| html::heading("").with(line(cell))));
    let lines = rows
        .iter()
        .map(|cells| html::row().with_all(cells.iter().map(|cell| html::cell().with(line(cell)))));
    let caption = caption.join(", ").replace(['`', '*'], "");
    html::framed(&caption, "plain quiet", Html::from(headings).and(html::body(lines))).into()
}

/// Code, strong and links in a line.
fn line(text: &str) -> Html {
    let mut html = Html::default();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, marked) = rest.split_at(at);
        html = html.and(Html::text(before));
        let (part, after) = marked_part(marked);
        html = html.and(part);
        rest = after;
    }
    html.and(Html::text(rest))
}

/// The element that a mark begins, or the mark itself if it is not closed; and the rest of the text.
fn marked_part(marked: &str) -> (Html, &str) {
    let within = |open: &str, close: &str| marked.strip_prefix(open)?.split_once(close);
    let element = |name: &'static str, text: &str| -> Tag { tag(name).text(text) };
    if let Some((code, after)) = within("`", "`") {
        return (element("code", code).into(), after);
    }
    if let Some((strong, after)) = within("**", "**") {
        return (tag("strong").with(line(strong)).into(), after);
    }
    if let Some((text, after)) =
        within("[", "](").and_then(|(text, after)| Some((text, after.split_once(')')?.1)))
    {
        return (line(text), after);
    }
    let (mark, after) = marked.split_at(1);
    (Html::text(mark), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_documents_use_is_shown_and_nothing_else_becomes_markup() {
        let text = "# Title\n\nA *b* `c<d` and **e `f`** [g](h.md).\nMore.\n\n- one\n  and on\n- two\n\n| a | b |\n|---|--:|\n| 1 | <2> |\n\n```sh\nx < y\n```\n";
        let html = to_html(text);
        let html = html.as_str();
        for part in [
            "<p>A *b* <code>c&lt;d</code> and <strong>e `f`</strong> g. More.</p>"
                .replace("`f`", "<code>f</code>"),
            "<ul><li>one and on</li><li>two</li></ul>".to_owned(),
            "&lt;2&gt;</td>".to_owned(),
            "<code>x &lt; y</code></pre>".to_owned(),
        ] {
            assert!(html.contains(&part), "{part} is not in {html}");
        }
        assert!(!html.contains("Title"));
    }

    #[test]
    fn the_documents_of_the_benchmark_leave_no_mark_behind() {
        for text in [results::METHOD, results::BIAS] {
            let html = to_html(text);
            let html = html.as_str();
            assert!(
                html.contains("<h3>") && !html.contains("**") && !html.contains("]("),
                "{html}"
            );
        }
    }
}
