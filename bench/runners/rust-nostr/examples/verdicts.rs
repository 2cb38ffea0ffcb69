//! Prints the verdict of `Event::from_json` and `verify` on every event of standard input. A line is the event's row in the table
//! of `docs/formats/nostr/json.md`, the name of a field, and the text, separated by tabs; so is the answer, with the verdict as its
//! third part.

use std::io::{self, BufRead as _};

use nostr::event::Event;

fn main() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (event, text) = line.rsplit_once('\t').ok_or_else(|| io::Error::other("no tab"))?;
        let verdict = match Event::from_json(text) {
            Err(_) => "rejected",
            Ok(event) if event.verify().is_ok() => "valid",
            Ok(_) => "invalid",
        };
        println!("{event}\t{verdict}");
    }
    Ok(())
}
