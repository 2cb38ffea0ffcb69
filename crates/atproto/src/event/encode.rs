//! Writing frames, field by field in canonical key order.

use codec::cbor::Encoder;

use super::{Account, Commit, ErrorFrame, Event, Header, Identity, Info, RepoOp, Sync};

impl Event<'_> {
    /// Encodes the event as a frame. A commit's `blocks` and `root` are ignored: its CAR slice is written as
    /// it is.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        match self {
            Self::Commit(commit) => commit.encode(message(&mut out, "#commit")),
            Self::Sync(sync) => sync.encode(message(&mut out, "#sync")),
            Self::Identity(identity) => identity.encode(message(&mut out, "#identity")),
            Self::Account(account) => account.encode(message(&mut out, "#account")),
            Self::Info(info) => info.encode(message(&mut out, "#info")),
            Self::Error(error) => error.encode(out.map(1).text("op").integer(Header::ERROR)),
            Self::Unknown(unknown) => {
                encode_header(&mut out, unknown.header);
                let mut frame = out.into_bytes();
                frame.extend_from_slice(unknown.payload);
                return frame;
            }
        }
        out.into_bytes()
    }
}

fn message<'o>(out: &'o mut Encoder, kind: &str) -> &'o mut Encoder {
    encode_header(out, Header { op: Header::MESSAGE, kind: Some(kind) });
    out
}

fn encode_header(out: &mut Encoder, header: Header<'_>) {
    out.map(1 + usize::from(header.kind.is_some()));
    if let Some(kind) = header.kind {
        out.text("t").text(kind);
    }
    out.text("op").integer(header.op);
}

impl Commit<'_> {
    fn encode(&self, out: &mut Encoder) {
        let optional = [
            self.blobs.is_some(),
            self.rebase.is_some(),
            self.too_big.is_some(),
            self.prev_data.is_some(),
        ];
        out.map(8 + optional.into_iter().filter(|present| *present).count());
        out.text("ops").array(self.ops.len());
        self.ops.iter().for_each(|op| op.encode(out));
        out.text("rev").text(self.rev);
        out.text("seq").integer(self.seq);
        out.text("repo").text(self.repo);
        out.text("time").text(self.time);
        if let Some(blobs) = self.blobs {
            out.text("blobs").array(blobs.len());
            blobs.iter().for_each(|cid| {
                out.link(*cid);
            });
        }
        match self.since {
            Some(since) => out.text("since").text(since),
            None => out.text("since").null(),
        };
        out.text("blocks").bytes(self.car);
        out.text("commit").link(self.commit.as_cid_ref());
        if let Some(rebase) = self.rebase {
            out.text("rebase").boolean(rebase);
        }
        if let Some(too_big) = self.too_big {
            out.text("tooBig").boolean(too_big);
        }
        if let Some(prev_data) = &self.prev_data {
            out.text("prevData").link(prev_data.as_cid_ref());
        }
    }
}

impl RepoOp<'_> {
    fn encode(&self, out: &mut Encoder) {
        out.map(3 + usize::from(self.prev.is_some()));
        out.text("cid").link_or_null(self.cid);
        out.text("path").text(self.path);
        if let Some(prev) = self.prev {
            out.text("prev").link(prev);
        }
        out.text("action").text(self.action.as_str());
    }
}

impl Sync<'_> {
    fn encode(&self, out: &mut Encoder) {
        out.map(5);
        out.text("did").text(self.did);
        out.text("rev").text(self.rev);
        out.text("seq").integer(self.seq);
        out.text("time").text(self.time);
        out.text("blocks").bytes(self.car);
    }
}

impl Identity<'_> {
    fn encode(&self, out: &mut Encoder) {
        out.map(3 + usize::from(self.handle.is_some()));
        out.text("did").text(self.did);
        out.text("seq").integer(self.seq);
        out.text("time").text(self.time);
        optional_text(out, "handle", self.handle);
    }
}

impl Account<'_> {
    fn encode(&self, out: &mut Encoder) {
        out.map(4 + usize::from(self.status.is_some()));
        out.text("did").text(self.did);
        out.text("seq").integer(self.seq);
        out.text("time").text(self.time);
        out.text("active").boolean(self.active);
        optional_text(out, "status", self.status);
    }
}

impl Info<'_> {
    fn encode(&self, out: &mut Encoder) {
        out.map(1 + usize::from(self.message.is_some()));
        out.text("name").text(self.name);
        optional_text(out, "message", self.message);
    }
}

impl ErrorFrame<'_> {
    fn encode(&self, out: &mut Encoder) {
        out.map(1 + usize::from(self.message.is_some()));
        out.text("error").text(self.error);
        optional_text(out, "message", self.message);
    }
}

fn optional_text(out: &mut Encoder, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        out.text(key).text(text);
    }
}
