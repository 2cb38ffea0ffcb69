//! A broker of Apache Kafka, in KRaft mode, with a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use krafka::ConsumerRecord;
use krafka::admin::{ConfigOp, ConfigResource, NewTopic};
use krafka::consumer::AutoOffsetReset;
use tempfile::TempDir;

use crate::program::{Kit, Program, free_port};

/// The user whom brokers with SASL know.
pub const USER: &str = "ada";
/// The password of [`USER`].
pub const PASSWORD: &str = "p%ss-word";

/// A broker, which is killed and started again with its data.
#[derive(Debug)]
pub struct Kafka {
    kit: Kit,
    port: u16,
    program: Option<Program>,
    // Dropped after the program.
    folder: TempDir,
}

impl Kafka {
    /// Starts a broker whose clients use a protocol such as `PLAINTEXT`, with these lines of configuration.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, protocol: &str, config: &str) -> Self {
        Self::start_as(kit, "127.0.0.1", protocol, config).await
    }

    /// Starts a broker that tells its clients to connect to `host`.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_as(kit: &Kit, host: &str, protocol: &str, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for Kafka");
        let [port, internal, controller] = [free_port(), free_port(), free_port()];
        let data = folder.path().join("data");
        let fixed = format!(
            "process.roles=broker,controller\nnode.id=1\nlog.dirs={}\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\n\
             listeners=CLIENTS://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=CLIENTS://{host}:{port},INTERNAL://127.0.0.1:{internal}\n\
             listener.security.protocol.map=CLIENTS:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=INTERNAL\nauto.create.topics.enable=false\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\ngroup.initial.rebalance.delay.ms=0\n",
            data.display()
        );
        let properties = folder.path().join("broker.properties");
        fs::write(&properties, fixed + config).expect("a file");
        let user = format!("SCRAM-SHA-512=[name={USER},password={PASSWORD}]");
        let mut format = java(kit, "kafka.tools.StorageTool");
        format.args(["format", "--cluster-id", CLUSTER_ID, "--add-scram", &user, "--config"]);
        let output = format.arg(&properties).output().expect("java can be started");
        assert!(output.status.success(), "{output:?}");
        let mut kafka = Self { kit: kit.clone(), port, program: None, folder };
        kafka.run().await;
        kafka
    }

    /// Kills the broker without notice.
    pub fn kill(&mut self) {
        Program::end(self.program.take(), self.port);
    }

    /// Starts the broker, after a kill if it runs.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn run(&mut self) {
        self.kill();
        let mut broker = java(&self.kit, "kafka.Kafka");
        broker.arg(self.folder.path().join("broker.properties"));
        let mut program = Program::start("kafka", &broker, &self.kit.log("kafka"));
        let port = self.port;
        let accepts = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        program.wait_until(accepts).await;
        self.program = Some(program);
    }

    /// Makes the broker answer nothing, while the system still takes connections for it; or go on.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pause(&mut self, is_paused: bool) {
        self.program.as_mut().expect("a broker that runs").pause(is_paused);
    }

    /// The host and the port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Creates a topic with these settings.
    ///
    /// # Panics
    /// If it exists.
    pub async fn create_topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let client = self.client().await.expect("a broker that answers");
        let mut topic = NewTopic::new(name, partitions, 1).expect("a name");
        topic
            .configs
            .extend(settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let created = client.admin().create_topics([topic], Default::default()).await;
        created.expect("an answer").remove(name).expect("a topic").expect("a new topic");
    }

    /// Changes a setting of a topic.
    ///
    /// # Panics
    /// If the broker refuses it.
    pub async fn set_topic(&self, topic: &str, name: &str, value: &str) {
        let client = self.client().await.expect("a broker that answers");
        let resource = ConfigResource::topic(topic);
        let change = (resource.clone(), vec![ConfigOp::set(name, value)]);
        let changed = client.admin().incremental_alter_configs([change], Default::default()).await;
        changed.expect("an answer").remove(&resource).expect("a topic").expect("a valid setting");
    }

    /// All records of a topic, in order within a partition; `None` if they cannot be read.
    pub async fn records(&self, topic: &str) -> Option<Vec<ConsumerRecord>> {
        let consumer = self.client().await.ok()?.consumer_without_group();
        let consumer = consumer.auto_offset_reset(AutoOffsetReset::Earliest).build().await.ok()?;
        consumer.subscribe([topic]).await.ok()?;
        let found = consumer.fetch_metadata(Some(topic)).await.ok()?.topics;
        let mut expected = 0;
        for partition in found.first()?.partitions_iter() {
            let ends = consumer.fetch_watermarks(topic, partition.partition).await.ok()?;
            expected += usize::try_from(ends.1 - ends.0).ok()?;
        }
        let mut records = Vec::new();
        while records.len() < expected {
            let more = consumer.poll(Duration::from_secs(5)).await.ok()?;
            if more.is_empty() {
                return None;
            }
            records.extend(more);
        }
        Some(records)
    }

    async fn client(&self) -> krafka::Result<krafka::Kafka> {
        krafka::Kafka::builder(self.address()).connect().await
    }

    /// Kafka's own consumer as a member of a group, which appends a line per record to `log`: the headers, the key and
    /// the value, with tabs between them.
    pub fn reader(&self, topic: &str, group: &str, log: &Path) -> Program {
        let mut reader = java(&self.kit, "org.apache.kafka.tools.consumer.ConsoleConsumer");
        reader.args(["--bootstrap-server", &self.address(), "--topic", topic, "--group", group]);
        reader.args(["--from-beginning", "--property", "print.key=true", "--property"]);
        reader.arg("print.headers=true");
        for setting in
            ["session.timeout.ms=6000", "heartbeat.interval.ms=500", "auto.commit.interval.ms=200"]
        {
            reader.args(["--consumer-property", setting]);
        }
        Program::start("reader", &reader, log)
    }

    /// Writes a file next to the configuration, and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    }
}

/// A program of Kafka.
fn java(kit: &Kit, class: &str) -> Command {
    let mut java = Command::new("java");
    // Little memory, and little work of the compiler, for processes that live for seconds.
    java.args(["-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]);
    java.arg(kit.path("kafka/lib").join("*")).arg(class);
    java
}

const CLUSTER_ID: &str = "AAAAAAAAAAAAAAAAAAAAAQ";
