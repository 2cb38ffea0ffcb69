//! A follower as a library call: `wireproof follow` for a program without command-line arguments.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use delivery::{EventId, Sinks};
use net::firehose::{Ack, MetricsSnapshot, StopSignal};
use net::http::Url;
use program::arguments;

use super::args::FollowArgs;
use super::deliveries::Deliveries;
use super::destination::Destination;
use super::line::{EventLine, LineHeader, ResyncLines};
use super::lines_to_outbox::id_of;
use super::printer::LineRecipient;
use super::run::{Run, Setup};
use super::stats::micros;
use crate::failure::Failure;
use crate::stream::Start;

pub use super::verify_level::VerifyLevel;

/// Follows the stream of a relay or a PDS: every event verified, in order per account, resumed after a crash.
///
/// No option is read from the environment, nothing is printed, and no signal of the process is taken.
/// Messages for an operator are events of `tracing` with the target `wireproof::follower`. An error names options as the
/// command does: `--backfill` is [`backfill`](FollowerBuilder::backfill).
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use wireproof::follower::Follower;
///
/// let follower = Follower::builder()
///     .host("bsky.network")
///     .accounts(["did:plc:ewvi7nxzyoun6zhxrhs64oiz"])
///     .collections(["app.bsky.feed.post"])
///     .state("state")
///     .backfill()
///     .to("sqlite:posts.db")?
///     .build()?;
/// let stop = follower.stop_signal();
/// tokio::spawn(async move {
///     // Whatever ends your program: here a minute.
///     tokio::time::sleep(std::time::Duration::from_secs(60)).await;
///     stop.request();
/// });
/// let counts = follower.run().await?;
/// println!("{} events", counts.delivered);
/// # Ok(())
/// # }
/// ```
pub struct Follower {
    args: FollowArgs,
    stop: StopSignal,
}

impl Follower {
    /// The options of a follower, with the defaults of the command.
    pub fn builder() -> FollowerBuilder {
        FollowerBuilder { args: arguments::without_environment(), sinks: Sinks::built_in() }
    }

    /// Ends the run: events in flight are finished, and the cursor is stored. It can be requested before and during the run.
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Delivers to the destinations until a stop is requested or the number of [`events`](FollowerBuilder::events) is reached, and
    /// returns the counts of the run. Needs a Tokio runtime, on any number of threads; events are verified on threads of its own.
    ///
    /// # Errors
    /// If there is no destination, an option does not fit the others, the state or a destination cannot be opened, or the run
    /// fails.
    pub async fn run(self) -> Result<MetricsSnapshot, Failure> {
        if !self.args.delivery.uses_outbox() {
            return Err(Failure::Usage("no destination: call `to`, or `run_into`".to_owned()));
        }
        let setup = Setup::stopped_by(&self.args, Some(self.stop)).await?;
        let deliveries = Deliveries::open(&setup).await?;
        let outbox = deliveries.outbox().clone();
        let run = Run::new(setup, Some(outbox), deliveries.websocket_metrics())?;
        let metrics = run.metrics.clone();
        deliveries.run(run).await?;
        Ok(metrics.snapshot())
    }

    /// Hands the line of every event to `handler`, on the verifying threads, and returns the counts of the run. Lines
    /// of one account come in order, lines of different accounts in parallel.
    ///
    /// The next run begins before the first event that was not acknowledged. An acknowledgement that is dropped ends the run.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use wireproof::follower::Follower;
    ///
    /// let follower = Follower::builder().host("bsky.network").state("state").events(100).build()?;
    /// follower
    ///     .run_into(|line| {
    ///         println!("{}", line.text());
    ///         line.acknowledge();
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there are destinations, the state cannot be opened, or the run fails.
    pub async fn run_into(
        self,
        handler: impl Fn(FollowedLine<'_>) + Send + Sync + 'static,
    ) -> Result<MetricsSnapshot, Failure> {
        if self.args.delivery.uses_outbox() {
            return Err(Failure::Usage("destinations and a handler: leave out one".to_owned()));
        }
        let setup = Setup::stopped_by(&self.args, Some(self.stop)).await?;
        let run = Run::new(setup, None, None)?;
        let metrics = run.metrics.clone();
        run.follow_into(LinesToHandler(handler)).await.check("acknowledged by the handler")?;
        Ok(metrics.snapshot())
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("args", &self.args).finish_non_exhaustive()
    }
}

/// The options of a [`Follower`].
#[derive(Debug)]
pub struct FollowerBuilder {
    args: FollowArgs,
    sinks: Sinks,
}

impl FollowerBuilder {
    /// Adds a relay or a PDS; of several, the next one is used when one fails. Default: `bsky.network`.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.args.stream.host.push(host.into());
        self
    }

    /// Selects accounts: DIDs, or handles, which are resolved at the start; `@FILE` names a file with one DID per line.
    /// Default: all.
    #[must_use]
    pub fn accounts<T: Into<String>>(mut self, accounts: impl IntoIterator<Item = T>) -> Self {
        self.args.dids.extend(accounts.into_iter().map(Into::into));
        self
    }

    /// Selects collections: `app.bsky.feed.post`, or `app.bsky.graph.*` for a prefix. Default: all.
    #[must_use]
    pub fn collections<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.args.collections.extend(names.into_iter().map(Into::into));
        self
    }

    /// Folder for cursors, keys, account states and the outbox. Default: `wireproof` in `$XDG_STATE_HOME` or `~/.local/state`.
    #[must_use]
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        self.args.state = Some(folder.into());
        self
    }

    /// Where to start with a host that has no stored cursor. Default: [`Start::Live`].
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.args.cursor = start;
        self
    }

    /// Ignores the stored cursor, and starts here. Histories are fetched again, as events in between may be missed.
    #[must_use]
    pub fn restart(mut self, start: Start) -> Self {
        self.args.restart = Some(start);
        self
    }

    /// The level of proof for events. Default: [`VerifyLevel::Full`].
    #[must_use]
    pub fn verify(mut self, level: VerifyLevel) -> Self {
        self.args.verify_against = Some(level);
        self
    }

    /// Fetches and verifies the repository of an account whose chain is broken, as a run with destinations always does.
    #[must_use]
    pub fn resync(mut self) -> Self {
        self.args.resync = true;
        self
    }

    /// Delivers all records of the selected accounts before their new events. Without accounts, the first host lists those with
    /// records in the collections.
    #[must_use]
    pub fn backfill(mut self) -> Self {
        self.args.delivery.backfill = true;
        self
    }

    /// Delivers all records of all accounts of this server, before their new events.
    #[must_use]
    pub fn all_from(mut self, server: impl Into<String>) -> Self {
        self.args.delivery.all_from.push(server.into());
        self
    }

    /// Adds a destination by its URI: `file:///FOLDER`, `sqlite:///FILE`, `postgres://…`, `https://…`, `ws://ADDRESS:PORT`, and
    /// with their features `kafka://…` and `nats://…`.
    ///
    /// # Errors
    /// If the URI is not valid, or its destination is not built in. The message does not repeat the URI, which may have a password.
    pub fn to(mut self, uri: &str) -> Result<Self, Failure> {
        let destination = Destination::parse(uri, &self.sinks);
        let usage = |fault| Failure::Usage(format!("--to: {fault}"));
        self.args.delivery.to.push(destination.map_err(usage)?);
        Ok(self)
    }

    /// The sinks that the URIs of later calls of [`to`](Self::to) can name: `Sinks::built_in().with::<A>()` has one of yours, whose
    /// address type is `A`.
    #[must_use]
    pub fn sinks(mut self, sinks: Sinks) -> Self {
        self.sinks = sinks;
        self
    }

    /// File with the secret that signs webhooks: `whsec_` and base64, or 24 to 64 bytes of text.
    #[must_use]
    pub fn webhook_secret_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.args.delivery.stored.sinks.webhook_secret_file = Some(file.into());
        self
    }

    /// Delivers a flat line per operation, instead of one line with all operations of a commit.
    #[must_use]
    pub fn ops(mut self) -> Self {
        self.args.ops = true;
        self
    }

    /// Ends after the lines of this number of events.
    #[must_use]
    pub fn events(mut self, count: u64) -> Self {
        self.args.events = Some(count.max(1));
        self
    }

    /// Number of verifying threads. Default: one per core.
    #[must_use]
    pub fn workers(mut self, count: u16) -> Self {
        self.args.workers = Some(count.clamp(1, 1024));
        self
    }

    /// Serves Prometheus metrics at `/metrics` of this address, and `/health` and `/ready`.
    #[must_use]
    pub fn metrics(mut self, address: SocketAddr) -> Self {
        self.args.metrics = Some(address);
        self
    }

    /// The did:plc directory. Default: `https://plc.directory`.
    #[must_use]
    pub fn plc(mut self, directory: Url) -> Self {
        self.args.stream.network.plc = Some(directory);
        self
    }

    /// Connects to this machine only, over plain HTTP too; names under `.test` are on this machine, and `handles` is the port that
    /// serves them.
    #[must_use]
    pub fn development(mut self, handles: Option<u16>) -> Self {
        self.args.stream.network.development = true;
        self.args.stream.network.development_port = handles;
        self
    }

    /// The follower. Nothing is opened before it runs.
    ///
    /// # Errors
    /// If an option does not fit the others.
    pub fn build(self) -> Result<Follower, Failure> {
        self.args.check_delivery()?;
        self.args.check_verify_level()?;
        Ok(Follower { args: self.args, stop: StopSignal::new() })
    }
}

/// A line of JSON, with its acknowledgement: see [`Follower::run_into`].
#[derive(Debug)]
pub struct FollowedLine<'l> {
    text: &'l [u8],
    ack: Option<Ack>,
}

impl FollowedLine<'_> {
    /// The object, without an end of line.
    ///
    /// # Panics
    /// Never: JSON is UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.text).expect("lines are UTF-8")
    }

    /// The line as a type.
    ///
    /// # Errors
    /// Never for the lines of this version.
    pub fn parse(&self) -> Result<events::Line<'_>, events::LineError> {
        events::Line::parse(self.text)
    }

    /// The event need not come again. A repository has several lines and one acknowledgement, with the last: the others'
    /// acknowledgements do nothing.
    pub fn acknowledge(self) {
        if let Some(ack) = self.ack {
            ack.done();
        }
    }
}

/// Calls a function with lines.
struct LinesToHandler<F>(F);

impl<F: Fn(FollowedLine<'_>) + Send + Sync + 'static> LinesToHandler<F> {
    fn call(&self, line: &[u8], ack: Option<Ack>) {
        (self.0)(FollowedLine { text: line.strip_suffix(b"\n").unwrap_or(line), ack });
    }
}

impl<F: Fn(FollowedLine<'_>) + Send + Sync + 'static> LineRecipient for LinesToHandler<F> {
    fn event(&self, event: &EventLine<'_, '_>, buffer: &mut Vec<u8>, ack: Ack) {
        event.write(buffer, LineHeader::Live { id: &id_of(event.host, event.event) });
        self.call(buffer, Some(ack));
    }

    fn repository(&self, lines: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()> {
        let (repository, fetched_micros) = (lines.repository(), micros(SystemTime::now()));
        let rev = repository.head.rev.to_string();
        let mut line = Vec::new();
        loop {
            line.clear();
            let number = lines.next_piece();
            let id = EventId::of_resync(&repository.did, &rev, fetched_micros, number);
            let header = LineHeader::History { id: &id, fetched_micros };
            if lines.write_next(&mut line, header, None)? {
                self.call(&line, Some(ack));
                return Ok(());
            }
            self.call(&line, None);
        }
    }
}
