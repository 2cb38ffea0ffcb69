//! SIGHUP: the lists of accounts of `--dids @FILE` and `--did-file` are read again.
//!
//! Events of added accounts are selected from then on, events of removed accounts no longer. A list that cannot be
//! read, or has no account, changes nothing.

use std::convert::Infallible;

use net::identity::Resolver;

use super::handles;
use super::selection::Selection;
use super::status::Status;
use crate::interrupt;

/// Reads the lists again at every SIGHUP, forever. `changed` is called with the added and the removed accounts when
/// the selection has changed.
pub(super) async fn on_hangup(
    dids: &[String],
    selection: &Selection,
    resolver: &Resolver,
    status: &Status,
    mut changed: impl FnMut(Vec<String>, Vec<String>),
) -> Infallible {
    let Some(mut hangups) = interrupt::hangups() else { return std::future::pending().await };
    loop {
        hangups.next().await;
        if dids.iter().any(|text| text == "@-") {
            status.print_warning("SIGHUP: the accounts stay as they were: standard input was read");
            continue;
        }
        if !dids.iter().any(|text| text.starts_with('@')) {
            status.print("SIGHUP: --dids names no file, so nothing is read again");
            continue;
        }
        match handles::selected(dids, resolver).await.map(Option::unwrap_or_default) {
            Ok(accounts) => {
                let known = selection.dids.snapshot();
                selection.replace_accounts(accounts);
                let selected = selection.dids.snapshot();
                let (count, before) = (selected.len(), known.len());
                changed(
                    selected.difference(&known).cloned().collect(),
                    known.difference(&selected).cloned().collect(),
                );
                status.print(&format!("SIGHUP: {count} accounts are selected, {before} were"));
            }
            Err(failure) => {
                let why = failure.message().unwrap_or_default();
                status.print_warning(&format!("SIGHUP: the accounts stay as they were: {why}"));
            }
        }
    }
}
