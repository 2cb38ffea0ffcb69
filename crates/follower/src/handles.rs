//! Accounts by the names that people have: a handle is resolved to the account that claims it.

use std::collections::HashSet;
use std::sync::Arc;

use net::identity::Resolver;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Level;

use super::selection::{self, Names};
use crate::account::claimant;
use crate::failure::Failure;
use crate::messages;
use crate::names;

/// The accounts that `--dids` and its files name; `None` if it names none, which selects all.
pub(super) async fn selected(
    texts: &[String],
    resolver: &Resolver,
) -> Result<Option<HashSet<String>>, Failure> {
    if texts.is_empty() {
        return Ok(None);
    }
    resolve(selection::read_names(texts)?, resolver).await.map(Some)
}

/// The accounts that a request names.
pub(super) async fn of_request(
    texts: &[String],
    resolver: &Resolver,
) -> Result<Vec<String>, Failure> {
    let mut names = Names::default();
    texts.iter().try_for_each(|text| names.add(text, "dids"))?;
    resolve(names, resolver).await.map(|dids| dids.into_iter().collect())
}

/// The accounts, with a DID in place of every handle.
async fn resolve(names: Names, resolver: &Resolver) -> Result<HashSet<String>, Failure> {
    let Names { mut dids, handles } = names;
    let (lookups, mut running) = (Arc::new(Semaphore::new(LOOKUPS)), JoinSet::new());
    for (handle, place) in handles {
        let (resolver, lookups) = (resolver.clone(), lookups.clone());
        running.spawn(async move {
            let _permit = lookups.acquire_owned().await;
            let did = claimant(&resolver, names::account(&handle)?).await;
            let did = did.map_err(|failure| of_option(&place, &handle, failure))?;
            if place == selection::OPTION {
                messages::print(Level::INFO, &format!("{place} {handle}: {did}"));
            }
            Ok::<_, Failure>(did.to_string())
        });
    }
    while let Some(found) = running.join_next().await {
        dids.insert(found.map_err(|error| Failure::Local(format!("a lookup: {error}")))??);
    }
    Ok(dids)
}

/// A handle that leads to no account is an error of usage.
fn of_option(place: &str, handle: &str, failure: Failure) -> Failure {
    let separator = if place == selection::OPTION { " " } else { ": " };
    match failure.after(&format!("{place}{separator}{handle}: ")) {
        Failure::Refused(message) => Failure::Usage(message),
        other => other,
    }
}

/// Concurrent lookups of handles.
const LOOKUPS: usize = 16;
