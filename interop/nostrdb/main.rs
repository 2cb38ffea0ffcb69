//! Stores events in a database of nostrdb: `store-events FOLDER` prints `open`, reads one line of JSON per event from
//! standard input, waits until no more are stored, and prints the ids that a query finds.

use std::error::Error;
use std::io::{BufRead, stdin};
use std::time::Duration;

use nostrdb::{Config, Filter, Ndb, Transaction};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: store-events FOLDER")?;
    let database = Ndb::new(&folder, &Config::new().set_mapsize(1 << 30))?;
    println!("open");
    for line in stdin().lock().lines() {
        // An event of a relay, as nostrdb takes it; other lines are left out.
        let _ = database.process_event(&format!("[\"EVENT\",\"s\",{}]", line?));
    }
    let (mut stored, mut unchanged) = (Vec::new(), 0);
    while unchanged < 20 {
        std::thread::sleep(Duration::from_millis(100));
        let found = ids(&database)?;
        unchanged = if found.len() == stored.len() { unchanged + 1 } else { 0 };
        stored = found;
    }
    stored.iter().for_each(|id| println!("{id}"));
    Ok(())
}

fn ids(database: &Ndb) -> Result<Vec<String>, Box<dyn Error>> {
    let everything = Filter::new().since(0).build();
    let txn = Transaction::new(database)?;
    let found = database.query(&txn, &[everything], MAX_EVENTS)?;
    let id = |id: &[u8; 32]| id.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(found.iter().map(|result| id(result.note.id())).collect())
}

const MAX_EVENTS: i32 = 100_000;
