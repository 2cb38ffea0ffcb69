//! The peers: the programs in the runners folder and our own runner, with their build steps and the task that needs them
//! first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::{Plan, RunnerCommand};
use crate::{BenchError, Task, Unavailable, own};

/// A program that can be measured.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) id: String,
    pub(crate) source: PeerSource,
}

/// The origin of a peer's program.
#[derive(Clone, Debug)]
pub(crate) enum PeerSource {
    Own(RunnerCommand),
    Folder { dir: PathBuf, language: Language },
}

impl Peer {
    /// The language whose tools build this peer; `None` for our own runner.
    pub(crate) fn language(&self) -> Option<Language> {
        match &self.source {
            PeerSource::Own(_) => None,
            PeerSource::Folder { language, .. } => Some(*language),
        }
    }
}

/// How the program in a runner's folder is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Go,
    Python,
    Node,
    Zig,
    /// An executable called `runner` that needs no build.
    Executable,
}

impl Language {
    /// The language of the program in `dir`; `None` for a folder without a runner, such as the shared code of a
    /// language.
    fn of(dir: &Path) -> Option<Self> {
        let entry_points = [
            ("src/main.rs", Self::Rust),
            ("main.go", Self::Go),
            ("runner.py", Self::Python),
            ("runner.mjs", Self::Node),
            ("build.zig", Self::Zig),
            ("runner", Self::Executable),
        ];
        let found = entry_points.into_iter().find(|(file, _)| dir.join(file).is_file());
        found.map(|(_, language)| language)
    }
}

/// The peers by task, without our own runner: `bench/runners/tasks.json`.
///
/// A peer's tasks are known before it is built, so that a run builds only the peers of its tasks, in the order of the tasks.
struct TaskPeers(BTreeMap<String, Vec<String>>);

impl TaskPeers {
    fn read() -> Self {
        let tasks = serde_json::from_str(include_str!("../tasks.json"));
        Self(tasks.expect("a test reads this file"))
    }

    fn of(&self, task: Task) -> &[String] {
        self.0.get(task.name()).map_or(&[], Vec::as_slice)
    }

    /// The index of the first of `tasks` that needs `peer`, which is the first task of all for a peer without a list;
    /// `None` if none of them does.
    fn first_need(&self, peer: &str, tasks: &[Task]) -> Option<usize> {
        let is_listed = |peers: &[String]| peers.iter().any(|listed| listed == peer);
        if !self.0.values().any(|peers| is_listed(peers)) {
            return Some(0);
        }
        tasks.iter().position(|task| is_listed(self.of(*task)))
    }
}

/// The peers of a run.
pub(crate) struct ChosenPeers {
    /// The peers, with the index of the first task that needs them, in the order of these; our own runner first.
    pub(crate) peers: Vec<(usize, Peer)>,
    /// Peers that cannot be built, or have no task of the plan although it names them.
    pub(crate) unavailable: Vec<Unavailable>,
}

/// The peers that `tasks` of the plan need.
pub(crate) fn choose(plan: &Plan, tasks: &[Task]) -> Result<ChosenPeers, BenchError> {
    let listed = TaskPeers::read();
    let known = known_peers(plan)?;
    let absent = absent_peers(plan, &known, &listed);
    let ids = || known.iter().map(|peer| &peer.id).chain(&absent);
    let is_chosen = |id: &String| plan.peers.as_ref().is_none_or(|peers| peers.contains(id));
    if let Some(unknown) = plan.peers.iter().flatten().find(|id| !ids().any(|known| known == *id)) {
        let known = ids().cloned().collect();
        return Err(BenchError::UnknownPeer { requested: unknown.clone(), known });
    }

    let mut chosen = ChosenPeers { peers: Vec::new(), unavailable: Vec::new() };
    for peer in known.iter().filter(|peer| is_chosen(&peer.id)) {
        match listed.first_need(&peer.id, tasks) {
            Some(need) => chosen.peers.push((need, peer.clone())),
            None if plan.peers.is_some() => chosen.unavailable.push(without_task(&peer.id)),
            None => {}
        }
    }
    chosen.peers.sort_by_key(|(need, _)| *need);
    for id in absent.iter().filter(|id| is_chosen(id)) {
        if listed.first_need(id, tasks).is_some() {
            let reason = NO_RUNNERS.to_owned();
            chosen.unavailable.push(Unavailable { peer: id.clone(), reason });
        }
    }
    Ok(chosen)
}

/// A peer that the plan names and that has none of its tasks.
pub(crate) fn without_task(id: &str) -> Unavailable {
    let reason = "has none of the requested tasks".to_owned();
    Unavailable { peer: id.to_owned(), reason }
}

/// Our own runner, and the runners folder's in alphabetical order.
fn known_peers(plan: &Plan) -> Result<Vec<Peer>, BenchError> {
    let mut peers = match &plan.runners {
        Some(runners) => peers_in(runners)?,
        None => Vec::new(),
    };
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(own) = &plan.own {
        peers.insert(0, Peer { id: own::PEER.to_owned(), source: PeerSource::Own(own.clone()) });
    }
    Ok(peers)
}

fn peers_in(runners: &Path) -> Result<Vec<Peer>, BenchError> {
    let runners = std::path::absolute(runners).map_err(BenchError::io(runners))?;
    let mut peers = Vec::new();
    for entry in fs::read_dir(&runners).map_err(BenchError::io(&runners))? {
        let dir = entry.map_err(BenchError::io(&runners))?.path();
        if let Some(language) = Language::of(&dir) {
            let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            peers.push(Peer { id, source: PeerSource::Folder { dir, language } });
        }
    }
    Ok(peers)
}

/// The listed peers, if the plan has no folder of runners to build them from.
fn absent_peers(plan: &Plan, known: &[Peer], listed: &TaskPeers) -> Vec<String> {
    if plan.runners.is_some() {
        return Vec::new();
    }
    let mut absent: Vec<String> = listed.0.values().flatten().cloned().collect();
    absent.retain(|id| !known.iter().any(|peer| peer.id == *id));
    absent.sort();
    absent.dedup();
    absent
}

/// Why the peers are missing where there is no folder of runners, and the fix.
const NO_RUNNERS: &str = "no source to build it from: give the folder bench/runners of a clone with --runners, \
    or use `cargo run --release -p wireproof-bench-cli -- bench` in a clone";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_task_is_one_and_every_listed_peer_is_a_runner() {
        let runners = Path::new(env!("CARGO_MANIFEST_DIR")).join("runners");
        for (task, peers) in TaskPeers::read().0 {
            assert!(Task::from_name(&task).is_some(), "{task}");
            for peer in peers {
                assert!(Language::of(&runners.join(&peer)).is_some(), "{peer}");
            }
        }
    }

    #[test]
    fn a_peer_is_needed_by_the_first_of_its_tasks_and_an_unlisted_one_by_the_first_of_all() {
        let listed = TaskPeers::read();
        let tasks = [Task::Decode, Task::Sigs, Task::NostrFields];
        assert_eq!(listed.first_need("rust-raw", &tasks), Some(0));
        assert_eq!(listed.first_need("rust-libsecp256k1", &tasks), Some(1));
        assert_eq!(listed.first_need("rust-buffa", &tasks), Some(2));
        assert_eq!(listed.first_need("rust-repo-stream", &tasks), None);
        assert_eq!(listed.first_need("of-a-user", &tasks), Some(0));
    }

    #[test]
    fn without_runners_our_own_is_left_and_the_others_are_named_with_the_cure() {
        let own =
            RunnerCommand { program: PathBuf::from("wireproof"), args: Vec::new(), backend: None };
        let plan = Plan { runners: None, own: Some(own), ..Plan::default() };
        let chosen = choose(&plan, &[Task::Commit]).unwrap();
        let ids: Vec<_> = chosen.peers.iter().map(|(_, peer)| peer.id.as_str()).collect();
        assert_eq!(ids, [own::PEER]);
        let names: Vec<_> = chosen.unavailable.iter().map(|peer| peer.peer.as_str()).collect();
        assert!(names.contains(&"go-indigo") && !names.contains(&"rust-nostr"), "{names:?}");
        assert!(chosen.unavailable.iter().all(|peer| peer.reason.contains("--runners")));
    }
}
