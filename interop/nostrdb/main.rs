//! Stores events in a database of nostrdb: `store-events FOLDER` reads a line of JSON each from standard input, waits until no more are
//! stored, and prints how many are.

use std::error::Error;
use std::io::{BufRead, stdin};
use std::time::Duration;

use nostrdb::{Config, Filter, Ndb, Transaction};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: store-events FOLDER")?;
    let database = Ndb::new(&folder, &Config::new().set_mapsize(1 << 30))?;
    for line in stdin().lock().lines() {
        // An event of a relay, as nostrdb takes it; what is none is left out.
        let _ = database.process_event(&format!("[\"EVENT\",\"s\",{}]", line?));
    }
    let (mut stored, mut unchanged) = (0, 0);
    while unchanged < 20 {
        std::thread::sleep(Duration::from_millis(100));
        let count = count(&database)?;
        unchanged = if count == stored { unchanged + 1 } else { 0 };
        stored = count;
    }
    println!("{stored}");
    Ok(())
}

fn count(database: &Ndb) -> Result<usize, Box<dyn Error>> {
    let everything = Filter::new().since(0).build();
    Ok(database.query(&Transaction::new(database)?, &[everything], MAX_EVENTS)?.len())
}

const MAX_EVENTS: i32 = 100_000;
