//! The samples: inputs of a task that break the rule of one check, and valid ones.

use std::fs;
use std::path::{Path, PathBuf};

use simnet::hostile::{Addition, AlteredBlocks, Case, CaseContext, CaseSet, InputKind, Spec};

use super::commits::Commit;
use super::items::{self, Block, Frame};
use crate::{BenchError, Task};

/// An input of a task.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) task: Task,
    /// The check whose rule it breaks; `None` for a valid input.
    pub(super) check: Option<&'static str>,
    /// The name, unique within the task.
    pub(super) name: String,
    /// The files that a runner loads.
    pub(super) files: Vec<PathBuf>,
    /// The files of the same sample as a case of the task `hostile`, where that task must reject it and its own need not.
    pub(super) hostile_files: Option<Vec<PathBuf>>,
}

/// Writes samples into a folder.
pub(super) struct Samples<'d> {
    dir: &'d Path,
    all: Vec<Sample>,
}

impl<'d> Samples<'d> {
    /// Writes the samples of all tasks below `dir`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(dir: &'d Path) -> Result<Vec<Sample>, BenchError> {
        let mut samples = Self { dir, all: Vec::new() };
        samples.decode()?;
        samples.signatures()?;
        samples.repositories()?;
        samples.events()?;
        Ok(samples.all)
    }

    fn decode(&mut self) -> Result<(), BenchError> {
        for item in items::good() {
            let entries = Some((Block::Record, item.as_slice()));
            self.frame(None, &Frame { entries, ..Frame::default() })?;
        }
        for block in [Block::Commit, Block::Node, Block::Record] {
            let wrong_digest = Some(block);
            self.frame(Some("cid-sha256"), &Frame { wrong_digest, ..Frame::default() })?;
        }
        for block in [Block::Node, Block::Record] {
            for (check, item) in bad_items() {
                let entries = Some((block, item.as_slice()));
                self.frame(Some(check), &Frame { entries, ..Frame::default() })?;
            }
            for bytes in items::TRAILING {
                let after = Some((block, bytes));
                self.frame(Some("trailing-bytes"), &Frame { after, ..Frame::default() })?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, check: Option<&'static str>, frame: &Frame<'_>) -> Result<(), BenchError> {
        self.add(Task::Decode, check, "frame", &[("bin", frame.corpus())])
    }

    fn signatures(&mut self) -> Result<(), BenchError> {
        let mut add = |check, commit: &Commit| {
            self.add(Task::Sigs, check, "commit", &[("bin", commit.corpus())])
        };
        for commit in Commit::good() {
            add(None, &commit)?;
            add(Some("low-s"), &commit.with_high_s())?;
        }
        for commit in Commit::malformed() {
            add(Some("strict-cbor"), &commit)?;
        }
        add(Some("raw-bytes"), &Commit::extended())
    }

    /// Samples of whole repositories and of streams: the hostile set, and blocks that hold the items of `decode`.
    fn repositories(&mut self) -> Result<(), BenchError> {
        let spec = Spec::default();
        for case in CaseSet::generate(&spec).cases() {
            match case.code {
                // Peers have no path for parts.
                _ if case.kind == InputKind::Part => {}
                None if is_plain(&case.name) => self.case(None, case)?,
                Some(code) if !case.name.contains("sync-") => {
                    if let Some(check) = check_of(code, &case.name) {
                        self.case(Some(check), case)?;
                    }
                }
                _ => {}
            }
        }
        let altered = AlteredBlocks::new(&spec);
        for (check, item) in bad_items() {
            for case in altered.cases(Addition::Entry(&item)) {
                self.case(Some(check), &case)?;
            }
        }
        for bytes in items::TRAILING {
            for case in altered.cases(Addition::After(bytes)) {
                self.case(Some("trailing-bytes"), &case)?;
            }
        }
        for case in altered.first_commits() {
            self.case(case.code.and_then(|code| check_of(code, &case.name)), &case)?;
        }
        Ok(())
    }

    fn case(&mut self, check: Option<&'static str>, case: &Case) -> Result<(), BenchError> {
        let Case { name, did, signing_key, bytes, .. } = case;
        let (task, owner) = match case.kind {
            InputKind::Repo | InputKind::Part => {
                (Task::Repo, serde_json::json!({ "did": did, "signing_key": signing_key }))
            }
            InputKind::Frames => (Task::Commit, serde_json::json!({ did: signing_key })),
        };
        let owner = owner.to_string().into_bytes();
        self.add(task, check, name, &[("case", bytes.clone()), ("json", owner)])?;
        let sample = self.all.last_mut().expect("it was just added");
        if check == Some("chain") {
            let context = serde_json::to_vec(&CaseContext::new(case)).expect("texts");
            let path = sample.files[0].with_extension("hostile.json");
            fs::write(&path, context).map_err(BenchError::io(&path))?;
            sample.hostile_files = Some(vec![sample.files[0].clone(), path]);
        }
        Ok(())
    }

    /// Events in JSON, which every runner loads as lines. A line that only a decoder can reject is judged only where the runner
    /// keeps the lines as they are.
    fn events(&mut self) -> Result<(), BenchError> {
        let twice = VALID.replacen(r#""kind":1"#, r#""kind":2,"kind":1"#, 1);
        let lines = [
            (Task::NostrValidated, None, VALID.to_owned()),
            (Task::NostrValidated, Some("id"), VALID.replace("good morning", "good night")),
            (Task::NostrValidated, Some("signature"), VALID.replace("8916", "8917")),
            (Task::NostrDeserialize, None, VALID.to_owned()),
            (Task::NostrDeserialize, Some("trailing-bytes"), format!("{VALID}x")),
            (Task::NostrDeserialize, Some("trailing-bytes"), format!("{VALID}{{}}")),
            (Task::NostrDeserialize, Some("hex-lower"), VALID.replace("e20978", "E20978")),
            (
                Task::NostrDeserialize,
                Some("kind-range"),
                VALID.replace(r#"kind":1"#, r#"kind":65536"#),
            ),
            (Task::NostrDeserialize, Some("duplicate-fields"), twice),
        ];
        for (task, check, line) in lines {
            self.add(task, check, "event", &[("jsonl", [line.as_bytes(), b"\n"].concat())])?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        task: Task,
        check: Option<&'static str>,
        name: &str,
        files: &[(&str, Vec<u8>)],
    ) -> Result<(), BenchError> {
        let stem = format!("{}-{:04}", task.name(), self.all.len());
        let write = |(ending, bytes): &(&str, Vec<u8>)| {
            let path = self.dir.join(format!("{stem}.{ending}"));
            fs::write(&path, bytes).map_err(BenchError::io(&path))?;
            Ok(path)
        };
        let files = files.iter().map(write).collect::<Result<_, BenchError>>()?;
        let name = format!("{name} ({stem})");
        self.all.push(Sample { task, check, name, files, hostile_files: None });
        Ok(())
    }
}

/// The bad items with their checks.
fn bad_items() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let of_check =
        |(check, items): (_, Vec<Vec<u8>>)| items.into_iter().map(move |item| (check, item));
    items::bad().into_iter().flat_map(of_check)
}

/// The check that rejects a case, by its code and name in the hostile set; `None` where no check is for that rule alone.
fn check_of(code: &str, name: &str) -> Option<&'static str> {
    Some(match code {
        "car/hash" => "cid-sha256",
        "signature/high-s" => "low-s",
        "tree/order" => "mst-order",
        // Cases of unbounded work are of this code too.
        "tree/layer" | "tree/skipped-layer" if !name.contains("doubling") => "mst-layer",
        "tree/prefix" => "mst-prefix",
        "tree/empty-node" | "tree/untrimmed-root" => "mst-shape",
        "tree/repeated-node" => "mst-once",
        "tree/missing-node" | "record/missing" => "complete",
        "record/path" | "event/path" => "record-path",
        "record/cbor" => "record-cbor",
        "event/did-mismatch" | "event/rev-mismatch" | "event/commit-cid" => "event-fields",
        "event/record-missing" => "op-records",
        "event/op" if OUTCOMES.iter().any(|outcome| name.ends_with(outcome)) => "op-records",
        "event/inversion" => "inversion",
        "event/since" | "event/prev-data" => "chain",
        // In `commit` the time follows the newest event, so that the set's events of the future are not.
        "event/future-rev" if name == "event/future" => "clock",
        _ => return None,
    })
}

/// Cases of operations that name another outcome than the commit's tree.
const OUTCOMES: [&str; 2] = ["/phantom-create", "/create-of-another-record"];

/// Whether a valid case is a plain one that every verifier accepts.
fn is_plain(name: &str) -> bool {
    ["tree/repository-k256", "tree/repository-p256"].contains(&name)
}

/// A valid event.
const VALID: &str = concat!(
    r#"{"id":"e20978737ab7cd36eca300a65f11738176123f2e0c23054544b18fe493e2aa1a","#,
    r#""pubkey":"c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5","#,
    r#""created_at":1698632753,"kind":1,"tags":[["t","gm"]],"content":"good morning","sig":"#,
    r#""5687c1a97066c349cb3bde0c0719fd1652a13403ba6aca7557b646307ee67185"#,
    r#"28cd86989db08bf6a7fd04bea0b0b87c1dd1b78c2d21b80b80eebab7f40b8916"}"#,
);
