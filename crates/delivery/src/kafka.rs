//! The sink of Kafka: every line is a record of a topic, and an event is accepted when all in-sync replicas have its
//! records.
//!
//! | part of a record | value |
//! |---|---|
//! | key | the account, so that its records are in one partition, in order |
//! | header `id` | the id of the line, by which a consumer drops repetitions |
//! | value | the line |
//!
//! | failure | consequence |
//! |---|---|
//! | no broker, no leader, too few replicas, no acknowledgement in time | the events are sent again |
//! | a record that is larger than the topic allows, or that the broker refuses | the event is set aside after some attempts |
//! | wrong credentials, missing rights, a missing topic | the start fails; a run tells it, and sends the events again |
//! | a topic that takes no records by its settings, which are read for every connection and after every failure | the start fails; a run tells the setting, and sends the events again |
//! | a clock that is too far from the broker's | the events are sent again, and the failure tells the limit |
//!
//! The producer is idempotent: its own repetitions after a lost answer are stored once. Events that the delivery repeats, after a failure
//! or a restart, can be stored again.

mod address;
mod topic;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, SystemTime};

use base::crash_point;
use krafka::admin::{AdminClient, ConfigResource, DescribeConfigsOptions};
use krafka::auth::AuthConfig;
use krafka::consumer::Consumer;
use krafka::error::ErrorCode;
use krafka::producer::{Acks, Producer};
use krafka::{BrokerInfo, CloseOptions, Kafka, KrafkaError, ProtocolErrorKind, Record};
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, RwLock};
use tokio::time::timeout;

pub use self::address::KafkaAddress;
use self::topic::TopicSettings;
use crate::account_chains::send_in_chains;
use crate::event::Event;
use crate::line_form::LineForm;
use crate::opening::open_in_time;
use crate::queue_message::{QueueMessage, messages};
use crate::server_address;
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};
use crate::sink_address::{OpenFailure, SinkAddress, consumer_name};
use crate::sink_options::SinkOptions;

impl SinkAddress for KafkaAddress {
    const SCHEMES: &'static [&'static str] = &["kafka"];
    const FORM: &'static str = "kafka://HOST/TOPIC";
    type Sink = KafkaSink;

    fn from_uri(uri: &str) -> Result<Self, String> {
        Self::parse(uri)
    }

    fn consumer(&self) -> String {
        consumer_name("kafka", &self.name(), self.name().as_bytes())
    }

    async fn open(&self, options: &SinkOptions) -> Result<KafkaSink, OpenFailure> {
        let sent = KafkaOptions { form: options.form, ..KafkaOptions::default() };
        Ok(KafkaSink::open(self.clone(), sent).await?)
    }
}

/// Options of a [`KafkaSink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KafkaOptions {
    /// Limits of the batches. One record per account in a batch waits for its acknowledgement at a time. Default: 2,048
    /// events and 4 MiB a batch, 4 batches at once.
    pub batches: SinkLimits,
    /// Maximum time of an acknowledgement, with the repetitions of the producer. Default: 15 s.
    pub timeout: Duration,
    /// The unit of a record. Default: an event.
    pub form: LineForm,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        let batches = SinkLimits::new(2048, 4 << 20).with_concurrency(4);
        Self { batches, timeout: Duration::from_secs(15), form: LineForm::default() }
    }
}

/// Sends events to a topic of Kafka.
#[derive(Debug)]
pub struct KafkaSink {
    address: KafkaAddress,
    options: KafkaOptions,
    /// `None` until the next use after a failure that the producer does not survive.
    connection: Mutex<Option<Arc<Connection>>>,
    /// Whether the topic has been found to fit.
    is_running: AtomicBool,
    /// Held for writing by a record that is sent in a batch of its own.
    alone: RwLock<()>,
}

/// A producer, and its client's view of the cluster.
struct Connection {
    producer: Producer,
    /// A consumer of nothing: the library shows the brokers to consumers alone.
    cluster: Consumer,
    admin: AdminClient,
    settings: StdMutex<TopicSettings>,
}

impl Connection {
    fn settings(&self) -> TopicSettings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("producer", &self.producer).finish_non_exhaustive()
    }
}

impl KafkaSink {
    /// Connects, and checks that the topic exists. A broker that is away is tried for 10 seconds, one that is starting, or
    /// takes connections without an answer, for a minute. Must be called in a Tokio runtime, which then runs the connections.
    ///
    /// # Errors
    /// If no broker can be reached in time, one refuses, or the topic is missing or takes no events by its settings.
    pub async fn open(address: KafkaAddress, options: KafkaOptions) -> Result<Self, SendFailure> {
        let (connection, is_running, alone) = Default::default();
        let sink = Self { address, options, connection, is_running, alone };
        open_in_time(|| sink.connection_at_start()).await?;
        Ok(sink)
    }

    async fn connection_at_start(&self) -> Result<Arc<Connection>, SendFailure> {
        match self.connection().await {
            Err(failed) => Err(self.at_start(failed).await),
            opened => opened,
        }
    }

    /// A failure of the start: where a port is open the broker is starting, as Kafka takes connections long before it answers.
    async fn at_start(&self, failed: SendFailure) -> SendFailure {
        let is_open = async |host: &String| {
            let connected = timeout(PROBE_TIMEOUT, TcpStream::connect(host.as_str())).await;
            matches!(connected, Ok(Ok(_)))
        };
        if failed.kind != FailureKind::Temporary(Duration::ZERO) {
            return failed;
        }
        for host in &self.address.brokers.hosts {
            if is_open(host).await {
                return SendFailure { kind: FailureKind::Temporary(START_INTERVAL), ..failed };
            }
        }
        failed
    }

    /// The connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, SendFailure> {
        let mut place = self.connection.lock().await;
        let connection = match place.as_ref() {
            Some(connection) => connection.clone(),
            None => Arc::new(self.connect().await.map_err(|failed| self.in_state(failed))?),
        };
        *place = Some(connection.clone());
        Ok(connection)
    }

    async fn connect(&self) -> Result<Connection, SendFailure> {
        let security = self.address.security();
        let security = security.map_err(|text| SendFailure::new(FailureKind::Fatal, text))?;
        let kafka = self.kafka(security).await.map_err(|error| failure(&error))?;
        let cluster = kafka.consumer_without_group().metrics_push(false).build().await;
        let cluster = cluster.map_err(|error| failure(&error))?;
        self.check_brokers(&cluster).await?;
        let producer = kafka
            .producer()
            .acks(Acks::All)
            .idempotent(true)
            // Chains of accounts wait for every acknowledgement: a batch has the events that come while another one is sent.
            .linger(Duration::ZERO)
            .batch_size(BATCH_BYTES)
            .buffer_memory(BUFFER_BYTES)
            .delivery_timeout(self.options.timeout)
            .max_block(REQUEST_TIMEOUT)
            .metrics_push(false);
        let producer = producer.build().await.map_err(|error| failure(&error))?;
        let topic = self.address.topic();
        match producer.partitions_for(topic).await {
            Ok(_) => {
                let (admin, settings) = (kafka.admin().metrics_push(false), Default::default());
                let connection = Connection { producer, cluster, admin, settings };
                self.check_topic(&connection).await?;
                self.is_running.store(true, Relaxed);
                Ok(connection)
            }
            Err(KrafkaError::Broker { code: ErrorCode::UnknownTopicOrPartition, .. }) => {
                let text = format!(
                    "the topic {topic} does not exist: create it, with one partition per reader of a consumer group"
                );
                Err(SendFailure::new(FailureKind::Fatal, text))
            }
            Err(error) => Err(failure(&error)),
        }
    }

    /// Checks that the brokers which the cluster has named are on this machine if they are reached without TLS.
    async fn check_brokers(&self, cluster: &Consumer) -> Result<(), SendFailure> {
        if self.address.brokers.has_tls {
            return Ok(());
        }
        // The client knows this without a request.
        let known = cluster.fetch_metadata(None).await.map_err(|error| failure(&error))?;
        let is_far = |broker: &&BrokerInfo| !server_address::is_local(broker.address());
        match known.brokers.iter().find(is_far) {
            Some(broker) => {
                let text = format!(
                    "the cluster names a broker at {}, which is reached with TLS only: set tls=true, or let it advertise \
                     localhost",
                    broker.address()
                );
                let text = sanitize(&text, MAX_MESSAGE_CHARS);
                Err(SendFailure::new(FailureKind::Fatal, text))
            }
            None => Ok(()),
        }
    }

    /// Checks that the topic takes records by its settings.
    async fn check_topic(&self, connection: &Connection) -> Result<(), SendFailure> {
        let settings = self.read_settings(connection).await?;
        let fault = settings.fault(self.address.topic());
        fault.map_or(Ok(()), |fault| Err(fault.failure(self.is_running.load(Relaxed))))
    }

    /// The settings of the topic, as far as the user may read them.
    async fn read_settings(&self, connection: &Connection) -> Result<TopicSettings, SendFailure> {
        let resource = ConfigResource::topic(self.address.topic());
        let options = DescribeConfigsOptions::default().timeout(REQUEST_TIMEOUT);
        let options = options.config_names(TopicSettings::names());
        let described = connection.admin.describe_configs([resource.clone()], options).await;
        let described = described.and_then(|mut of| of.remove(&resource).unwrap_or(Ok(Vec::new())));
        let settings = match described {
            Ok(entries) => TopicSettings::of(&entries),
            // A user may write to a topic and not read its settings.
            Err(KrafkaError::Broker { .. }) => TopicSettings::default(),
            Err(error) => return Err(failure(&error)),
        };
        *connection.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings.clone();
        Ok(settings)
    }

    /// Adds the setting that can be the cause of a failure.
    #[cold]
    async fn explain(&self, connection: &Connection, failed: &mut SendFailure) {
        let is_refusal = failed.kind == FailureKind::Refused;
        let cause = async {
            let settings = self.read_settings(connection).await.ok()?;
            let topic = self.address.topic();
            if is_refusal {
                return settings.fault(topic);
            }
            let found = connection.cluster.fetch_metadata(Some(topic)).await.ok()?.topics;
            let replicas = found.first()?.partitions_iter().map(|of| of.replicas.len()).min()?;
            settings.fault(topic).or_else(|| settings.replica_fault(topic, replicas))
        };
        if let Ok(Some(fault)) = timeout(EXPLAIN_TIMEOUT, cause).await {
            failed.reason = format!("{}: {}", failed.reason, fault.text());
            if is_refusal {
                // The topic refuses every event, and not this one.
                failed.kind = FailureKind::Temporary(Duration::ZERO);
            }
        }
    }

    /// A failure of the start, or of a run, in which credentials and rights may be mended.
    fn in_state(&self, failed: SendFailure) -> SendFailure {
        if self.is_running.load(Relaxed) { failed.in_run() } else { failed }
    }

    /// The consequence of a record that is not stored, with the setting that is the cause.
    #[cold]
    fn unsent(&self, connection: &Connection, error: &KrafkaError) -> SendFailure {
        let failed = self.in_state(failure(error));
        match error {
            KrafkaError::Broker { code: ErrorCode::InvalidTimestamp, .. } => {
                let settings = connection.settings();
                settings.clock_fault(self.address.topic(), SystemTime::now()).failure(true)
            }
            KrafkaError::Broker { code: ErrorCode::MessageTooLarge, .. } => {
                let reason = format!("{}{}", failed.reason, connection.settings().size_limit());
                SendFailure { reason, ..failed }
            }
            _ => failed,
        }
    }

    async fn kafka(&self, security: AuthConfig) -> Result<Kafka, KrafkaError> {
        Kafka::builder(self.address.brokers.hosts.join(","))
            .client_id("wireproof")
            .security(security)
            .connect_timeout(CONNECT_TIMEOUT)
            .request_timeout(REQUEST_TIMEOUT)
            .max_response_size(MAX_RESPONSE_BYTES)
            .connect()
            .await
    }

    /// Sends the records of an event, and waits for their acknowledgements.
    async fn produce(
        &self,
        connection: &Arc<Connection>,
        event: &Event,
    ) -> Result<(), SendFailure> {
        let producer = &connection.producer;
        for message in messages(self.options.form, event)? {
            let shared = self.alone.read().await;
            let mut sent = producer.send(self.record(event, &message)).await;
            drop(shared);
            if sent.as_ref().is_err_and(is_refusal) {
                // The batch may have been refused for another record in it.
                let _alone = self.alone.write().await;
                sent = producer.send(self.record(event, &message)).await;
            }
            if let Err(error) = sent {
                if error.is_fatal() {
                    self.forget(connection).await;
                }
                return Err(self.unsent(connection, &error));
            }
        }
        Ok(())
    }

    /// Makes the next batch open a new connection, if this one is still in use.
    async fn forget(&self, connection: &Arc<Connection>) {
        let mut place = self.connection.lock().await;
        if place.as_ref().is_some_and(|known| Arc::ptr_eq(known, connection)) {
            *place = None;
        }
    }

    fn record(&self, event: &Event, message: &QueueMessage) -> Record {
        Record::new(self.address.topic(), message.line.clone())
            .key(event.account_bytes())
            .header("id", message.id.clone())
    }
}

impl Sink for KafkaSink {
    fn limits(&self) -> SinkLimits {
        self.options.batches
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let connection = self.connection().await?;
        self.check_brokers(&connection.cluster).await?;
        let mut sent = send_in_chains(events, |event| self.produce(&connection, event)).await;
        crash_point("kafka/acknowledged");
        if let Err(failed) = &mut sent {
            self.explain(&connection, failed).await;
        }
        sent
    }

    async fn close(&self) -> Result<(), SendFailure> {
        if let Some(connection) = self.connection.lock().await.take() {
            let options = CloseOptions::new().timeout(CLOSE_TIMEOUT);
            // Events that it still holds are not acknowledged, and the next run sends them.
            let _ = connection.producer.close_with(options).await;
        }
        Ok(())
    }
}

/// Whether the record is refused, or another one in its batch.
fn is_refusal(error: &KrafkaError) -> bool {
    match error {
        KrafkaError::Broker { code, .. } => matches!(
            code,
            ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidRecord
        ),
        // Larger than the buffer.
        KrafkaError::Config { .. } => true,
        _ => error.protocol_error_kind() == Some(ProtocolErrorKind::FrameTooLarge),
    }
}

/// The consequence of an error.
#[cold]
fn failure(error: &KrafkaError) -> SendFailure {
    let kind = match error {
        // With a source it is of TLS, such as a certificate that a restart of the broker may replace.
        KrafkaError::Auth { source: None, .. } => FailureKind::Fatal,
        KrafkaError::Broker { code, .. } if is_denial(*code) => FailureKind::Fatal,
        KrafkaError::Broker { code, .. } if is_start(*code) => {
            FailureKind::Temporary(START_INTERVAL)
        }
        _ if is_refusal(error) => FailureKind::Refused,
        _ => FailureKind::Temporary(Duration::ZERO),
    };
    SendFailure::new(kind, sanitize(&error.to_string(), MAX_MESSAGE_CHARS))
}

fn is_denial(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::TopicAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::SaslAuthenticationFailed
            | ErrorCode::UnsupportedSaslMechanism
    )
}

/// Whether a broker has started, and still reads the data that it needs to answer.
fn is_start(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::CoordinatorLoadInProgress | ErrorCode::CoordinatorNotAvailable)
}

/// Time until a broker that starts is asked again.
const START_INTERVAL: Duration = Duration::from_millis(500);

/// Size of a batch of records in bytes, which only a single record exceeds: half of a topic's default limit.
const BATCH_BYTES: usize = 512 << 10;

/// Maximum size of the records that wait for acknowledgements, in bytes.
const BUFFER_BYTES: usize = 72 << 20;

const MAX_RESPONSE_BYTES: usize = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to find whether a port is open.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to find the setting that is the cause of a failure.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(3);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
