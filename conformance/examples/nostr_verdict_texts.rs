//! Prints the events of the table of verdicts in `docs/formats/nostr/json.md`, one a line after the name of its row and a tab:
//! input for the other implementations in the table.

#![forbid(unsafe_code)]

#[path = "../tests/nostr/verdict_texts.rs"]
mod verdict_texts;

fn main() {
    for (row, texts) in verdict_texts::rows() {
        texts.iter().for_each(|text| println!("{row}\t{text}"));
    }
}
