//! Which events stand for a kind, or for a class of size or of tags? Some of each, drawn from a file that
//! has them in no order.

use std::path::{Path, PathBuf};

use bumpalo::Bump;
use simnet::nostr_sampling::{Sampler, grouped_lines};
use wireproof::kernels::sha256;

use super::{hex, make, nostr};
use crate::error::CorpusFault;
use crate::{BenchError, Task};

/// The groups that `task` works on, if it works on groups and `file` has none.
pub(super) fn drawn(task: Task, path: &Path, file: &[u8]) -> Result<Option<Vec<u8>>, BenchError> {
    if !matches!(task, Task::NostrByKind | Task::NostrByCategory) || file.starts_with(b"#") {
        return Ok(None);
    }
    let groups = draw(task, file);
    groups.map(Some).map_err(|fault| BenchError::Corpus { path: path.to_owned(), fault })
}

/// Writes drawn groups to a file of their own, that runners can load.
pub(super) fn keep(task: Task, groups: &[u8], work_dir: &Path) -> Result<PathBuf, BenchError> {
    let digest = hex(&sha256::digest(groups));
    let path = work_dir.join(format!("corpora/drawn-{digest:.12}/{}.jsonl", task.name()));
    make::replace(&path, groups)?;
    Ok(path)
}

fn draw(task: Task, file: &[u8]) -> Result<Vec<u8>, CorpusFault> {
    let arena = Bump::new();
    let groups = nostr::groups(file).ok_or(CorpusFault::Lines)?;
    let events = nostr::events(&groups, &arena)?;
    let sampler = Sampler::default();
    let drawn = match task {
        Task::NostrByKind => sampler.by_kinds(&events, GROUP_EVENTS),
        _ => sampler.by_categories(&events, GROUP_EVENTS),
    };
    Ok(grouped_lines(&drawn).into_bytes())
}

/// Events that stand for a group, at most.
const GROUP_EVENTS: usize = 100;
