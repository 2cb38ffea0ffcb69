//! The pages on the formats have the tables that the codecs use.

use nostr_formats::wireproof::words::{NAMES, STRINGS};

const WIREPROOF: &str = include_str!("../../../docs/formats/nostr/wireproof.md");

#[test]
fn the_page_on_wireproof_has_the_tables_of_names_and_strings() {
    assert_eq!(table("Names"), NAMES);
    assert_eq!(table("Strings"), STRINGS);
}

/// The words of a table on the page, in the order of their numbers.
fn table(title: &str) -> Vec<&'static str> {
    let (_, section) = WIREPROOF.split_once(&format!("\n## {title}\n")).expect("the section");
    let words = section.split("```").nth(1).expect("a block");
    words.strip_prefix("text").expect("marked as text").split_whitespace().collect()
}
