//! The follower of labelers as a library call.

use std::path::PathBuf;

use ::follower::{LineWriter, Status, output_failure};
use base::StopSignal;
use program::failure::Failure;
use program::interrupt::Shutdown;

use crate::counts::Counts;
use crate::deliver::deliver;
use crate::options::{LabelFollowOptions, Start};
use crate::recipient::Recipient;
use crate::run::{Ended, Run};
use crate::store::LabelStore;

/// Follows labelers from their oldest label on, resumed after a crash, and hands on every label with its verdict.
///
/// No option is read from the environment, and nothing is printed: messages for an operator are events of `tracing` with the
/// target `wireproof::follower`.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use wireproof::label_follower::LabelFollower;
///
/// let follower = LabelFollower::builder()
///     .labeler("moderation.example.com")?
///     .state("state")
///     .to("sqlite:labels.db")?
///     .build()?;
/// let counts = follower.run().await?;
/// println!("{} labels, {} refused", counts.verified, counts.refused);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LabelFollower {
    options: LabelFollowOptions,
    stop: StopSignal,
}

impl LabelFollower {
    /// A follower with these options.
    ///
    /// # Errors
    /// If an option does not fit the others.
    pub fn new(options: LabelFollowOptions) -> Result<Self, Failure> {
        options.check()?;
        Ok(Self { options, stop: StopSignal::new() })
    }

    /// The options of a follower, all at their defaults.
    pub fn builder() -> LabelFollowerBuilder {
        LabelFollowerBuilder { options: LabelFollowOptions::new(Vec::new()) }
    }

    /// Ends the run: labels in flight are finished, and the cursors are stored.
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Delivers to the destinations until a stop is requested.
    ///
    /// # Errors
    /// If there is no destination, a labeler cannot be found, the state or a destination cannot be opened, or no labeler can be
    /// followed any more.
    pub async fn run(self) -> Result<Counts, Failure> {
        if self.options.to.is_empty() {
            return Err(Failure::Usage("no destination: call `to`, or `run_into`".to_owned()));
        }
        let cursors = self.options.checkpoints.as_deref();
        let run = Run::open(&self.options, cursors, Status::hidden(), self.stop).await?;
        let ended = deliver(&run).await?;
        run.finish(ended)
    }

    /// Hands every line to `handler`, in the order of the service. It is acknowledged when the handler returns.
    ///
    /// # Errors
    /// If there are destinations, the state cannot be opened, or the labelers cannot be followed.
    pub async fn run_into(
        self,
        handler: impl FnMut(&str) + Send + 'static,
    ) -> Result<Counts, Failure> {
        if !self.options.to.is_empty() {
            return Err(Failure::Usage("destinations and a handler: leave out one".to_owned()));
        }
        let cursors = self.options.checkpoints.as_deref();
        let run = Run::open(&self.options, cursors, Status::hidden(), self.stop).await?;
        let ended = run.follow(Recipient::Handler(Box::new(handler)), run.stop.clone()).await;
        run.finish(ended)
    }

    /// Runs as a command: prints lines to standard output if there is no destination, and messages to standard error; SIGINT and
    /// SIGTERM end it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_as_command(self, status: Status) -> Result<(), Failure> {
        let shutdown = self.listen(&status)?;
        let cursors = self.options.checkpoints.as_deref();
        let run = Run::open(&self.options, cursors, status, self.stop).await?;
        let ended =
            if self.options.to.is_empty() { print(&run).await } else { deliver(&run).await };
        run.finish(ended?)?;
        shutdown.result()
    }

    /// Runs as a command that stores every label; the state has the keys alone.
    ///
    /// # Errors
    /// If there are destinations, a labeler cannot be found or followed any more, or a label cannot be stored.
    pub async fn store_as_command(
        self,
        store: impl LabelStore + 'static,
        status: Status,
    ) -> Result<(), Failure> {
        if !self.options.to.is_empty() {
            return Err(Failure::Usage("destinations and a store: leave out one".to_owned()));
        }
        let shutdown = self.listen(&status)?;
        let run = Run::open(&self.options, None, status, self.stop).await?;
        let ended = run.follow(Recipient::Store(Box::new(store)), run.stop.clone()).await;
        run.finish(ended)?;
        shutdown.result()
    }

    /// Ends the run at SIGINT and SIGTERM.
    fn listen(&self, status: &Status) -> Result<Shutdown, Failure> {
        let (limit, announcing) = (self.options.stop_limit, status.clone());
        Shutdown::listen(self.stop.clone(), limit, move || announcing.announce_stop(limit))
    }
}

/// Prints the lines of a run to standard output.
async fn print(run: &Run<'_>) -> Result<Ended, Failure> {
    let (lines, writer) = LineWriter::stdout(&run.stop)?;
    let ended = run.follow(Recipient::Stdout(lines), run.stop.clone()).await;
    let written = writer.finish(run.options.stop_limit / 10 * 6).await;
    Ok(Ended { output: written.map_err(output_failure), ..ended })
}

/// The options of a [`LabelFollower`].
#[derive(Debug)]
pub struct LabelFollowerBuilder {
    options: LabelFollowOptions,
}

impl LabelFollowerBuilder {
    /// Adds a labeler by its DID or handle.
    ///
    /// # Errors
    /// If it is neither.
    pub fn labeler(mut self, who: &str) -> Result<Self, Failure> {
        let labeler = who.parse().map_err(|error| Failure::Usage(format!("`{who}`: {error}")))?;
        self.options.labelers.push(labeler);
        Ok(self)
    }

    /// Where a labeler begins that was never followed. Default: with its oldest label.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.options.start = start;
        self
    }

    /// Also accepts labels that a key signed which the labeler had earlier.
    #[must_use]
    pub fn accept_earlier_keys(mut self) -> Self {
        self.options.accept_earlier_keys = true;
        self
    }

    /// Ends after this number of lines.
    #[must_use]
    pub fn events(mut self, count: u64) -> Self {
        self.options.events = Some(count.max(1));
        self
    }

    /// Folder for cursors, keys and the outbox. Default: none, which begins every run with the oldest labels.
    #[must_use]
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        self.options.outbox_folder = folder.join("outbox").join("labels");
        self.options.checkpoints = Some(folder.join("labels"));
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
    pub fn build(self) -> Result<LabelFollower, Failure> {
        if !self.options.to.is_empty() && self.options.checkpoints.is_none() {
            return Err(Failure::Usage("destinations need a state: call `state`".to_owned()));
        }
        LabelFollower::new(self.options)
    }
}
