//! Runs the relay of rust-nostr on 127.0.0.1 with the events of a file of JSON lines: `nostr-relay PORT FILE`, and one of these
//! words after them.
//!
//! | word | |
//! |---|---|
//! | `auth` | it requires authentication (NIP-42) |
//! | `busy` | it allows two subscriptions of a connection, and refuses the third request |

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use nostr_relay_builder::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, file, words @ ..] = &*arguments else { return Err("PORT FILE [auth|busy]".into()) };
    let has_word = |word: &str| words.iter().any(|argument| argument == word);
    let options = MemoryDatabaseOptions { events: true, max_events: None };
    let database = MemoryDatabase::with_opts(options);
    for line in std::fs::read_to_string(file)?.lines() {
        database.save_event(&Event::from_json(line)?).await?;
    }
    let max_reqs = if has_word("busy") { 2 } else { 500 };
    let rate_limit = RateLimit { max_reqs, notes_per_minute: 100_000 };
    let mut builder =
        RelayBuilder::default().port(port.parse()?).database(database).rate_limit(rate_limit);
    if has_word("auth") {
        builder = builder.nip42(RelayBuilderNip42 { mode: RelayBuilderNip42Mode::Both });
    }
    if has_word("busy") {
        builder = builder.query_policy(RefuseThird::default());
    }
    let relay = LocalRelay::new(builder);
    relay.run().await?;
    std::future::pending::<()>().await;
    Ok(())
}

/// Refuses the third request.
#[derive(Debug, Default)]
struct RefuseThird {
    requests: AtomicUsize,
}

impl QueryPolicy for RefuseThird {
    fn admit_query<'a>(
        &'a self,
        _: &'a Filter,
        _: &'a SocketAddr,
    ) -> BoxedFuture<'a, PolicyResult> {
        let is_third = self.requests.fetch_add(1, Ordering::Relaxed) == 2;
        Box::pin(async move {
            if is_third { PolicyResult::Reject("try later".to_owned()) } else { PolicyResult::Accept }
        })
    }
}
