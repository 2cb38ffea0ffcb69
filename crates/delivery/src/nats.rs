//! The sink of NATS JetStream: every line is a message of a stream, and an event is accepted with the acknowledgements of
//! the stream.
//!
//! | part of a message | value |
//! |---|---|
//! | subject | `PREFIX.ACCOUNT`: the account is one token, with other bytes than `A-Z a-z 0-9 - _ :` percent-encoded |
//! | `Nats-Msg-Id` | the id of the line, by which the stream drops repetitions within its duplicate window |
//! | `Nats-Expected-Stream` | the stream: another one with the same subjects refuses the message |
//! | payload | the line |
//!
//! | failure | consequence |
//! |---|---|
//! | no connection, no acknowledgement in time, no stream, a full stream | the events are sent again over a new connection |
//! | a message that is larger than the server or the stream allows | the event is set aside after some attempts |
//! | wrong credentials, another stream with these subjects, a server without JetStream | the start fails; a run tells it, and sends the events again |
//! | a stream that takes or acknowledges no messages by its settings, which are checked for every connection | the start fails; a run tells the setting, and sends the events again |

mod address;
mod header_id;
mod stream;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::context::{
    Context, ContextBuilder, CreateStreamError, CreateStreamErrorKind, PublishError,
    PublishErrorKind,
};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind, ConnectOptions, ServerError};
use base::{StopSignal, crash_point};
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use self::address::NatsAddress;
use self::address::Secret;
use self::header_id::header_id;
use crate::account_chains::send_in_chains;
use crate::config_fault::ConfigFault;
use crate::event::Event;
use crate::line_form::LineForm;
use crate::opening::open_in_time;
use crate::queue_message::messages;
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};
use crate::sink_address::{OpenFailure, SinkAddress, consumer_name};
use crate::sink_options::SinkOptions;
use crate::tls::{self, Verification};

impl SinkAddress for NatsAddress {
    const SCHEMES: &'static [&'static str] = &["nats"];
    const FORM: &'static str = "nats://HOST/PREFIX";
    type Sink = NatsSink;

    fn from_uri(uri: &str) -> Result<Self, String> {
        Self::parse(uri)
    }

    fn consumer(&self) -> String {
        consumer_name("nats", &self.name(), self.name().as_bytes())
    }

    async fn open(&self, options: &SinkOptions) -> Result<NatsSink, OpenFailure> {
        let sent = NatsOptions { form: options.form, ..NatsOptions::default() };
        Ok(NatsSink::open(self.clone(), sent).await?)
    }
}

/// Options of a [`NatsSink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NatsOptions {
    /// Limits of the batches. One message per account in a batch waits for its acknowledgement at a time. Default: 1,024
    /// events and 4 MiB a batch, 4 batches at once.
    pub batches: SinkLimits,
    /// Maximum time of an acknowledgement, and of opening a connection. Default: 30 s.
    pub timeout: Duration,
    /// The unit of a message. Default: an event.
    pub form: LineForm,
}

impl Default for NatsOptions {
    fn default() -> Self {
        let batches = SinkLimits::new(1024, 4 << 20).with_concurrency(4);
        Self { batches, timeout: Duration::from_secs(30), form: LineForm::default() }
    }
}

/// Sends events to a stream of NATS JetStream.
#[derive(Debug)]
pub struct NatsSink {
    address: NatsAddress,
    options: NatsOptions,
    /// `None` until the next use after a failure.
    connection: Mutex<Option<Arc<Connection>>>,
    /// Whether a stream has been found to fit.
    is_running: AtomicBool,
}

/// A connection, which is used until its first failure. It has no reconnection of its own: messages that waited for one
/// would be sent after later ones of their accounts.
#[derive(Debug)]
struct Connection {
    context: Context,
    /// The settings of the stream.
    stream: Config,
    denied: Denied,
    /// Set when the connection is lost, and with it the acknowledgements that are awaited.
    lost: StopSignal,
}

/// A permission that the server has refused the user: it reports this outside the answers, which then do not come.
#[derive(Clone, Debug, Default)]
struct Denied {
    text: Arc<StdMutex<Option<String>>>,
    said: StopSignal,
}

impl Denied {
    fn set(&self, text: &str) {
        let text = sanitize(text, MAX_MESSAGE_CHARS);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        self.said.request();
    }

    fn fault(&self) -> Option<ConfigFault> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        text.map(ConfigFault::Permission)
    }
}

impl NatsSink {
    /// Connects, and creates the stream if none has its name: for the subjects `PREFIX.*`, in files, with a duplicate
    /// window of five minutes, and without limits of its own. A server that is away is tried for 10 seconds. Must be
    /// called in a Tokio runtime, which then runs the connections.
    ///
    /// # Errors
    /// If no server can be reached in time, one refuses, or the stream does not take or acknowledge the messages by its settings.
    pub async fn open(address: NatsAddress, options: NatsOptions) -> Result<Self, SendFailure> {
        let (connection, is_running) = Default::default();
        let sink = Self { address, options, connection, is_running };
        open_in_time(|| sink.connection()).await?;
        Ok(sink)
    }

    /// The connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, SendFailure> {
        let mut place = self.connection.lock().await;
        if let Some(connection) = place.as_ref().filter(|known| !known.lost.is_requested()) {
            return Ok(connection.clone());
        }
        *place = None;
        let opened = timeout(self.options.timeout, self.connect()).await;
        let opened = opened.unwrap_or_else(|_| Err(self.no_answer(&Denied::default())));
        let is_running = self.is_running.load(Relaxed);
        let failed = |failed: SendFailure| if is_running { failed.in_run() } else { failed };
        let connection = Arc::new(opened.map_err(failed)?);
        *place = Some(connection.clone());
        Ok(connection)
    }

    async fn connect(&self) -> Result<Connection, SendFailure> {
        let (lost, denied) = (StopSignal::new(), Denied::default());
        let options = self.connect_options(&lost, &denied).map_err(fatal)?;
        let hosts = self.address.servers.hosts.iter().map(|host| format!("nats://{host}"));
        let servers: Result<Vec<async_nats::ServerAddr>, _> =
            hosts.map(|url| url.parse()).collect();
        let client =
            options.connect(servers.map_err(fatal)?).await.map_err(|error| unconnected(&error))?;
        let context = ContextBuilder::new().timeout(self.options.timeout).build(client);
        let is_running = self.is_running.load(Relaxed);
        let stream = tokio::select! {
            stream = context.get_or_create_stream(self.stream_config()) => stream,
            () = denied.said.requested() => return Err(self.no_answer(&denied)),
        };
        let stream = stream.map_err(|error| no_stream(&error))?;
        let stream = stream.cached_info().config.clone();
        if let Some(fault) = stream::fault_of(&stream, &self.address) {
            return Err(fault.failure(is_running));
        }
        self.is_running.store(true, Relaxed);
        Ok(Connection { context, stream, denied, lost })
    }

    /// The options of a connection that ends when it is lost, to the servers of the address alone.
    fn connect_options(
        &self,
        lost: &StopSignal,
        denied: &Denied,
    ) -> Result<ConnectOptions, String> {
        let servers = &self.address.servers;
        let (lost, denied) = (lost.clone(), denied.clone());
        let mut options = ConnectOptions::new()
            .name("wireproof")
            .require_tls(servers.has_tls)
            .tls_client_config(tls::client_config(&servers.tls, Verification::Full)?)
            .ignore_discovered_servers()
            .max_reconnects(servers.hosts.len())
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
            .event_callback(move |event| {
                match event {
                    async_nats::Event::Disconnected | async_nats::Event::Closed => lost.request(),
                    async_nats::Event::ServerError(ServerError::Other(text))
                        if text.to_ascii_lowercase().contains("permissions violation") =>
                    {
                        denied.set(&text);
                    }
                    _ => {}
                }
                async {}
            });
        if let Some(user) = &servers.user {
            let password = servers.password()?.unwrap_or_default();
            options = options.user_and_password(user.clone(), password);
        }
        match self.address.secret()? {
            None => Ok(options),
            Some(Secret::Token(token)) => Ok(options.token(token)),
            Some(Secret::Nkey(seed)) => Ok(options.nkey(seed)),
            Some(Secret::Credentials(text)) => {
                // Its message has nothing of the text.
                options.credentials(&text).map_err(|error| format!("creds_file: {error}"))
            }
        }
    }

    fn stream_config(&self) -> Config {
        Config {
            name: self.address.stream.clone(),
            subjects: vec![self.address.subjects()],
            // A stream at a limit refuses messages: none is dropped for a new one.
            discard: DiscardPolicy::New,
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        }
    }

    /// Sends the messages of an event, and waits for their acknowledgements.
    async fn publish(&self, connection: &Connection, event: &Event) -> Result<(), SendFailure> {
        let subject = self.address.subject(event.account());
        for message in messages(self.options.form, event)? {
            let publish = PublishMessage::build()
                .payload(message.line)
                .message_id(header_id(&message.id))
                .expected_stream(&self.address.stream);
            let acknowledged = async {
                let sent = connection.context.send_publish(subject.clone(), publish).await;
                let failed = |error: PublishError| unpublished(&error, &connection.stream);
                sent.map_err(failed)?.await.map_err(failed)
            };
            tokio::select! {
                acknowledged = timeout(self.options.timeout, acknowledged) => {
                    acknowledged.unwrap_or_else(|_| Err(self.no_answer(&connection.denied)))?;
                }
                () = connection.denied.said.requested() => {
                    return Err(self.no_answer(&connection.denied));
                }
                () = connection.lost.requested() => {
                    return Err(SendFailure::temporary("the connection was lost"));
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn no_answer(&self, denied: &Denied) -> SendFailure {
        if let Some(fault) = denied.fault() {
            return fault.failure(self.is_running.load(Relaxed));
        }
        let seconds = self.options.timeout.as_secs();
        SendFailure::temporary(format!("no answer from NATS within {seconds} s"))
    }
}

impl Sink for NatsSink {
    fn limits(&self) -> SinkLimits {
        self.options.batches
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let connection = self.connection().await?;
        let sent = send_in_chains(events, |event| self.publish(&connection, event)).await;
        crash_point("nats/acknowledged");
        if sent.as_ref().is_err_and(|failure| failure.kind != FailureKind::Refused) {
            // Other batches may still wait for their acknowledgements.
            connection.lost.request();
        }
        sent
    }
}

/// The consequence of a connection that fails.
#[cold]
fn unconnected(error: &ConnectError) -> SendFailure {
    let kind = match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            FailureKind::Fatal
        }
        _ => FailureKind::Temporary(Duration::ZERO),
    };
    SendFailure::new(kind, clean(&error))
}

/// The consequence of a stream that cannot be opened.
#[cold]
fn no_stream(error: &CreateStreamError) -> SendFailure {
    match error.kind() {
        CreateStreamErrorKind::JetStream(error) => of_code(error.error_code(), &error),
        CreateStreamErrorKind::JetStreamUnavailable => {
            SendFailure::temporary("the server does not offer JetStream: start it with -js")
        }
        _ => SendFailure::temporary(clean(error)),
    }
}

/// The consequence of a message that is not stored.
#[cold]
fn unpublished(error: &PublishError, stream: &Config) -> SendFailure {
    if error.kind() == PublishErrorKind::MaxPayloadExceeded {
        return SendFailure::new(FailureKind::Refused, clean(error));
    }
    let source = std::error::Error::source(error);
    match source.and_then(|source| source.downcast_ref::<jetstream::Error>()) {
        Some(error) => match stream::full(&clean(error), stream) {
            Some(fault) => fault.failure(true),
            None => of_code(error.error_code(), error),
        },
        None => SendFailure::temporary(clean(error)),
    }
}

fn of_code(code: ErrorCode, error: &dyn std::fmt::Display) -> SendFailure {
    let kind = match code {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => {
            FailureKind::Refused
        }
        ErrorCode::STREAM_NOT_MATCH
        | ErrorCode::STREAM_SUBJECT_OVERLAP
        | ErrorCode::JETSTREAM_NOT_ENABLED
        | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => FailureKind::Fatal,
        _ => FailureKind::Temporary(Duration::ZERO),
    };
    SendFailure::new(kind, clean(error))
}

#[cold]
fn fatal(error: impl ToString) -> SendFailure {
    SendFailure::new(FailureKind::Fatal, error)
}

/// A text of a server without control characters.
fn clean(error: &(impl std::fmt::Display + ?Sized)) -> String {
    sanitize(&error.to_string(), MAX_MESSAGE_CHARS)
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(15);
const DUPLICATE_WINDOW: Duration = Duration::from_secs(300);
