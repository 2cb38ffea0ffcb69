//! Follows the relay: every commit is verified, and its records are stored before it is acknowledged.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bench::Plan;
use net::firehose::{
    Firehose, Journal, JournalError, Options, ResolverKeys, RunSummary, StartFrom, StopSignal,
};
use store::Store;
use tokio::runtime::Runtime;
use verify::sync::AccountState;

use crate::Failure;
use crate::network::{Network, RELAY};
use crate::record_writer::RecordWriter;
use crate::records::Records;

/// Follows the relay from its oldest event, and compares the stored records with the network.
pub(crate) fn follow(network: &Network, out: &mut impl Write) -> Result<(), Failure> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join("records.sqlite");
    let stop = StopSignal::new();
    let writer = RecordWriter::new(Records::create(&file)?, stop.clone());
    let since = Instant::now();
    let summary = Runtime::new()?.block_on(run(network, &folder, writer.clone(), stop))?;
    let seconds = since.elapsed().as_secs_f64();
    let (records, commits) = writer.finish()?;
    if commits != summary.delivered {
        return Err(
            format!("{commits} of {} events are verified commits", summary.delivered).into()
        );
    }
    writeln!(
        out,
        "   {commits} commits verified and stored, {:.0} a second: every hash and signature, the operations against the\n   \
         signed tree, the chain of each account",
        commits as f64 / seconds
    )?;
    let found = records.cids()?;
    if found.is_empty() {
        return Err("no record is stored".into());
    }
    check(network, &found)?;
    writeln!(
        out,
        "   {}: {} records, the newest version of each that changed, as in the network",
        file.display(),
        found.len()
    )?;
    Ok(())
}

/// `target/demo` of the clone.
fn folder() -> PathBuf {
    Plan::default().work_dir.with_file_name("demo")
}

async fn run(
    network: &Network,
    folder: &Path,
    writer: RecordWriter,
    stop: StopSignal,
) -> Result<RunSummary, Failure> {
    let state = folder.join("state");
    if state.exists() {
        fs::remove_dir_all(&state)?;
    }
    fs::create_dir_all(&state)?;
    let store = Store::open(&state.join("state.sqlite"), store::Options::default())?;
    let keys = Arc::new(ResolverKeys::new(network.resolver.clone()));
    let mut options = Options::new(vec![network.relay()?], keys);
    options.feed.start = StartFrom::Oldest;
    options.max_events = Some(network.simulation.sent_count(RELAY));
    let states: Result<Vec<_>, _> = (0..options.workers).map(|_| store.chain_state()).collect();
    let mut states = states?;
    let firehose = Firehose::new(&network.http, options);
    let state_of_worker = move |_| states.pop().expect("one for each worker");
    Ok(firehose.run(writer, StateJournal(store), state_of_worker, stop).await?)
}

/// Cursors and account states in the file of `wireproof follow`.
struct StateJournal(Store);

impl Journal for StateJournal {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        self.0.cursor(stream).map_err(JournalError::new)
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        self.0.checkpoint(cursors, accounts).map_err(JournalError::new)
    }
}

/// Checks that every stored record is the newest one of its account.
fn check(network: &Network, found: &BTreeMap<(String, String), String>) -> Result<(), Failure> {
    for expected in network.simulation.expected_accounts() {
        let did = &expected.account.did;
        let stored =
            found.range((did.clone(), String::new())..).take_while(|((of, _), _)| of == did);
        for ((_, path), cid) in stored {
            let newest = expected.records.get(path).map(ToString::to_string);
            if newest.as_ref() != Some(cid) {
                return Err(format!("{did}/{path}: stored {cid}, expected {newest:?}").into());
            }
        }
    }
    Ok(())
}
