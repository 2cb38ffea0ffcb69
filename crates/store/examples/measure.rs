//! Measures the time of a checkpoint, of reading accounts from the file, and of opening it.
//!
//! `cargo run --release -p wireproof-store --example measure [FOLDER]`

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;
use verify::sync::{AccountState, ChainState, Head};
use wireproof_store::{Options, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join("wireproof-measure.sqlite");
    let mut options = Options::default();
    options.cached_accounts = 1;
    let store = Store::open(&path, options)?;
    for accounts in [0, 100, 1_000, 10_000] {
        let took = (0..ROUNDS).map(|round| checkpoint(&store, accounts, round));
        let mut took: Vec<_> = took.collect::<Result<_, _>>()?;
        took.sort();
        println!("checkpoint of {accounts:5} accounts: {:?} (median)", took[took.len() / 2]);
    }
    let mut state = store.chain_state()?;
    for batch in [1, 128] {
        let dids: Vec<String> = (0..batch).map(|number| did(number * 7)).collect();
        let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
        let mut accounts = vec![AccountState::UNKNOWN; dids.len()];
        let start = Instant::now();
        for _ in 0..ROUNDS {
            state.load_many(&dids, &mut accounts)?;
        }
        let each = start.elapsed() / (ROUNDS * batch) as u32;
        println!("account from the file, {batch:3} at once: {each:?} each");
    }
    drop((state, store));
    for accounts in [200_000, 600_000] {
        open(&path, accounts)?;
    }
    ["", ".lock"]
        .iter()
        .try_for_each(|suffix| std::fs::remove_file(format!("{}{suffix}", path.display())))?;
    Ok(())
}

/// Opens a file with this many accounts.
fn open(path: &Path, accounts: u64) -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(path, Options::default())?;
    for start in (0..accounts).step_by(50_000) {
        let handled: Vec<_> = (start..start + 50_000).map(|n| (did(n), account(n))).collect();
        store.checkpoint(&[("wss://relay.example.com", start)], &handled)?;
    }
    drop(store);
    let mib = std::fs::metadata(path)?.len() >> 20;
    let start = Instant::now();
    let store = Store::open(path, Options::default())?;
    println!("opening {accounts} accounts, {mib} MiB: {:?}", start.elapsed());
    drop(store);
    Ok(())
}

fn checkpoint(
    store: &Store,
    accounts: u64,
    round: u64,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let handled: Vec<_> = (0..accounts).map(|number| (did(number), account(round))).collect();
    let start = Instant::now();
    store.checkpoint(&[("wss://relay.example.com", round)], &handled)?;
    Ok(start.elapsed())
}

/// DIDs in random order, as in a stream.
fn did(number: u64) -> String {
    let cid = Cid::of(Codec::Raw, &number.to_be_bytes()).to_string();
    format!("did:plc:{}", &cid[cid.len() - 24..])
}

fn account(round: u64) -> AccountState {
    let cid = Cid::of(Codec::DagCbor, &round.to_be_bytes());
    let head = Head { rev: Tid::from_u64(round), data: cid, commit: cid };
    AccountState { head: Some(head), ..AccountState::UNKNOWN }
}

const ROUNDS: u64 = 101;
