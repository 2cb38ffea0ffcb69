//! An archive has each label of its labelers once, and proves it, through kills of `archive labels` at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use archive::Archive;
use atproto::label::UnsignedLabel;
use serde_json::Value;
use simnet::labeler::{Labeler, LabelerFault};
use simnet::random::{Random, Seed};

use crate::{report, scaled, schemas};

/// The labels of a message as they were published, by the DID of the labeler and the number of the message.
type Published = BTreeMap<(String, i64), Vec<Vec<u8>>>;

/// An archive that follows two labelers.
struct Scene {
    labelers: [Labeler; 2],
    folder: tempfile::TempDir,
    random: Random,
    published: Published,
    labels: u64,
}

impl Scene {
    fn new() -> Self {
        let labelers = [41, 42].map(|seed| Labeler::start(seed).unwrap());
        let random = Seed::new(11, "archived labels").stream(0);
        let (folder, published) = (tempfile::tempdir().unwrap(), Published::new());
        Self { labelers, folder, random, published, labels: 0 }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// Publishes messages of one to five labels: verified ones, negations, forged ones, and bytes that are no label.
    fn publish(&mut self, messages: u64) {
        for _ in 0..messages {
            let labeler = &self.labelers[self.random.below(2) as usize];
            let count = 1 + self.random.below(5);
            let labels: Vec<Vec<u8>> = (0..count)
                .map(|_| {
                    self.labels += 1;
                    label(labeler, self.labels, self.random.below(20))
                })
                .collect();
            let seq = labeler.publish(&labels) as i64;
            self.published.insert((labeler.did().to_owned(), seq), labels);
        }
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["archive", name]).arg(self.archive()).args(args);
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        command.env("XDG_STATE_HOME", self.folder.path().join("home"));
        command
    }

    fn run(&self, name: &str, args: &[&str]) -> Value {
        let output = self.command(name, args).output().unwrap();
        assert!(output.status.success(), "{name}: {}", errors(&output));
        let document = serde_json::from_slice(&output.stdout).unwrap();
        schemas::check(&format!("archive-{name}"), &document);
        document
    }

    /// A run that stores labels as soon as there are some thousand.
    fn follow(&self, args: &[&str]) -> Command {
        let [first, second] = self.labelers.each_ref().map(Labeler::did);
        let fixed = ["--development", "--backoff-first-ms", "10", "--backoff-max-ms", "50"];
        self.command("labels", &[&[first, second, "--seal-mib", "1"], &fixed[..], args].concat())
    }

    /// Number of stored labels.
    fn stored(&self) -> u64 {
        if !self.archive().join("labels").exists() {
            return 0;
        }
        let stats = self.run("stats", &["--json"]);
        let tables = stats["tables"].as_array().unwrap();
        let labels = tables.iter().find(|table| table["table"] == "labels").unwrap();
        labels["rows"].as_u64().unwrap()
    }
}

fn label(labeler: &Labeler, number: u64, kind: u64) -> Vec<u8> {
    let uri = format!("at://did:web:a{number}.test/app.bsky.feed.post/3k");
    let fields = UnsignedLabel {
        src: labeler.did(),
        uri: &uri,
        val: "spam",
        cts: "2026-01-01T00:00:00.000Z",
        ..UnsignedLabel::default()
    };
    match kind {
        0 => fields.with_signature(&[7; 64]),
        1 => fields.to_bytes(),
        2 => b"\x83\x01\x02\x03".to_vec(),
        3 => labeler.sign(&UnsignedLabel { neg: Some(true), ..fields }),
        4 => labeler.sign(&UnsignedLabel { neg: Some(false), ..fields }),
        5 => {
            // An entry that is not signed.
            let mut label = labeler.sign(&fields);
            label[0] += 1;
            label.splice(1..1, *b"\x62ty\x01");
            label
        }
        _ => labeler.sign(&fields),
    }
}

fn is_verified(kind_of: &[u8]) -> bool {
    atproto::label::Label::parse(kind_of).is_ok_and(|label| *label.sig != [7; 64])
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asks a run to end.
fn terminate(run: &Child) {
    let pid = run.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
}

#[test]
fn after_kills_an_archive_has_each_label_once_and_proves_it() {
    let mut scene = Scene::new();
    let (rounds, mut kills) = (scaled(8, 150), 0);
    for round in 0..rounds {
        scene.publish(600);
        if round % 3 == 0 {
            scene.labelers[0].inject([(200, LabelerFault::Cut)]);
        }
        let mut run = scene.follow(&[]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(scene.random.between(50, 1_500)));
        // A run that is asked to end stores its labels first.
        if round % 2 == 0 {
            terminate(&run);
            std::thread::sleep(Duration::from_millis(scene.random.between(0, 120)));
        }
        kills += u64::from(run.try_wait().unwrap().is_none());
        run.kill().unwrap();
        run.wait().unwrap();
        if round % 4 == 3 {
            // Labels that were not stored are refused now: they are stored as the others are.
            scene.labelers[1].rotate_key();
        }
    }
    let before = scene.stored();
    scene.publish(50);
    let rest = (scene.labels - before).to_string();
    let last = scene.follow(&["--events", &rest]).output().unwrap();
    assert!(last.status.success(), "{}", errors(&last));
    let verified = scene.run("verify", &["--json"]);
    assert_eq!(verified["label_count"].as_u64(), Some(scene.labels));
    let proved = verified["proved_label_count"].as_u64().unwrap();
    let unverified = verified["unverified"].as_object().unwrap().values();
    assert_eq!(proved + unverified.filter_map(Value::as_u64).sum::<u64>(), scene.labels);
    let labels = scene.published.values().flatten();
    assert!(proved <= labels.filter(|label| is_verified(label)).count() as u64);
    assert!(proved > scene.labels / 4, "{verified}");
    compare(&scene);
    report(&format!(
        "{} labels of 2 labelers, {kills} kills, {before} stored before the last run, {proved} proved",
        scene.labels
    ));
}

/// Compares the rows of the archive with the published labels.
fn compare(scene: &Scene) {
    let mut published: BTreeSet<(String, i64, i64, Vec<u8>)> = BTreeSet::new();
    for ((did, seq), labels) in &scene.published {
        for (idx, label) in (0..).zip(labels) {
            published.insert((did.clone(), *seq, idx, label.clone()));
        }
    }
    let stored = rows(&scene.archive());
    let found: BTreeSet<_> = stored.iter().cloned().collect();
    assert_eq!(stored.len(), found.len(), "no row is there twice");
    let missing: Vec<_> = published.difference(&found).take(3).collect();
    let more: Vec<_> = found.difference(&published).take(3).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:?}, and more {more:?}");
}

/// Service, number of the message, index and bytes of every row.
fn rows(folder: &Path) -> Vec<(String, i64, i64, Vec<u8>)> {
    let archive = Archive::open(folder.to_str().unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut labels = archive.labels().await.unwrap();
        let mut found = Vec::new();
        while let Some(label) = labels.next().await.unwrap() {
            let (service, _, seq, idx) = label.origin();
            found.push((service.to_owned(), seq, idx.into(), label.bytes().into_owned()));
        }
        found
    })
}
