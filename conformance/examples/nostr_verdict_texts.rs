//! Prints the events of the table of verdicts in `docs/formats/nostr/json.md`, one a line: the row, the field that is unusual, and the
//! text, separated by tabs. The other implementations in the table read it.

#![forbid(unsafe_code)]

#[path = "../tests/nostr/verdict_texts.rs"]
mod verdict_texts;

fn main() {
    for (row, texts) in verdict_texts::rows() {
        texts.iter().for_each(|(field, text)| println!("{row}\t{field}\t{text}"));
    }
}
