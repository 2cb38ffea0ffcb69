//! The verdicts that differ from other implementations' on purpose are the ones that the page on the format lists.

use bumpalo::Bump;
use nostr::Limits;
use nostr_formats::Format;

use crate::verdict_texts;

const PAGE: &str = include_str!("../../../docs/formats/nostr/json.md");

/// The first two columns of the table: the event, and our verdict.
fn table() -> Vec<(&'static str, &'static str)> {
    let (_, section) = PAGE.split_once("## Verdicts that differ").expect("the section");
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = |row: &'static str| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        (cells.next().expect("an event"), cells.next().expect("a verdict"))
    };
    rows.map(cells).collect()
}

/// The word of the table.
fn verdict(text: &str) -> &'static str {
    let arena = Bump::new();
    match Format::Json.decode(text.as_bytes(), &arena, &Limits::default()) {
        Err(_) => "rejected",
        Ok(event) if event.verify().is_ok() => "valid",
        Ok(_) => "invalid",
    }
}

#[test]
fn our_verdict_on_each_event_of_the_table_is_the_listed_one() {
    let (table, rows) = (table(), verdict_texts::rows());
    let names: Vec<&str> = table.iter().map(|(event, _)| *event).collect();
    assert_eq!(names, rows.iter().map(|(event, _)| *event).collect::<Vec<_>>());
    for ((event, expected), (_, texts)) in table.iter().zip(&rows) {
        for (field, text) in texts {
            assert_eq!(verdict(text), *expected, "{event}: {field}: {text}");
        }
    }
}

#[test]
fn the_same_event_without_its_oddity_is_valid_and_with_another_content_invalid() {
    // The event begins again after the first occurrence of a field that is there twice.
    let rows = verdict_texts::rows();
    let (event, texts) = rows.last().expect("rows");
    assert_eq!(*event, "a field twice");
    for (_, text) in texts {
        let at = text.rfind("\"id\":").expect("the event after the field that is there twice");
        let once = format!("{{{}", &text[at..]);
        assert_eq!(verdict(&once), "valid", "{once}");
        let other = once.replace("\"content\":\"gm\"", "\"content\":\"gn\"");
        assert_eq!((verdict(&other), other == once), ("invalid", false), "{other}");
    }
}
