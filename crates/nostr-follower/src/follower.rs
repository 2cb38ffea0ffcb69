//! The follower of relays as a library call.

use std::path::PathBuf;
use std::sync::Arc;

use ::follower::{LineWriter, Status, output_failure};
use net::firehose::StopSignal;
use net::hosts::parse_host_url;
use nostr::Filter;
use nostr::negentropy::Items;
use nostr_relay::Authenticator;
use program::failure::Failure;
use program::interrupt::Shutdown;

use crate::deliver::deliver;
use crate::options::{LineForm, NostrFollowOptions};
use crate::recipient::Recipient;
use crate::run::Run;
use crate::taker::Counts;

/// Follows relays: stored events first, then new ones, every valid event once, resumed after a crash.
///
/// No option is read from the environment, and nothing is printed: messages for an operator are events of `tracing` with the
/// target `wireproof::follower`.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use wireproof::nostr::Filter;
/// use wireproof::nostr_follower::NostrFollower;
///
/// let notes = Filter { kinds: vec![1], ..Filter::default() };
/// let follower = NostrFollower::builder()
///     .relay("wss://relay.example.com")?
///     .filter(notes)
///     .state("state")
///     .to("sqlite:notes.db")?
///     .build()?;
/// let counts = follower.run().await?;
/// println!("{} events, {} refused", counts.valid, counts.refused);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NostrFollower {
    options: NostrFollowOptions,
    stop: StopSignal,
}

impl NostrFollower {
    /// A follower with these options.
    ///
    /// # Errors
    /// If an option does not fit the others.
    pub fn new(options: NostrFollowOptions) -> Result<Self, Failure> {
        options.check()?;
        Ok(Self { options, stop: StopSignal::new() })
    }

    /// The options of a follower, all at their defaults.
    pub fn builder() -> NostrFollowerBuilder {
        NostrFollowerBuilder { options: NostrFollowOptions::new(Vec::new()) }
    }

    /// Ends the run: events in flight are finished, and the times up to which relays were followed are stored.
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Delivers to the destinations until a stop is requested, or the relays have sent all that is wanted.
    ///
    /// # Errors
    /// If there is no destination, the state or a destination cannot be opened, no relay can be followed, or with
    /// [`stored_only`](NostrFollowerBuilder::stored_only) one of them cannot.
    pub async fn run(self) -> Result<Counts, Failure> {
        if self.options.to.is_empty() {
            return Err(Failure::Usage("no destination: call `to`, or `run_into`".to_owned()));
        }
        let run = Run::open(&self.options, Status::hidden(), self.stop)?;
        let ended = deliver(&run).await?;
        result(run.finish(ended)?)
    }

    /// Hands every valid event to `handler` as JSON, in the order of their arrival. It is acknowledged when the handler returns.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use wireproof::nostr_follower::NostrFollower;
    ///
    /// let follower = NostrFollower::builder().relay("wss://relay.example.com")?.stored_only().build()?;
    /// follower.run_into(|event| println!("{event}")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there are destinations, the state cannot be opened, or the relays cannot be followed.
    pub async fn run_into(
        self,
        handler: impl FnMut(&str) + Send + 'static,
    ) -> Result<Counts, Failure> {
        if !self.options.to.is_empty() {
            return Err(Failure::Usage("destinations and a handler: leave out one".to_owned()));
        }
        let run = Run::open(&self.options, Status::hidden(), self.stop)?;
        let ended = run.follow(Recipient::Handler(Box::new(handler)), run.stop.clone()).await;
        result(run.finish(ended)?)
    }

    /// Runs as a command: prints lines to standard output if there is no destination, and messages to standard error; SIGINT and
    /// SIGTERM end it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_as_command(self, status: Status) -> Result<(), Failure> {
        let run = Run::open(&self.options, status, self.stop)?;
        let limit = self.options.stop_limit;
        let announcing = run.status.clone();
        let shutdown =
            Shutdown::listen(run.stop.clone(), limit, move || announcing.announce_stop(limit))?;
        let ended =
            if self.options.to.is_empty() { print(&run).await } else { deliver(&run).await };
        let (_, failure) = run.finish(ended?)?;
        failure.map_or_else(|| shutdown.result(), Err)
    }
}

fn result((counts, failure): (Counts, Option<Failure>)) -> Result<Counts, Failure> {
    failure.map_or(Ok(counts), Err)
}

/// Prints the lines of a run to standard output.
async fn print(run: &Run<'_>) -> Result<crate::run::Ended, Failure> {
    let (lines, writer) = LineWriter::stdout(&run.stop)?;
    let ended = run.follow(Recipient::stdout(lines), run.stop.clone()).await;
    let written = writer.finish(run.options.stop_limit / 10 * 6).await;
    Ok(crate::run::Ended { output: written.map_err(output_failure), ..ended })
}

/// The options of a [`NostrFollower`].
#[derive(Debug)]
pub struct NostrFollowerBuilder {
    options: NostrFollowOptions,
}

impl NostrFollowerBuilder {
    /// Adds a relay; a bare name is one over TLS.
    ///
    /// # Errors
    /// If it is no URL.
    pub fn relay(mut self, url: &str) -> Result<Self, Failure> {
        let url = parse_host_url(url).map_err(|error| Failure::Usage(error.to_string()))?;
        self.options.relays.push(url);
        Ok(self)
    }

    /// The filter of the requests; events that do not match it are refused. Default: all events.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.options.filter = filter;
        self
    }

    /// Ends once every relay has sent its stored events, or has failed three times in a row.
    #[must_use]
    pub fn stored_only(mut self) -> Self {
        self.options.client.stored_only = true;
        self
    }

    /// Compares ids with every relay (NIP-77), and fetches only the events that are not among these.
    #[must_use]
    pub fn known(mut self, items: Items) -> Self {
        self.options.client.known = Some(Arc::new(items));
        self
    }

    /// The key that answers requests for authentication (NIP-42). Default: none is answered.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Authenticator) -> Self {
        self.options.client.authenticator = Some(authenticator);
        self
    }

    /// Ends after this number of events.
    #[must_use]
    pub fn events(mut self, count: u64) -> Self {
        self.options.events = Some(count.max(1));
        self
    }

    /// Folder for the times up to which relays were followed, and for the outbox. Default: none, which begins every run
    /// with all stored events.
    #[must_use]
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        self.options.outbox_folder = folder.join("outbox").join("nostr");
        self.options.checkpoints = Some(folder.join("nostr"));
        self
    }

    /// Adds a destination by its URI: `file:///FOLDER`, `sqlite:///FILE`, `postgres://…`, `https://…`, and with their features
    /// `kafka://…` and `nats://…`. It needs a [`state`](Self::state).
    ///
    /// # Errors
    /// If the URI is not valid, or its destination is not built in. The message does not repeat the URI, which may have a password.
    pub fn to(mut self, uri: &str) -> Result<Self, Failure> {
        let destination = uri.parse().map_err(|fault| Failure::Usage(format!("--to: {fault}")))?;
        self.options.to.push(destination);
        self.options.form = LineForm::Canonical;
        Ok(self)
    }

    /// Connects to this machine only, over plain HTTP too.
    #[must_use]
    pub fn development(mut self) -> Self {
        self.options.network.development = true;
        self
    }

    /// The follower. Nothing is opened before it runs.
    ///
    /// # Errors
    /// If an option does not fit the others.
    pub fn build(self) -> Result<NostrFollower, Failure> {
        if !self.options.to.is_empty() && self.options.checkpoints.is_none() {
            return Err(Failure::Usage("destinations need a state: call `state`".to_owned()));
        }
        NostrFollower::new(self.options)
    }
}
