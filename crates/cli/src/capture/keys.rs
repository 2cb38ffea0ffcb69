//! Which keys have the accounts of these frames?

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use wireproof::atproto::syntax::DidBuf;
use wireproof::crypto::PublicKey;
use wireproof::net::identity::Resolver;

use super::signed::Opener;
use crate::progress::ProgressLine;

/// The keys of accounts.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    /// By DID.
    pub(super) known: BTreeMap<String, PublicKey>,
    /// How many accounts have none that is to be had.
    pub(super) unknown: usize,
}

/// Looks up the keys of all accounts of the frames, some at once.
pub(super) async fn of_accounts(
    frames: &[Bytes],
    resolver: &Resolver,
    line: &mut ProgressLine,
) -> Keys {
    let mut opener = Opener::new();
    let dids: BTreeSet<String> = frames.iter().filter_map(|frame| opener.account(frame)).collect();
    let total = dids.len() as u64;
    let lookups = dids.into_iter().map(|did| async {
        let key = key(resolver, &did).await;
        (did, key)
    });
    let mut found = stream::iter(lookups).buffer_unordered(AT_ONCE);
    let (mut keys, mut done) = (Keys::default(), 0);
    while let Some((did, key)) = found.next().await {
        done += 1;
        line.at("looking up keys".to_owned(), done, total);
        match key {
            Some(key) => drop(keys.known.insert(did, key)),
            None => keys.unknown += 1,
        }
    }
    keys
}

async fn key(resolver: &Resolver, did: &str) -> Option<PublicKey> {
    let did: DidBuf = did.parse().ok()?;
    resolver.account(did.as_did()).await.ok()?.key.clone()
}

/// The resolver itself goes easy on each host.
const AT_ONCE: usize = 32;
