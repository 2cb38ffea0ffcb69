//! The lines of the operations of a line: flat, with the keys of its event.

use crate::line::{Body, Claims, Line, Operation, Proof};
use crate::operation::Op;
use crate::text::Text;
use crate::words::ProvedLevel;

/// The data that every operation of a line takes from it.
struct Source<'l> {
    host: &'l str,
    seq: Option<i64>,
    repeated: bool,
    time: Option<&'l Text<'l>>,
    rev: &'l str,
    commit: Option<&'l Text<'l>>,
    verified_against: Option<ProvedLevel>,
    message: Option<&'l Text<'l>>,
    piece: Option<u64>,
    whole: Option<bool>,
    last: bool,
    ops: &'l [Op<'l>],
    proof: Option<&'l Proof<'l>>,
}

impl<'l> Line<'l> {
    /// The lines of the operations of a commit or a repository, in their order, with their ids; none of another line.
    pub fn operations(&self) -> impl Iterator<Item = Line<'_>> {
        self.source().into_iter().flat_map(move |source| {
            let ops = source.ops.iter().enumerate();
            ops.map(move |(index, op)| self.operation(&source, index, op)).collect::<Vec<_>>()
        })
    }

    fn source(&self) -> Option<Source<'_>> {
        match &self.body {
            Body::Event(event) => {
                let Claims::Commit(Some(commit)) = &event.claims else { return None };
                Some(Source {
                    host: &event.host,
                    seq: event.seq,
                    repeated: event.repeated,
                    time: commit.time.as_ref(),
                    rev: &commit.rev,
                    commit: commit.commit.as_ref(),
                    verified_against: event.verified_against,
                    message: event.message.as_ref(),
                    piece: None,
                    whole: None,
                    last: true,
                    ops: event.ops.as_deref()?,
                    proof: event.proof.as_ref(),
                })
            }
            Body::Resync(resync) => Some(Source {
                host: &resync.host,
                seq: None,
                repeated: false,
                time: resync.time.as_ref(),
                rev: &resync.rev,
                commit: Some(&resync.commit),
                verified_against: None,
                message: None,
                piece: Some(resync.piece),
                whole: Some(resync.whole),
                last: resync.last,
                ops: &resync.ops,
                proof: resync.proof.as_ref(),
            }),
            Body::Status(_) | Body::History { .. } | Body::Operation(_) => None,
        }
    }

    fn operation<'s>(&'s self, source: &Source<'s>, index: usize, op: &'s Op<'s>) -> Line<'s> {
        let id = self.id.as_ref().map(|id| format!("{id}/{}/{}", op.collection, op.rkey).into());
        let is_last = source.last && index + 1 == source.ops.len();
        let operation = Operation {
            host: source.host.into(),
            seq: source.seq,
            repeated: source.repeated,
            did: self.did().into(),
            time: source.time.map(Text::by_ref),
            rev: source.rev.into(),
            commit: source.commit.map(Text::by_ref),
            verified_against: source.verified_against,
            message: source.message.map(Text::by_ref),
            piece: source.piece,
            whole: source.whole,
            index: index as u64,
            last: is_last,
            op: op.by_ref(),
            proof: source.proof.filter(|_| index == 0).cloned(),
        };
        Line {
            id,
            live: self.live,
            verdict: self.verdict,
            code: self.code.clone(),
            body: Body::Operation(Box::new(operation)),
        }
    }
}
