//! The peers: the programs in the runners folder and our own runner, each with the way it is built.

use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::{Plan, RunnerCommand};
use crate::{BenchError, own};

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

/// How the program in a runner's folder is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Go,
    Python,
    Node,
    /// An executable called `runner` that needs no build.
    Executable,
}

impl Language {
    /// The language of the program in `dir`; `None` for a folder that is no runner, such as the shared code of a
    /// language.
    fn of(dir: &Path) -> Option<Self> {
        let entry_points = [
            ("src/main.rs", Self::Rust),
            ("main.go", Self::Go),
            ("runner.py", Self::Python),
            ("runner.mjs", Self::Node),
            ("runner", Self::Executable),
        ];
        let found = entry_points.into_iter().find(|(file, _)| dir.join(file).is_file());
        found.map(|(_, language)| language)
    }
}

/// The peers of the plan, our own runner first.
pub(crate) fn choose(plan: &Plan) -> Result<Vec<Peer>, BenchError> {
    let known = known_peers(plan)?;
    let Some(requested) = &plan.peers else { return Ok(known) };
    if let Some(unknown) = requested.iter().find(|id| !known.iter().any(|peer| peer.id == **id)) {
        let known = known.into_iter().map(|peer| peer.id).collect();
        return Err(BenchError::UnknownPeer { requested: unknown.clone(), known });
    }
    Ok(known.into_iter().filter(|peer| requested.contains(&peer.id)).collect())
}

fn known_peers(plan: &Plan) -> Result<Vec<Peer>, BenchError> {
    let runners = std::path::absolute(&plan.runners).map_err(BenchError::io(&plan.runners))?;
    let mut peers = Vec::new();
    for entry in fs::read_dir(&runners).map_err(BenchError::io(&runners))? {
        let dir = entry.map_err(BenchError::io(&runners))?.path();
        if let Some(language) = Language::of(&dir) {
            let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            peers.push(Peer { id, source: PeerSource::Folder { dir, language } });
        }
    }
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(own) = &plan.own {
        peers.insert(0, Peer { id: own::PEER.to_owned(), source: PeerSource::Own(own.clone()) });
    }
    Ok(peers)
}
