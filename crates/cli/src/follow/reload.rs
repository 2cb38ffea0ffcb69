//! SIGHUP: the lists of accounts of `--dids @FILE` are read again.
//!
//! Events of added accounts are selected from then on, those of removed ones no longer. A list that cannot be read, or
//! has no account, changes nothing.

use std::convert::Infallible;

use super::selection::{Selection, read_accounts};
use super::status::Status;
use crate::interrupt;

/// Reads the lists again at each SIGHUP, forever. `changed` is called when the selection has changed.
pub(super) async fn on_hangup(
    dids: &[String],
    selection: &Selection,
    status: &Status,
    mut changed: impl FnMut(),
) -> Infallible {
    let Some(mut hangups) = interrupt::hangups() else { return std::future::pending().await };
    loop {
        hangups.next().await;
        if !dids.iter().any(|text| text.starts_with('@')) {
            status.print("SIGHUP: --dids names no file, so nothing is read again");
            continue;
        }
        match read_accounts(dids) {
            Ok(accounts) => {
                let before = selection.dids.len();
                selection.replace_accounts(accounts);
                let count = selection.dids.len();
                changed();
                status.print(&format!("SIGHUP: {count} accounts are selected, {before} were"));
            }
            Err(failure) => {
                let why = failure.message().unwrap_or_default();
                status.print_warning(&format!("SIGHUP: the accounts stay as they were: {why}"));
            }
        }
    }
}
