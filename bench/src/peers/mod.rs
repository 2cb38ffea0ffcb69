//! Which peers are there, and how is each started?

mod build;

use std::fs;
use std::path::{Path, PathBuf};

use crate::BenchError;
use crate::own;
use crate::plan::{Plan, RunnerCommand};

pub(crate) use build::{Launch, Workshop};

/// A program that can be measured.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) id: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Own(RunnerCommand),
    Runner { dir: PathBuf, language: Language },
}

/// How the program in a runner's folder is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rust,
    Go,
    Python,
    Node,
    /// An executable called `runner`, made by someone else.
    Ready,
}

impl Language {
    /// The language of the program in `dir`; `None` for a folder that is no runner, such as what the
    /// runners of a language share.
    fn of(dir: &Path) -> Option<Self> {
        let marks = [
            ("src/main.rs", Self::Rust),
            ("main.go", Self::Go),
            ("runner.py", Self::Python),
            ("runner.mjs", Self::Node),
            ("runner", Self::Ready),
        ];
        marks.into_iter().find(|(file, _)| dir.join(file).is_file()).map(|(_, language)| language)
    }
}

/// The peers that the plan asks for, ourselves first.
pub(crate) fn choose(plan: &Plan) -> Result<Vec<Peer>, BenchError> {
    let known = known(plan)?;
    let Some(asked) = &plan.peers else { return Ok(known) };
    if let Some(stranger) = asked.iter().find(|id| !known.iter().any(|peer| peer.id == **id)) {
        let known = known.into_iter().map(|peer| peer.id).collect();
        return Err(BenchError::UnknownPeer { asked: stranger.clone(), known });
    }
    Ok(known.into_iter().filter(|peer| asked.contains(&peer.id)).collect())
}

fn known(plan: &Plan) -> Result<Vec<Peer>, BenchError> {
    let runners = std::path::absolute(&plan.runners).map_err(BenchError::io(&plan.runners))?;
    let mut peers = Vec::new();
    for entry in fs::read_dir(&runners).map_err(BenchError::io(&runners))? {
        let dir = entry.map_err(BenchError::io(&runners))?.path();
        if let Some(language) = Language::of(&dir) {
            let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            peers.push(Peer { id, kind: Kind::Runner { dir, language } });
        }
    }
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(own) = &plan.own {
        peers.insert(0, Peer { id: own::PEER.to_owned(), kind: Kind::Own(own.clone()) });
    }
    Ok(peers)
}
