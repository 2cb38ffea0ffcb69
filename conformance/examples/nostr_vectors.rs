//! Prints the file `docs/formats/nostr/vectors.json`: events, their encodings in every format, and bytes that a decoder refuses.

#![forbid(unsafe_code)]

#[path = "../tests/nostr/vector_file.rs"]
mod vector_file;
#[path = "../tests/nostr/vector_refusals.rs"]
mod vector_refusals;

fn main() {
    print!("{}", vector_file::text());
}
