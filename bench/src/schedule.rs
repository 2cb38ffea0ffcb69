//! Builds several peers at once: at most one build per tool, and at most as many as there are cores.
//!
//! Builds of one tool run one after the other because they share its target folder or cache, and lock it. A build never
//! runs while a peer is measured.

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;

use crate::build::{Builder, LaunchCommand};
use crate::peers::Peer;

/// The command line of a built peer, or the reason why it could not be built.
pub(crate) type Built = Result<LaunchCommand, String>;

/// Builds `peers`, beginning with the first ones, and returns their results.
///
/// `changed` is called with the peers that are being built and the number of finished ones, whenever these change.
pub(crate) fn build_all(
    builder: &Builder,
    peers: &[Peer],
    changed: &mut dyn FnMut(&[&str], u64),
) -> Vec<Built> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut queue = Queue::new(peers, cores);
    let mut results: Vec<Built> = peers.iter().map(|_| Err("not built".to_owned())).collect();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        loop {
            while let Some(at) = queue.start() {
                let sender = sender.clone();
                scope.spawn(move || sender.send((at, builder.prepare(&peers[at]))));
            }
            if queue.running.is_empty() {
                return;
            }
            changed(&queue.names(), queue.finished);
            let Ok((at, result)) = receiver.recv() else { return };
            results[at] = result;
            queue.finish(at);
        }
    });
    results
}

/// The peers to build, by index.
struct Queue<'p> {
    peers: &'p [Peer],
    cores: usize,
    waiting: Vec<usize>,
    running: Vec<usize>,
    finished: u64,
}

impl<'p> Queue<'p> {
    fn new(peers: &'p [Peer], cores: usize) -> Self {
        let waiting = (0..peers.len()).collect();
        Self { peers, cores, waiting, running: Vec::new(), finished: 0 }
    }

    /// Starts the first waiting peer whose tool is free, if there is one and a core for it.
    fn start(&mut self) -> Option<usize> {
        if self.running.len() >= self.cores {
            return None;
        }
        let language = |at: usize| self.peers[at].language();
        let is_free = |at: &usize| self.running.iter().all(|busy| language(*busy) != language(*at));
        let next = self.waiting.iter().position(is_free)?;
        let at = self.waiting.remove(next);
        self.running.push(at);
        Some(at)
    }

    fn finish(&mut self, at: usize) {
        self.running.retain(|running| *running != at);
        self.finished += 1;
    }

    fn names(&self) -> Vec<&'p str> {
        self.running.iter().map(|at| self.peers[*at].id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::peers::{Language, PeerSource};

    fn peers(languages: &[(&str, Language)]) -> Vec<Peer> {
        let peer = |(id, language): &(&str, Language)| {
            let source = PeerSource::Folder { dir: PathBuf::from(id), language: *language };
            Peer { id: (*id).to_owned(), source }
        };
        languages.iter().map(peer).collect()
    }

    #[test]
    fn builds_of_different_tools_run_at_once_and_those_of_one_tool_in_order() {
        let peers = peers(&[
            ("rust-a", Language::Rust),
            ("rust-b", Language::Rust),
            ("go-a", Language::Go),
            ("python-a", Language::Python),
        ]);
        let mut queue = Queue::new(&peers, 2);
        assert_eq!([queue.start(), queue.start(), queue.start()], [Some(0), Some(2), None]);
        assert_eq!(queue.names(), ["rust-a", "go-a"]);
        queue.finish(2);
        assert_eq!([queue.start(), queue.start()], [Some(3), None]);
        queue.finish(0);
        assert_eq!(queue.start(), Some(1));
        assert_eq!(queue.names(), ["python-a", "rust-b"]);
    }

    #[test]
    fn one_core_builds_one_peer_at_a_time() {
        let peers = peers(&[("rust-a", Language::Rust), ("go-a", Language::Go)]);
        let mut queue = Queue::new(&peers, 1);
        assert_eq!([queue.start(), queue.start()], [Some(0), None]);
        queue.finish(0);
        assert_eq!((queue.start(), queue.finished), (Some(1), 1));
    }

    #[test]
    fn every_peer_has_a_result_and_the_steps_count_the_finished_ones() {
        let dir = tempfile::tempdir().unwrap();
        let builder = Builder::new(dir.path(), std::time::Duration::from_secs(60));
        let peers = peers(&[("a", Language::Executable), ("b", Language::Executable)]);
        let mut steps = Vec::new();
        let results = build_all(&builder, &peers, &mut |names, done| {
            steps.push((names.join(" "), done));
        });
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(steps, [("a".to_owned(), 0), ("b".to_owned(), 1)]);
    }
}
