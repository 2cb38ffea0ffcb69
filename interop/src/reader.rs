//! Event stream consumers of other projects, and their output.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Kit, Program};

/// A running consumer.
#[derive(Debug)]
pub struct Reader {
    name: &'static str,
    lines: Receiver<String>,
    program: Program,
}

impl Reader {
    /// `@atproto/sync`, which follows `service` after a cursor, fetches keys from the directory and checks every operation.
    /// 0 is before the first retained event.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_sync(kit: &Kit, service: &str, plc_url: &str, cursor: i64) -> Self {
        Self::start(kit, "atproto-sync", &[service, plc_url, &cursor.to_string()])
    }

    /// `@atcute/firehose`, which follows `service` after a cursor and validates events against the lexicon. 0 is before the
    /// first retained event.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atcute_firehose(kit: &Kit, service: &str, cursor: i64) -> Self {
        Self::start(kit, "atcute-firehose", &[service, &cursor.to_string()])
    }

    /// `atproto` of Python, which follows `service` after a cursor and validates events against its models.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_of_python(kit: &Kit, service: &str, cursor: i64) -> Self {
        Self::start_python(kit, "frames", &[service, &cursor.to_string()])
    }

    /// `@atcute/firehose`, which follows the labeler at `service` and validates messages against the lexicon.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atcute_labels(kit: &Kit, service: &str) -> Self {
        Self::start(kit, "atcute-labels", &[service, "0"])
    }

    /// `atproto` of Python, which follows the labeler at `service` and validates messages against its models.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn labels_of_python(kit: &Kit, service: &str) -> Self {
        Self::start_python(kit, "labels", &[service, "0"])
    }

    /// A reader of frames or of a Jetstream that is made from a crate: `jacquard-frames`, `jacquard-jetstream`, `shrike-frames` or
    /// `shrike-jetstream`. A reader of jacquard ends with its connection.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn sdk_of_rust(
        kit: &Kit,
        client: &'static str,
        service: &str,
        options: &StreamOptions,
    ) -> Self {
        let mut command = Command::new(kit.path("sdk-rust/sdk-rust"));
        command.args([client, service, &options.to_json()]);
        Self::start_program(kit, client, &command)
    }

    /// `@skyware/jetstream`, which follows version 1 of a Jetstream.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn skyware_jetstream(kit: &Kit, service: &str, options: &StreamOptions) -> Self {
        Self::start(kit, "skyware-jetstream", &[service, &options.to_json()])
    }

    /// `@atcute/jetstream`, which follows version 1 of a Jetstream, sends its options as a message and validates events.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atcute_jetstream(kit: &Kit, service: &str, options: &StreamOptions) -> Self {
        Self::start(kit, "atcute-jetstream", &[service, &options.to_json()])
    }

    /// The Go client of Jetstream's authors, which follows version 1. It ends with its connection.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn jetstream_client(kit: &Kit, service: &str, options: &StreamOptions) -> Self {
        let mut command = Command::new(kit.path("jetstream-go/jetstream-client"));
        command.args([service, &options.to_json()]);
        Self::start_program(kit, "jetstream-client", &command)
    }

    /// `atproto` of Python, which follows version 2 of a Jetstream and validates events against its models.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_jetstream_of_python(kit: &Kit, service: &str, options: &StreamOptions) -> Self {
        Self::start_python(kit, "jetstream", &[service, &options.to_json()])
    }

    /// `@atproto/api`, which asks `service` for its repositories and hosts page by page, and validates the answers. It ends with
    /// the last answer.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_api(kit: &Kit, service: &str, collection: &str, dids: &[&str]) -> Self {
        Self::start(kit, "atproto-api", &[&[service, collection], dids].concat())
    }

    /// `@atproto/repo`, which fetches the repositories of these accounts, verifies them and ends.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_repo(kit: &Kit, service: &str, plc: &str, dids: &[&str]) -> Self {
        Self::start(kit, "atproto-repo", &[&[service, plc], dids].concat())
    }

    /// `@atproto/tap`, which receives the events of the channel of `service` and acknowledges them when they are written.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn tap(kit: &Kit, service: &str, password: &str) -> Self {
        Self::start(kit, "tap", &[service, password])
    }

    /// `standardwebhooks`, which receives webhooks at a port of loopback and verifies every request.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn webhook(kit: &Kit, port: u16, secret: &str) -> Self {
        Self::start(kit, "webhook", &[&port.to_string(), secret])
    }

    /// The consumer of indigo, which follows `service` from a cursor on, fetches keys from the directory and verifies
    /// every event. It ends with the stream.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn indigo(kit: &Kit, service: &str, plc_url: &str, cursor: i64) -> Self {
        let mut command = Command::new(kit.verifier());
        command.args(["consume", service, plc_url, &cursor.to_string()]);
        Self::start_program(kit, "indigo", &command)
    }

    fn start(kit: &Kit, name: &'static str, args: &[&str]) -> Self {
        let dir = kit.path("readers");
        let mut command = Command::new(kit.node(&dir));
        command.arg(format!("{name}.mjs")).args(args).current_dir(&dir);
        Self::start_program(kit, name, &command)
    }

    fn start_python(kit: &Kit, name: &'static str, args: &[&str]) -> Self {
        let dir = kit.path("sdk-python");
        let mut command = Command::new(dir.join("venv/bin/python"));
        command.arg(format!("{name}.py")).args(args).current_dir(&dir);
        Self::start_program(kit, name, &command)
    }

    fn start_program(kit: &Kit, name: &'static str, command: &Command) -> Self {
        let (program, out) = Program::start_piped(name, command, &kit.log(name));
        let (sender, lines) = channel();
        thread::spawn(move || {
            let output = BufReader::new(out).lines().map_while(Result::ok);
            output.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
        });
        Self { name, lines, program }
    }

    /// The next event: `kind`, `seq` and `did`, and one operation of a commit with `rev`, `path` and `cid`.
    ///
    /// # Panics
    /// If the reader times out, ends or reports an error.
    pub fn next(&self) -> Value {
        self.next_or_end().unwrap_or_else(|| panic!("{} has ended", self.name))
    }

    /// The next event; `None` if the reader has ended.
    ///
    /// # Panics
    /// If the reader times out or reports an error.
    pub fn next_or_end(&self) -> Option<Value> {
        match self.lines.recv_timeout(EVENT_TIMEOUT) {
            Ok(line) => Some(event(self.name, &line)),
            Err(RecvTimeoutError::Timeout) => panic!("{} timed out", self.name),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Kills the consumer without notice, and returns its output.
    ///
    /// # Panics
    /// If it had reported an error.
    pub fn kill(self) -> Vec<Value> {
        let Self { name, lines, program } = self;
        program.kill();
        // A line that was cut off is not written.
        let whole = lines.iter().filter(|line| line.ends_with('}'));
        whole.map(|line| event(name, &line)).collect()
    }

    /// The remaining events, until none arrives for a while.
    pub fn rest(&self) -> Vec<Value> {
        let lines = std::iter::from_fn(|| self.lines.recv_timeout(IDLE_TIMEOUT).ok());
        lines.map(|line| event(self.name, &line)).collect()
    }
}

/// Which events a client of a stream asks for. Empty lists do not restrict.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The sequence number after which, or the cursor of a Jetstream at which, it begins.
    pub cursor: i64,
    /// The kinds of events.
    pub kinds: Vec<String>,
    /// The collections of commits.
    pub collections: Vec<String>,
    /// The accounts.
    pub dids: Vec<String>,
    /// Whether messages are compressed, if the client can choose.
    pub compress: bool,
}

impl StreamOptions {
    /// All events from a cursor on.
    pub fn from(cursor: i64) -> Self {
        Self { cursor, ..Self::default() }
    }

    fn to_json(&self) -> String {
        let Self { cursor, kinds, collections, dids, compress } = self;
        json!({ "cursor": cursor, "kinds": kinds, "collections": collections, "dids": dids, "compress": compress })
            .to_string()
    }
}

fn event(name: &str, line: &str) -> Value {
    let event: Value = serde_json::from_str(line).expect("a line of JSON");
    assert_ne!(event["kind"], "error", "{name}: {line}");
    event
}

/// The time in which an expected event must arrive on a busy machine.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);
/// The time without events after which a reader is idle.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);
