//! Shared helpers: reproducible random numbers, and small valid inputs.

use atproto::event::{
    Account, Action, Commit, ErrorFrame, Event, Header, Identity, Info, RepoOp, Sync, Unknown,
};
use codec::Cid;
use codec::car::Writer;
use codec::cbor::Encoder;
use codec::cid::Codec;

/// Numbers that look random and are the same on every run (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// A record with every kind of value that the data model has.
pub(crate) fn record() -> Vec<u8> {
    let link = Cid::of(Codec::Raw, b"an image");
    let mut out = Encoder::new();
    out.map(6);
    out.text("n").null();
    out.text("ok").boolean(true).text("raw").bytes(&[0, 1, 255]);
    out.text("link").link(link.as_cid_ref());
    out.text("$type").text("app.example.note");
    out.text("numbers").array(4).integer(0).integer(-25).integer(70_000).integer(i64::MIN);
    out.into_bytes()
}

/// An archive of `blocks`, the first of which is the root.
pub(crate) fn archive(blocks: &[&[u8]]) -> Vec<u8> {
    let cids: Vec<Cid> = blocks.iter().map(|block| Cid::of(Codec::DagCbor, block)).collect();
    let mut writer = Writer::new(Vec::new(), &cids[..1]).unwrap();
    for (cid, block) in cids.iter().zip(blocks) {
        writer.block(cid, block).unwrap();
    }
    writer.into_inner()
}

/// A commit frame with a record, two other blocks, and every field that there is.
pub(crate) fn commit_frame() -> Vec<u8> {
    let commit = b"\xa1\x61c\x01";
    let node = b"\xa2\x61e\x80\x61l\xf6";
    let record = record();
    let car = archive(&[commit, node, &record]);
    let (commit, node) = (Cid::of(Codec::DagCbor, commit), Cid::of(Codec::DagCbor, node));
    let record = Cid::of(Codec::DagCbor, &record);
    let record = record.as_cid_ref();
    let path = "app.example.note/3mptbyplj5d2a";
    let created =
        RepoOp { action: Action::Create, path, cid: Some(record), prev: None, record: None };
    let deleted =
        RepoOp { action: Action::Delete, path, cid: None, prev: Some(record), record: None };
    let event = Event::Commit(Commit {
        seq: 31_527_015_322,
        repo: "did:plc:wq4aajammjtxdomz3e23667t",
        commit,
        rev: "3mptbypluud2a",
        since: Some("3mptbwv4pn32u"),
        car: &car,
        root: None,
        blocks: &[],
        ops: &[created, deleted],
        prev_data: Some(node),
        time: "2026-07-04T14:38:07.517Z",
        blobs: Some(&[record]),
        rebase: Some(false),
        too_big: Some(false),
    });
    event.to_frame()
}

/// One small frame of every kind, by its name.
pub(crate) fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let (did, time) = ("did:plc:wq4aajammjtxdomz3e23667t", "2026-07-04T14:38:07.517Z");
    let car = archive(&[b"\xa1\x61c\x01"]);
    let sync = Sync { seq: 9, did, car: &car, root: None, blocks: &[], rev: "3mptbypluud2a", time };
    let identity = Identity { seq: 10, did, time, handle: Some("a.example.com") };
    let account = Account { seq: 11, did, time, active: false, status: Some("deactivated") };
    let info = Info { name: "OutdatedCursor", message: Some("gone") };
    let error = ErrorFrame { error: "FutureCursor", message: None };
    let header = Header { op: 1, kind: Some("#label") };
    let unknown = Unknown { header, payload: b"\xa1\x63seq\x0c" };
    vec![
        ("#commit", commit_frame()),
        ("#sync", Event::Sync(sync).to_frame()),
        ("#identity", Event::Identity(identity).to_frame()),
        ("#account", Event::Account(account).to_frame()),
        ("#info", Event::Info(info).to_frame()),
        ("error", Event::Error(error).to_frame()),
        ("#label", Event::Unknown(unknown).to_frame()),
    ]
}
