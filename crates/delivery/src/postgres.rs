//! The sink of PostgreSQL: the records of accounts as tables, and the position in the same transaction.
//!
//! The payloads are lines of `wireproof follow`. The tables are the same as for [`SqliteSink`](crate::SqliteSink), in
//! the first schema of the search path, with these types:
//!
//! | column | type |
//! |---|---|
//! | `record` | `jsonb`; null where it cannot hold the record, which is then in `record_text` |
//! | `record_text` | `text`: the JSON of a record with U+0000 in a text, or with nesting or numbers beyond PostgreSQL's limits |
//! | `number`, `generation`, `next_piece`, `position` | `bigint` |
//! | `live`, `active`, `complete` | `boolean` |
//! | all others | `text`, in which U+0000 is replaced by U+FFFD |
//!
//! Of Nostr events ([`TableContent::NostrEvents`]), `tags` is `json`, and `number` and `created_at` are `bigint`. Of labels
//! ([`TableContent::Labels`]), `neg` is `boolean`, and `subject`, the SHA-256 of `uri`, is in the key.
//!
//! A batch is one transaction: its rows go as arrays, so that it takes some ten statements however many events it has. If
//! the result of a commit is unknown, the next transaction reads the stored position first. An advisory lock keeps other
//! processes out for as long as the connection exists.

mod address;
mod labels;
mod nostr_events;
mod tables;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::crash_point;
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::database::OutboxIdentity;
use crate::event::Event;
use crate::label_rows::{last_rows, parse_labels};
use crate::opening::open_in_time;
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};
use crate::sink_address::{OpenFailure, SinkAddress, consumer_name};
use crate::sink_options::SinkOptions;
use crate::tables::{MalformedEvent, TableContent, parse_lines, parse_nostr_events};
use crate::tls::{self, Verification};
use labels::UpsertStatement;
use nostr_events::InsertStatement;
use tables::{CursorStatements, Layout, Statements};

pub use address::PostgresAddress;

impl SinkAddress for PostgresAddress {
    const SCHEMES: &'static [&'static str] = &["postgres", "postgresql"];
    const FORM: &'static str = "postgres://…";
    const STORES_POSITIONS: bool = true;
    type Sink = PostgresSink;

    fn from_uri(uri: &str) -> Result<Self, String> {
        Self::parse(uri)
    }

    fn consumer(&self) -> String {
        consumer_name("postgres", &self.name(), self.name().as_bytes())
    }

    fn warning(&self) -> Option<&'static str> {
        (self.verification == Verification::None).then_some(
            "sslmode=require verifies no certificate: anyone on the network path can read and change the traffic, \
             including the password. Use sslmode=verify-full, with sslrootcert=FILE for the certificates of the provider",
        )
    }

    async fn open(&self, options: &SinkOptions) -> Result<PostgresSink, OpenFailure> {
        let tables = PostgresOptions { content: options.content, ..PostgresOptions::default() };
        Ok(PostgresSink::open(self.clone(), options.outbox, tables).await?)
    }
}

/// Options of a [`PostgresSink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Number of rows of `event` that are kept in addition to records; Nostr events are all kept. Default: 100,000.
    pub max_events: u64,
    /// The kind of events. Default: records.
    pub content: TableContent,
    /// Limits of a transaction. Default: 4,096 events and 4 MiB.
    pub batches: SinkLimits,
    /// Maximum time of a transaction, and of opening a connection with its checks. Default: 60 s.
    pub timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        let batches = SinkLimits::new(4096, 4 << 20);
        let content = TableContent::default();
        Self { max_events: 100_000, content, batches, timeout: Duration::from_secs(60) }
    }
}

/// Writes the records of accounts, or Nostr events, to a PostgreSQL database. Every event has its effect exactly once.
#[derive(Debug)]
pub struct PostgresSink {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: PostgresAddress,
    /// The outbox from which events come.
    outbox: OutboxIdentity,
    options: PostgresOptions,
    /// `None` until the next use after a failure: whatever state a connection is in ends with it.
    connection: Mutex<Option<Connection>>,
    /// Whether there was a connection.
    is_open: AtomicBool,
    /// Number of written rows.
    rows: AtomicU64,
}

/// A connection that has the lock.
#[derive(Debug)]
struct Connection {
    client: Client,
    cursor: CursorStatements,
    tables: TableStatements,
    /// Reads and writes the socket; ends with this value.
    _driver: JoinSet<()>,
}

/// The statements of the tables.
#[derive(Debug)]
enum TableStatements {
    Records(Box<Statements>),
    NostrEvents(InsertStatement),
    Labels(UpsertStatement),
}

impl PostgresSink {
    /// Connects, creates the tables in a schema that has none of their names, and takes the lock. A server that is away
    /// is tried for 10 seconds. `outbox` is the one from which the events will come. Must be called in a Tokio runtime, which
    /// then runs the connections.
    ///
    /// # Errors
    /// If the server cannot be reached in time or refuses, another process writes to the tables, or they are others or of
    /// another version.
    pub async fn open(
        address: PostgresAddress,
        outbox: OutboxIdentity,
        options: PostgresOptions,
    ) -> Result<Self, SendFailure> {
        let (connection, is_open, rows) = Default::default();
        let shared = Shared { address, outbox, options, connection, is_open, rows };
        let sink = Self { shared: Arc::new(shared) };
        // A server that is away may not have noticed yet that the last process has ended.
        open_in_time(|| sink.position()).await?;
        Ok(sink)
    }

    /// The position that is stored for the outbox; `None` for one of which the tables have no event.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn position(&self) -> Result<Option<u64>, SendFailure> {
        self.stored(self.shared.outbox).await
    }

    /// Runs on a thread for blocking work, since reading lines takes time.
    async fn run<T: Send + 'static, W>(&self, work: W) -> Result<T, SendFailure>
    where
        W: AsyncFnOnce(&Shared, &mut Connection) -> Result<T, SendFailure> + Send + 'static,
    {
        let (shared, handle) = (self.shared.clone(), Handle::current());
        let run = move || handle.block_on(shared.with_connection(work));
        spawn_blocking(run).await.unwrap_or_else(|error| Err(SendFailure::temporary(error)))
    }
}

impl Sink for PostgresSink {
    fn limits(&self) -> SinkLimits {
        SinkLimits { concurrency: 1, ..self.shared.options.batches }
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let events = events.to_vec();
        self.run(async move |shared, connection| shared.apply(connection, &events).await).await
    }

    async fn skip(&self, event: &Event) -> Result<(), SendFailure> {
        let event = event.clone();
        let skip = async move |shared: &Shared, connection: &mut Connection| {
            let skipped = shared.skip(connection, &event).await;
            skipped.map_err(|error| failure(&error))
        };
        self.run(skip).await
    }

    async fn stored(&self, outbox: OutboxIdentity) -> Result<Option<u64>, SendFailure> {
        let read = async move |_: &Shared, connection: &mut Connection| {
            let Connection { client, cursor, .. } = connection;
            cursor.position(client, outbox).await.map_err(|error| failure(&error))
        };
        self.run(read).await
    }

    fn rows(&self) -> Option<u64> {
        Some(self.shared.rows.load(Relaxed))
    }

    async fn close(&self) -> Result<(), SendFailure> {
        drop(self.shared.connection.lock().await.take());
        Ok(())
    }
}

impl Shared {
    /// Works with the connection, or a new one; it is closed unless the work succeeds in time.
    async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&Self, &mut Connection) -> Result<T, SendFailure>,
    ) -> Result<T, SendFailure> {
        let mut place = self.connection.lock().await;
        let in_time = timeout(self.options.timeout, async {
            let mut connection = match place.take() {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let done = work(self, &mut connection).await?;
            Ok((connection, done))
        });
        let (connection, done) = in_time.await.unwrap_or_else(|_| {
            let seconds = self.options.timeout.as_secs();
            Err(SendFailure::temporary(format!("no answer from PostgreSQL within {seconds} s")))
        })?;
        *place = Some(connection);
        Ok(done)
    }

    async fn connect(&self) -> Result<Connection, SendFailure> {
        let failed = |error: Error| failure(&error);
        let is_open = self.is_open.load(Relaxed);
        let fatal = |text: String| {
            let failed = SendFailure::new(FailureKind::Fatal, text);
            // Files may be about to be replaced.
            if is_open { failed.in_run() } else { failed }
        };
        let config = self.address.config().map_err(fatal)?;
        let tls = tls::client_config(&self.address.tls, self.address.verification);
        let connected = config.connect(MakeRustlsConnect::new(tls.map_err(fatal)?)).await;
        let (mut client, connection) = connected.map_err(failed)?;
        let mut driver = JoinSet::new();
        // Its error is reported by the statement that it ends.
        driver.spawn(async move { drop(connection.await) });
        check_encoding(&client).await?;
        client.batch_execute(SETTINGS).await.map_err(failed)?;
        client.batch_execute(LOCK).await.map_err(failed)?;
        let content = self.options.content;
        prepare_tables(&mut client, content).await?;
        let cursor = CursorStatements::prepare(&client).await.map_err(failed)?;
        let tables = match content {
            TableContent::Records => {
                let statements = Statements::prepare(&client).await.map_err(failed)?;
                TableStatements::Records(Box::new(statements))
            }
            TableContent::NostrEvents => {
                let insert = InsertStatement::prepare(&client).await.map_err(failed)?;
                TableStatements::NostrEvents(insert)
            }
            TableContent::Labels => {
                let upsert = UpsertStatement::prepare(&client).await.map_err(failed)?;
                TableStatements::Labels(upsert)
            }
        };
        self.is_open.store(true, Relaxed);
        Ok(Connection { client, cursor, tables, _driver: driver })
    }

    /// Applies events. One with JSON that PostgreSQL cannot hold is found by halving the batch, and stored as text; one that
    /// it does not take so either is refused, after those before it.
    async fn apply(
        &self,
        connection: &mut Connection,
        events: &[Event],
    ) -> Result<(), SendFailure> {
        let mut parts = vec![events];
        while let Some(part) = parts.pop() {
            let applied = match self.apply_at_once(connection, part, true).await {
                Err(error) if is_of_data(&error) && part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                    Ok(None)
                }
                Err(error) if is_of_data(&error) => {
                    self.apply_at_once(connection, part, false).await
                }
                applied => applied,
            };
            let malformed = applied.map_err(|error| {
                let first = part.first().map_or(0, Event::position);
                let before = events.iter().map(Event::position).take_while(|of| *of < first);
                let failed =
                    if is_of_event(&error) { refusal(&error, part) } else { failure(&error) };
                SendFailure { accepted: before.collect(), ..failed }
            })?;
            if let Some(malformed) = malformed {
                return Err(malformed.after(events));
            }
        }
        Ok(())
    }

    /// Stores the position of an event without its effect. Its account then lacks something.
    async fn skip(&self, connection: &mut Connection, event: &Event) -> Result<(), Error> {
        let Connection { client, cursor, .. } = connection;
        let transaction = client.transaction().await?;
        let stored = cursor.position(&transaction, self.outbox).await?.unwrap_or(0);
        if self.options.content == TableContent::Records {
            let statement = "UPDATE account SET complete = FALSE WHERE did = $1";
            transaction.execute(statement, &[&event.account()]).await?;
        }
        if stored < event.position() {
            cursor.set_position(&transaction, self.outbox, event.position()).await?;
        }
        transaction.commit().await
    }

    /// Applies the events that are not applied yet, in one transaction. If one is malformed, those before it are applied,
    /// and it is returned.
    async fn apply_at_once(
        &self,
        connection: &mut Connection,
        events: &[Event],
        has_json: bool,
    ) -> Result<Option<MalformedEvent>, Error> {
        let Connection { client, cursor, tables, .. } = connection;
        let transaction = client.transaction().await?;
        let applied = cursor.position(&transaction, self.outbox).await?.unwrap_or(0);
        // Positions rise.
        let new = &events[events.partition_point(|event| event.position() <= applied)..];
        let mut rows = 0;
        let (count, malformed) = match tables {
            TableStatements::Records(statements) => {
                let batch = parse_lines(new);
                let max_events = self.options.max_events;
                if !batch.events.is_empty() {
                    let applied =
                        statements.apply(&transaction, &batch.events, has_json, max_events);
                    rows = applied.await?;
                }
                (batch.events.len(), batch.malformed)
            }
            TableStatements::NostrEvents(insert) => {
                let batch = parse_nostr_events(new);
                if !batch.events.is_empty() {
                    rows = insert.run(&transaction, &batch.events).await?;
                }
                (batch.events.len(), batch.malformed)
            }
            TableStatements::Labels(upsert) => {
                let batch = parse_labels(new);
                let last = last_rows(&batch.events);
                if !last.is_empty() {
                    rows = upsert.run(&transaction, &last).await?;
                }
                (batch.events.len(), batch.malformed)
            }
        };
        let Some(last) = new[..count].last() else {
            transaction.rollback().await?;
            return Ok(malformed);
        };
        cursor.set_position(&transaction, self.outbox, last.position()).await?;
        crash_point("postgres/written");
        transaction.commit().await?;
        self.rows.fetch_add(rows, Relaxed);
        crash_point("postgres/committed");
        Ok(malformed)
    }
}

/// Creates the tables if none of their names is used; checks them otherwise.
async fn prepare_tables(client: &mut Client, content: TableContent) -> Result<(), SendFailure> {
    let failed = |error: Error| failure(&error);
    let Layout { names: expected, mark, version: known, schema, from_version_1 } =
        layout_of(content);
    let found = client.query_one(tables::FOUND, &[expected]).await.map_err(failed)?;
    let names: Option<Vec<String>> = found.try_get(0).map_err(failed)?;
    let comment: Option<String> = found.try_get(1).map_err(failed)?;
    let fatal = |text: String| {
        let text = format!("{text}{EMPTY_DATABASE}, and {}", content.fix());
        Err(SendFailure::new(FailureKind::Fatal, text))
    };
    let version = comment.as_deref().and_then(|comment| comment.strip_prefix(mark));
    let count = names.map_or(0, |names| names.len());
    let statements = match (count, version) {
        (0, _) => Some(*schema),
        (count, Some("1")) if count == expected.len() => *from_version_1,
        _ => None,
    };
    if let Some(statements) = statements {
        let transaction = client.transaction().await.map_err(failed)?;
        transaction.batch_execute(statements).await.map_err(failed)?;
        return transaction.commit().await.map_err(failed);
    }
    match (count, version) {
        (count, Some(found)) if found == *known && count == expected.len() => Ok(()),
        (_, Some(found)) if found == *known => {
            fatal("some of the tables of wireproof are missing: ".to_owned())
        }
        (_, Some(found)) => fatal(format!(
            "tables of version {found}; this program writes version {known}: use the program that wrote them, or "
        )),
        (_, None) => fatal(format!("{NOT_OURS}: ")),
    }
}

fn layout_of(content: TableContent) -> &'static Layout {
    match content {
        TableContent::Records => &tables::LAYOUT,
        TableContent::NostrEvents => &nostr_events::LAYOUT,
        TableContent::Labels => &labels::LAYOUT,
    }
}

/// Whether the data of a batch is the reason, and not the state of the server.
fn is_of_data(error: &Error) -> bool {
    error.code().is_some_and(|code| matches!(code.code().get(..2), Some("22" | "54")))
}

/// Whether the server refuses an event in any form: its data, or a constraint or trigger of the operator.
fn is_of_event(error: &Error) -> bool {
    let is_of_rows = |code: &SqlState| matches!(code.code().get(..2), Some("23" | "P0"));
    is_of_data(error) || error.code().is_some_and(is_of_rows)
}

/// The server refuses an event.
#[cold]
fn refusal(error: &Error, part: &[Event]) -> SendFailure {
    let id = part.first().map_or("", Event::id);
    let text = format!("{}: {}", sanitize(id, MAX_MESSAGE_CHARS), text_of(error));
    SendFailure::new(FailureKind::Refused, text)
}

/// A database in another encoding cannot hold all texts.
async fn check_encoding(client: &Client) -> Result<(), SendFailure> {
    let failed = |error: Error| failure(&error);
    let row = client.query_one("SELECT current_setting('server_encoding')", &[]).await;
    let encoding: String = row.map_err(failed)?.try_get(0).map_err(failed)?;
    if encoding == "UTF8" {
        Ok(())
    } else {
        let text = format!(
            "the database has the encoding {encoding}, which cannot hold every text: name one in UTF8 \
                 (createdb --encoding UTF8 --template template0 NAME)"
        );
        Err(SendFailure::new(FailureKind::Fatal, text))
    }
}

/// The message of an error. The server quotes texts of strangers in it.
fn text_of(error: &Error) -> String {
    let text = sanitize(&address::message(error), MAX_MESSAGE_CHARS);
    match error.code().map(SqlState::code) {
        // A pooler has given the session of another client, in which statements are or are not prepared.
        Some("42P05" | "26000") => format!("{text}; {OF_POOLER}"),
        _ => text,
    }
}

/// The consequence of an error: one of the access or the tables needs the operator; anything else may pass.
#[cold]
fn failure(error: &Error) -> SendFailure {
    let text = text_of(error);
    let Some(code) = error.code() else {
        return if is_refused_here(error) {
            SendFailure::new(FailureKind::Fatal, text)
        } else {
            SendFailure::temporary(text)
        };
    };
    if *code == SqlState::LOCK_NOT_AVAILABLE {
        return SendFailure::temporary(IN_USE);
    }
    let of_access = ["26", "28", "3D", "3F", "42"];
    let kind = match code.code().get(..2) {
        Some(class) if of_access.contains(&class) => FailureKind::Fatal,
        _ => FailureKind::Temporary(Duration::ZERO),
    };
    SendFailure::new(kind, text)
}

/// Whether the client refuses to go on, as it has no password for a server that asks for one: no later attempt has.
/// The library tells the kinds of its errors apart by their texts alone.
fn is_refused_here(error: &Error) -> bool {
    matches!(&*error.to_string(), "invalid configuration" | "authentication error")
}

/// The server ends statements that take too long, so that a process that hangs does not keep the lock.
const SETTINGS: &str = "
SET statement_timeout = '55s';
SET lock_timeout = '10s';
SET idle_in_transaction_session_timeout = '60s';
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off';
";

/// The first number identifies this program, the second one the schema.
const LOCK: &str = "SELECT pg_advisory_lock(1465938018, hashtext(current_schema()))";

const OF_POOLER: &str = "the address belongs to a pooler in transaction mode, such as PgBouncer: name the server itself, or a pool \
                         in session mode";
const IN_USE: &str =
    "another process writes to these tables: stop it, or name another database or schema";
const NOT_OURS: &str = "the schema has other tables or views with the names that it needs";
const EMPTY_DATABASE: &str = "name an empty database or schema (`?options=-csearch_path%3DSCHEMA`)";
