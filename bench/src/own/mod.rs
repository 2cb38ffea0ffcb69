//! How do we answer the harness ourselves? The same protocol as every peer, served by the command's
//! own binary.

mod commit;
mod decode;
mod hostile;
mod mst;
mod nostr;
mod repo;
mod schnorr;
mod sigs;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Lines, Write};
use std::path::PathBuf;
use std::time::Instant;

use bumpalo::Bump;
use serde::Serialize;

use crate::Task;
use crate::counts::Counts;
use crate::protocol::{Description, Failure, Loaded, Proof, Request, Timing};

/// The name under which we appear in results.
pub const PEER: &str = "wireproof";

/// Answers `requests` until they end.
///
/// # Errors
/// If reading or writing fails.
pub fn serve(requests: impl BufRead, answers: impl Write) -> io::Result<()> {
    let mut session = Session { requests: requests.lines(), answers };
    let mut next = session.next()?;
    while let Some(request) = next {
        next = session.obey(request)?;
    }
    Ok(())
}

struct Session<R: BufRead, W: Write> {
    requests: Lines<R>,
    answers: W,
}

impl<R: BufRead, W: Write> Session<R, W> {
    /// Answers a request that comes while nothing is loaded, and what follows from it. Answers the
    /// request after that.
    fn obey(&mut self, request: Request) -> io::Result<Option<Request>> {
        match request {
            Request::Describe => self.say(&describe())?,
            Request::Prove | Request::Pass => self.refuse("nothing is loaded")?,
            Request::Load { task, variant, files } => {
                return self.load(&task, &variant, &files);
            }
        }
        self.next()
    }

    /// The files live as long as this call, and the work borrows from them.
    fn load(
        &mut self,
        task: &str,
        variant: &str,
        files: &[PathBuf],
    ) -> io::Result<Option<Request>> {
        match read(files) {
            Ok(files) => match open(task, variant, &files, &Bump::new()) {
                Ok(work) => return self.work(work),
                Err(error) => self.refuse(&error)?,
            },
            Err(error) => self.refuse(&error)?,
        }
        self.next()
    }

    /// Answers requests about `work` until one asks for something else.
    fn work(&mut self, mut work: Box<dyn Work + '_>) -> io::Result<Option<Request>> {
        self.say(&work.loaded())?;
        loop {
            match self.next()? {
                Some(Request::Prove) => {
                    let counts = work.prove();
                    let allocations = work.allocations();
                    self.say(&Proof { counts, allocations, reason: work.reason() })?;
                }
                Some(Request::Pass) => {
                    let start = Instant::now();
                    work.pass();
                    let ns = start.elapsed().as_nanos() as u64;
                    self.say(&Timing {
                        ns,
                        stages_ns: work.stages_ns(),
                        chunks_ns: work.chunks_ns(),
                    })?;
                }
                other => return Ok(other),
            }
        }
    }

    /// The next request that can be read; the others are refused.
    fn next(&mut self) -> io::Result<Option<Request>> {
        while let Some(line) = self.requests.next().transpose()? {
            match serde_json::from_str(&line) {
                Ok(request) => return Ok(Some(request)),
                Err(error) => self.refuse(&error.to_string())?,
            }
        }
        Ok(None)
    }

    fn refuse(&mut self, error: &str) -> io::Result<()> {
        self.say(&Failure { error: error.to_owned() })
    }

    fn say(&mut self, answer: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.answers, answer)?;
        self.answers.write_all(b"\n")?;
        self.answers.flush()
    }
}

/// A task made ready.
trait Work {
    /// What was read.
    fn loaded(&self) -> Loaded;
    /// Does the work once and counts what comes out.
    fn prove(&mut self) -> Counts;
    /// Does the same work once, uncounted.
    fn pass(&mut self);
    /// How long each stage of the last pass took, of work that has stages.
    fn stages_ns(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
    /// How long each chunk of the last pass took, of work that tells it.
    fn chunks_ns(&self) -> Vec<u64> {
        Vec::new()
    }
    /// How often a pass asks the heap for memory once it is warm, of work that can tell.
    fn allocations(&mut self) -> Option<u64> {
        None
    }
    /// Why the last proof refused what it judged, if it did.
    fn reason(&self) -> Option<String> {
        None
    }
}

fn describe() -> Description {
    let task = |task: Task| {
        let made = |(name, checks): Variant| {
            (name, checks.iter().map(|check| (*check).to_owned()).collect())
        };
        (task.name().to_owned(), variants(task).into_iter().map(made).collect())
    };
    Description {
        engine: concat!("wireproof ", env!("CARGO_PKG_VERSION")).to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        language: "rust".to_owned(),
        tasks: Task::ALL.into_iter().map(task).collect(),
    }
}

/// A name, and the checks that the measured path makes.
type Variant = (String, &'static [&'static str]);

fn variants(task: Task) -> Vec<Variant> {
    match task {
        Task::Decode => decode::variants().collect(),
        Task::Sigs => sigs::variants().collect(),
        Task::Schnorr => schnorr::variants().collect(),
        Task::Mst => mst::variants().collect(),
        Task::Repo => repo::variants().collect(),
        Task::Commit => commit::variants().collect(),
        Task::Hostile => hostile::variants().collect(),
        _ => nostr::variants(task),
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}

/// Makes the work of `task` ready, which borrows from the files and keeps what it reads from them in
/// `arena`.
fn open<'f>(
    task: &str,
    variant: &str,
    files: &'f [Vec<u8>],
    arena: &'f Bump,
) -> Result<Box<dyn Work + 'f>, String> {
    let opened = match Task::from_name(task) {
        Some(Task::Decode) => decode::open(variant, files)?,
        Some(Task::Sigs) => sigs::open(variant, files)?,
        Some(Task::Schnorr) => schnorr::open(variant, files)?,
        Some(Task::Mst) => mst::open(variant, files)?,
        Some(Task::Repo) => repo::open(variant, files)?,
        Some(Task::Commit) => commit::open(variant, files)?,
        Some(Task::Hostile) => hostile::open(variant, files)?,
        Some(task) => nostr::open(task, variant, files, arena)?,
        None => None,
    };
    opened.ok_or_else(|| format!("no variant {variant:?} of task {task:?} here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpora::nostr as events;
    use simnet::keys::Curve;
    use simnet::{
        firehose, hostile as hostile_set, repository_corpus, schnorr_events, signed_commits,
        tree_records,
    };
    use wireproof::atproto::corpus;
    use wireproof::atproto::event::{Event, Info};

    fn answers(requests: &str) -> Vec<serde_json::Value> {
        let mut answers = Vec::new();
        serve(requests.as_bytes(), &mut answers).unwrap();
        let lines = str::from_utf8(&answers).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Loads `file` for each variant of `task`, and answers each one's units and counts.
    fn prove_all(task: Task, file: &[u8]) -> Vec<(String, u64, serde_json::Value)> {
        prove_all_of(task, &[file])
    }

    fn prove_all_of(task: Task, files: &[&[u8]]) -> Vec<(String, u64, serde_json::Value)> {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> =
            (0..files.len()).map(|n| dir.path().join(n.to_string())).collect();
        for (path, file) in paths.iter().zip(files) {
            std::fs::write(path, file).unwrap();
        }
        let prove = |(variant, _): Variant| {
            let load = Request::Load {
                task: task.name().to_owned(),
                variant: variant.clone(),
                files: paths.clone(),
            };
            let load = serde_json::to_string(&load).unwrap();
            let rest = "{\"cmd\":\"pass\"}\n{\"cmd\":\"prove\"}\n{\"cmd\":\"pass\"}\n";
            let answers = answers(&format!("{load}\n{rest}"));
            assert!(answers[1]["ns"].is_u64() && answers[3]["ns"].is_u64(), "{variant}");
            let units = answers[0]["units"].as_u64().unwrap();
            (variant, units, answers[2]["counts"].clone())
        };
        variants(task).into_iter().map(prove).collect()
    }

    #[test]
    fn every_variant_of_decode_can_be_loaded_proved_and_timed() {
        let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
        let file = corpus::write([frame.as_slice(), b"bad"]);
        for (variant, units, counts) in prove_all(Task::Decode, &file) {
            assert_eq!((units, &counts["frames"]), (2, &2.into()), "{variant}");
            assert_ne!(counts["errors"], 0, "{variant}");
        }
    }

    #[test]
    fn every_variant_of_sigs_finds_what_was_signed_and_what_was_not() {
        let made = signed_commits::Corpus::generate(&signed_commits::Spec {
            accounts: 40,
            ..signed_commits::Spec::mixed()
        });
        let file = made.to_file();
        let mut entries = signed_commits::read(&file).unwrap();
        let (first, key_of_another) = (entries[1].commit, entries[0].key);
        entries[0].commit = &first[1..];
        entries[2].key = key_of_another;
        entries[3].key = &[0; 33];
        let p256 = entries.iter().skip(4).filter(|entry| entry.curve == Curve::P256).count();
        let file = signed_commits::write(entries);
        for (variant, units, counts) in prove_all(Task::Sigs, &file) {
            let (k256, invalid, errors) = (320 - 4 - p256 + 1, 1, 2);
            let expected = serde_json::json!({"commits": 320, "valid_k256": k256,
                "valid_p256": p256, "invalid": invalid, "errors": errors});
            assert_eq!((units, counts), (320, expected), "{variant}");
        }
    }

    #[test]
    fn every_variant_of_schnorr_finds_what_was_signed_and_what_was_not() {
        let made = schnorr_events::Corpus::generate(&schnorr_events::Spec {
            events: 300,
            ..schnorr_events::Spec::quick()
        });
        let [first, second] = [0, 1].map(|at| &made.events()[at]);
        let forged = schnorr_events::Event { sig: second.sig, ..first.clone() };
        let nobody = schnorr_events::Event { pubkey: [0xff; 32], ..first.clone() };
        let file = format!("{}{}\n{}\n{{}}\n", made.to_file(), forged.to_json(), nobody.to_json());
        let expected = serde_json::json!({"events": 303, "valid": 300, "invalid": 1, "errors": 2});
        for (variant, units, counts) in prove_all(Task::Schnorr, file.as_bytes()) {
            assert_eq!((units, &counts), (303, &expected), "{variant}");
        }
    }

    #[test]
    fn every_variant_of_the_nostr_tasks_finds_what_the_corpus_holds() {
        let made = schnorr_events::Corpus::generate(&schnorr_events::Spec::quick());
        let file = format!("#first\n{}", made.to_file());
        let groups = events::groups(file.as_bytes()).unwrap();
        let arena = Bump::new();
        let held = events::events(&groups, &arena).unwrap();
        for task in Task::NOSTR {
            let others: BTreeMap<_, _> = events::expected(task, &held).into_iter().collect();
            let usual = events::usual(task, &held);
            for (variant, units, counts) in prove_all(task, file.as_bytes()) {
                let expected = others.get(&variant).unwrap_or(&usual);
                let expected = serde_json::to_value(expected).unwrap();
                assert_eq!((units, &counts), (256, &expected), "{} {variant}", task.name());
            }
        }
    }

    #[test]
    fn a_forged_event_is_invalid_alone_and_among_others() {
        let made = schnorr_events::Corpus::generate(&schnorr_events::Spec::quick());
        let [first, second] = [0, 1].map(|at| &made.events()[at]);
        let forged = schnorr_events::Event { sig: second.sig, ..first.clone() };
        let file = format!("{}{}\n", made.to_file(), forged.to_json());
        let expected = serde_json::json!({"events": 257, "valid": 256, "invalid": 1, "errors": 0});
        for (variant, _, counts) in prove_all(Task::NostrValidated, file.as_bytes()) {
            assert_eq!(counts, expected, "{variant}");
        }
    }

    #[test]
    fn every_variant_of_mst_makes_the_root_of_the_simulation_and_finds_what_is_there() {
        let made = tree_records::Corpus::generate(&tree_records::Spec::quick());
        let expected = serde_json::to_value(made.counts()).unwrap();
        for (variant, units, counts) in prove_all(Task::Mst, &made.to_file()) {
            let is_lookup = variant.starts_with("lookup");
            assert_eq!(units, if is_lookup { 8_000 } else { 2_000 }, "{variant}");
            let given = counts.as_object().unwrap();
            assert_eq!(given.len(), if is_lookup { 3 } else { 2 }, "{variant}");
            assert!(
                given.iter().all(|(name, count)| *count == expected[name]),
                "{variant}: {counts}"
            );
        }
    }

    fn stream() -> firehose::Corpus {
        let spec = firehose::Spec { frames: 60, ..firehose::Spec::quick() };
        firehose::Corpus::generate(&spec, &mut |_, _| {})
    }

    #[test]
    fn every_variant_of_commit_accepts_the_whole_stream_with_every_pass() {
        let made = stream();
        let accounts = serde_json::to_vec(&made.account_keys()).unwrap();
        let expected = serde_json::to_value(made.verdicts()).unwrap();
        for (variant, units, counts) in prove_all_of(Task::Commit, &[&made.to_file(), &accounts]) {
            assert_eq!((units, &counts), (60, &expected), "{variant}");
        }
    }

    #[test]
    fn every_variant_of_commit_refuses_what_others_signed() {
        let made = stream();
        let mut keys = made.account_keys();
        let stranger = keys.values().next_back().unwrap().clone();
        let first = keys.keys().next().unwrap().clone();
        keys.insert(first, stranger);
        let accounts = serde_json::to_vec(&keys).unwrap();
        for (variant, _, counts) in prove_all_of(Task::Commit, &[&made.to_file(), &accounts]) {
            let refused = counts["refused"].as_u64().unwrap();
            assert!(refused > 0 && counts["accepted"] == 60 - refused, "{variant}: {counts}");
        }
    }

    fn export() -> (repository_corpus::Corpus, Vec<u8>, Vec<u8>) {
        let spec = repository_corpus::Spec { records: 300, ..repository_corpus::Spec::quick() };
        let made = repository_corpus::Corpus::generate(&spec);
        let car = made.to_file();
        let manifest = repository_corpus::Manifest::new(&made, &car);
        (made, car, serde_json::to_vec(&manifest).unwrap())
    }

    #[test]
    fn every_variant_of_repo_finds_what_was_exported() {
        let (made, car, owner) = export();
        let expected = serde_json::to_value(made.counts()).unwrap();
        for (variant, units, counts) in prove_all_of(Task::Repo, &[&car, &owner]) {
            assert_eq!(units, 1, "{variant}");
            let given = counts.as_object().unwrap();
            assert_eq!(given.contains_key("rebuilt_root"), variant == "total/rebuild");
            assert!(
                given.iter().all(|(name, count)| *count == expected[name]),
                "{variant}: {counts}"
            );
            assert_eq!(given.len(), if variant == "total" { 6 } else { 7 });
        }
    }

    #[test]
    fn every_variant_of_repo_names_the_rule_that_a_changed_export_breaks() {
        let (_, mut car, owner) = export();
        *car.last_mut().unwrap() ^= 1;
        for (variant, _, counts) in prove_all_of(Task::Repo, &[&car, &owner]) {
            assert_eq!(counts["valid"], 0, "{variant}");
            assert!(counts["root"].as_str().unwrap().starts_with("car/hash"), "{counts}");
        }
    }

    #[test]
    fn the_stages_of_a_pass_add_up_to_it() {
        let (_, car, owner) = export();
        let files = [car, owner];
        let mut work = repo::open("total/rebuild", &files).unwrap().unwrap();
        let start = Instant::now();
        work.pass();
        let ns = start.elapsed().as_nanos() as u64;
        let stages = work.stages_ns();
        assert_eq!(stages.keys().collect::<Vec<_>>(), ["parse", "rebuild", "signature", "walk"]);
        assert!(stages.values().sum::<u64>() <= ns, "{stages:?} of {ns}");
    }

    #[test]
    fn a_hostile_case_is_answered_with_the_rule_that_it_breaks_and_a_valid_one_with_none() {
        let set = hostile_set::CaseSet::generate(&hostile_set::Spec::default());
        for name in ["tree/prefix-500", "event/an-event-again", "event/create-k256"] {
            let case = set.cases().iter().find(|case| case.name == name).unwrap();
            let given = serde_json::to_vec(&hostile_set::CaseContext::new(case)).unwrap();
            let variant = if case.kind == hostile_set::InputKind::Repo { "repo" } else { "frames" };
            let files = [case.bytes.clone(), given];
            let mut work = hostile::open(variant, &files).unwrap().unwrap();
            let refused = work.prove().get("refused");
            assert_eq!(refused, Some(u64::from(case.code.is_some())), "{name}");
            let said = work.reason();
            assert_eq!(
                said.as_deref().and_then(|said| said.split(':').next()),
                case.code,
                "{name}"
            );
        }
    }

    #[test]
    fn what_cannot_be_done_is_answered_with_an_error_and_the_session_goes_on() {
        let answers = answers(concat!(
            "{\"cmd\":\"pass\"}\n",
            "<html>\n",
            "{\"cmd\":\"load\",\"task\":\"decode\",\"variant\":\"verified/arena-reuse\",\"files\":[\"/nowhere\"]}\n",
            "{\"cmd\":\"load\",\"task\":\"paint\",\"variant\":\"red\",\"files\":[]}\n",
            "{\"cmd\":\"describe\"}\n",
        ));
        assert!(answers[..4].iter().all(|answer| answer["error"].is_string()), "{answers:?}");
        assert_eq!(answers[4]["language"], "rust");
    }
}
