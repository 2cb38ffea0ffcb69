//! Our own runner: the tasks as any caller would do them, served by the command's own binary with the protocol of all
//! runners; and the reference counts of captured corpora.

pub(crate) mod commit;
pub(crate) mod decode;
mod hostile;
pub(crate) mod mst;
pub(crate) mod nostr;
pub(crate) mod repo;
pub(crate) mod schnorr;
pub(crate) mod sigs;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use bumpalo::Bump;
use protocol::{BoxError, Description, Load, Service, Session, Work};
pub use results::{PEER, is_ours};

use crate::Task;

/// Answers `requests` until they end.
///
/// # Errors
/// If reading or writing fails.
pub fn serve(requests: impl BufRead, answers: impl Write) -> io::Result<()> {
    protocol::serve(&OwnRunner, requests, answers)
}

struct OwnRunner;

impl Service for OwnRunner {
    fn describe(&self) -> Description {
        let owned = |(name, checks): (String, Vec<&str>)| {
            (name, checks.into_iter().map(str::to_owned).collect())
        };
        let of_task =
            |task: Task| (task.name().to_owned(), variants(task).into_iter().map(owned).collect());
        Description {
            engine: concat!("wireproof ", env!("CARGO_PKG_VERSION")).to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: "rust".to_owned(),
            tasks: Task::ALL.into_iter().map(of_task).collect(),
        }
    }

    /// Reads the files; the work borrows from them, and from an arena for values built from them.
    fn load(&self, load: &Load, session: &mut Session<'_>) -> Result<(), BoxError> {
        let files = load.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let arena = Bump::new();
        let mut work = open(&load.task, &load.variant, &files, &arena)?;
        session(&mut *work);
        Ok(())
    }
}

/// Variants by name, with the checks that their measured paths make.
type Variants = Vec<(String, Vec<&'static str>)>;

fn variants(task: Task) -> Variants {
    match task {
        Task::Decode => decode::variants(),
        Task::Sigs => sigs::variants(),
        Task::Schnorr => schnorr::variants(),
        Task::Mst => mst::variants(),
        Task::Repo => repo::variants(),
        Task::Commit => commit::variants(),
        Task::Hostile => hostile::variants(),
        _ => nostr::variants(task),
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn open<'f>(
    task: &str,
    variant: &str,
    files: &'f [Vec<u8>],
    arena: &'f Bump,
) -> Result<Box<dyn Work + 'f>, BoxError> {
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
    Ok(opened.ok_or_else(|| format!("unknown variant {variant:?} of task {task:?}"))?)
}
