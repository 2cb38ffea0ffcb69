//! Records: the bytes of the record at a path.
//!
//! A record is a function of its account's seed, its path and its version, so a repository is written
//! out without storing its records. Shapes and sizes follow the live network: a like has 212
//! bytes, or 360 with a `via` field; a follow 107; a post 248 to 806.

use atproto::syntax::Tid;
use codec::cid::{Cid, Codec};

use crate::block::{BlockWriter, UnhashedBlock};
use crate::random::{Random, Seed};
use crate::text;
use crate::time::{DAY_MICROS, datetime};

/// The collections that simulated accounts write to, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    /// `app.bsky.actor.profile`: one record, `self`.
    Profile,
    /// `app.bsky.feed.like`.
    Like,
    /// `app.bsky.feed.post`.
    Post,
    /// `app.bsky.feed.postgate`: who may quote the post of the same record key.
    Postgate,
    /// `app.bsky.feed.repost`.
    Repost,
    /// `app.bsky.feed.threadgate`: who may reply to the post of the same record key.
    Threadgate,
    /// `app.bsky.graph.block`.
    Block,
    /// `app.bsky.graph.follow`.
    Follow,
    /// `pub.leaflet.document`: long nested records of another application.
    Document,
}

impl Collection {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 9] = [
        Self::Profile,
        Self::Like,
        Self::Post,
        Self::Postgate,
        Self::Repost,
        Self::Threadgate,
        Self::Block,
        Self::Follow,
        Self::Document,
    ];

    /// The NSID.
    pub fn nsid(self) -> &'static str {
        match self {
            Self::Profile => "app.bsky.actor.profile",
            Self::Like => "app.bsky.feed.like",
            Self::Post => "app.bsky.feed.post",
            Self::Postgate => "app.bsky.feed.postgate",
            Self::Repost => "app.bsky.feed.repost",
            Self::Threadgate => "app.bsky.feed.threadgate",
            Self::Block => "app.bsky.graph.block",
            Self::Follow => "app.bsky.graph.follow",
            Self::Document => "pub.leaflet.document",
        }
    }
}

/// The path of a record within an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordPath {
    /// The collection.
    pub collection: Collection,
    /// The creation time; also the record key, except of a profile.
    pub tid: Tid,
}

impl RecordPath {
    /// The key of the record in the tree, `collection/rkey`.
    pub fn to_key(self) -> String {
        match self.collection {
            Collection::Profile => format!("{}/self", Collection::Profile.nsid()),
            collection => format!("{}/{}", collection.nsid(), self.tid),
        }
    }
}

/// Writes the record at `path` of the account with this seed and DID, after `version` updates. Nobody has the blobs that it names.
pub fn write(seed: &Seed, did: &str, path: RecordPath, version: u64) -> UnhashedBlock {
    write_with(seed, did, path, version, None)
}

/// The same; the contents of its blobs are added to `blobs`, if there are such.
pub(crate) fn write_with(
    seed: &Seed,
    did: &str,
    path: RecordPath,
    version: u64,
    blobs: Option<&mut Vec<Vec<u8>>>,
) -> UnhashedBlock {
    let mut random = seed.stream(path.tid.as_u64());
    (0..version).for_each(|_| random = Seed::new(random.next_u64(), "update").stream(version));
    let mut record = Record {
        out: BlockWriter::new(),
        random,
        version,
        did,
        path,
        created_at: datetime(path.tid.micros()),
        blobs,
    };
    match path.collection {
        Collection::Profile => record.profile(),
        Collection::Like => record.reference_to_post(),
        Collection::Post => record.post(),
        Collection::Postgate => record.postgate(),
        Collection::Repost => record.reference_to_post(),
        Collection::Threadgate => record.threadgate(),
        Collection::Block | Collection::Follow => record.reference_to_account(),
        Collection::Document => record.document(),
    }
    record.out.into_unhashed()
}

/// The record being written.
struct Record<'a> {
    out: BlockWriter,
    random: Random,
    /// The number of updates before.
    version: u64,
    did: &'a str,
    path: RecordPath,
    created_at: String,
    /// The contents of its blobs, if there are such.
    blobs: Option<&'a mut Vec<Vec<u8>>>,
}

impl Record<'_> {
    fn type_field(&mut self) {
        self.out.text("$type").text(self.path.collection.nsid());
    }

    fn created_at_field(&mut self) {
        self.out.text("createdAt").text(&self.created_at);
    }

    /// A like or a repost.
    fn reference_to_post(&mut self) {
        let via = self.random.chance(VIA_PER_MILLE, 1000);
        self.out.map(3 + usize::from(via));
        if via {
            self.out.text("via");
            self.strong_reference(Collection::Repost);
        }
        self.type_field();
        self.out.text("subject");
        self.strong_reference(Collection::Post);
        self.created_at_field();
    }

    /// A follow or a block.
    fn reference_to_account(&mut self) {
        let subject = did_plc(&mut self.random);
        self.out.map(3);
        self.type_field();
        self.out.text("subject").text(&subject);
        self.created_at_field();
    }

    fn post(&mut self) {
        let reply = self.random.chance(55, 100);
        let embed = self.random.below(100);
        let facet = self.random.chance(12, 100);
        let words = self.random.between(2, if reply { 14 } else { 30 });
        let mut text = if reply { String::new() } else { LEAD_IN.to_owned() };
        text.push_str(&self.sentence(words));
        let fields = 4 + usize::from(embed < 30) + usize::from(reply) + usize::from(facet);
        self.out.map(fields).text("text").text(&text);
        self.type_field();
        match embed {
            0..14 => self.images(),
            14..22 => self.quoted_post(),
            22..30 => self.external_page(),
            _ => {}
        }
        let language = *self.random.pick(&["en", "en", "ja", "de", "pt"]);
        self.out.text("langs").array(1).text(language);
        if reply {
            self.out.text("reply").map(2).text("root");
            self.strong_reference(Collection::Post);
            self.out.text("parent");
            self.strong_reference(Collection::Post);
        }
        if facet {
            self.mention_facet(text.len());
        }
        self.created_at_field();
    }

    fn images(&mut self) {
        let (width, height) = (self.random.between(600, 2000), self.random.between(600, 2000));
        let alt = self.sentence(4);
        self.out.text("embed").map(2).text("$type").text("app.bsky.embed.images");
        self.out.text("images").array(1).map(3).text("alt").text(&alt).text("image");
        self.blob("image/jpeg");
        self.out.text("aspectRatio").map(2);
        self.out.text("width").integer(width as i64).text("height").integer(height as i64);
    }

    fn quoted_post(&mut self) {
        self.out.text("embed").map(2).text("$type").text("app.bsky.embed.record");
        self.out.text("record");
        self.strong_reference(Collection::Post);
    }

    fn external_page(&mut self) {
        let (title, description) = (self.sentence(5), self.sentence(10));
        let uri = format!("https://example.com/{:x}", self.random.below(1 << 40));
        self.out.text("embed").map(2).text("$type").text("app.bsky.embed.external");
        self.out.text("external").map(3).text("uri").text(&uri);
        self.out.text("title").text(&title).text("description").text(&description);
    }

    /// A mention in the first bytes of a text.
    fn mention_facet(&mut self, text_len: usize) {
        let mentioned = did_plc(&mut self.random);
        let end = text_len.min(16) as i64;
        self.out.text("facets").array(1).map(2);
        self.out.text("index").map(2).text("byteEnd").integer(end).text("byteStart").integer(0);
        self.out.text("features").array(1).map(2).text("did").text(&mentioned);
        self.out.text("$type").text("app.bsky.richtext.facet#mention");
    }

    fn blob(&mut self, mime_type: &str) {
        let (number, size) = (self.random.bytes32(), self.random.between(40_000, 980_000));
        let (cid, size) = match &mut self.blobs {
            None => (Cid::from_digest(Codec::Raw, &number), size),
            Some(blobs) => {
                let content = number.repeat(1 + size as usize % MAX_BLOB_PARTS);
                let (cid, size) = (Cid::of(Codec::Raw, &content), content.len() as u64);
                blobs.push(content);
                (cid, size)
            }
        };
        self.out.map(4).text("ref").link(cid.as_cid_ref()).text("size").integer(size as i64);
        self.out.text("$type").text("blob").text("mimeType").text(mime_type);
    }

    fn profile(&mut self) {
        let description = self.sentence(12);
        let name = self.sentence(2);
        self.out.map(6);
        self.type_field();
        self.out.text("avatar");
        self.blob("image/jpeg");
        self.out.text("banner");
        self.blob("image/jpeg");
        self.created_at_field();
        self.out.text("description").text(&description).text("displayName").text(&name);
    }

    fn threadgate(&mut self) {
        let post = self.own_post();
        self.out.map(5).text("post").text(&post);
        self.type_field();
        self.out.text("allow").array(1).map(1);
        self.out.text("$type").text("app.bsky.feed.threadgate#followingRule");
        self.created_at_field();
        self.out.text("hiddenReplies");
        self.posts_of_updates();
    }

    fn postgate(&mut self) {
        let post = self.own_post();
        self.out.map(5).text("post").text(&post);
        self.type_field();
        self.created_at_field();
        self.out.text("embeddingRules").array(1).map(1);
        self.out.text("$type").text("app.bsky.feed.postgate#disableRule");
        self.out.text("detachedEmbeddingUris");
        self.posts_of_updates();
    }

    /// A list with the post of another account for every update, so that every update changes the record.
    fn posts_of_updates(&mut self) {
        self.out.array(self.version as usize);
        for _ in 0..self.version {
            let author = did_plc(&mut self.random);
            let uri = format!("at://{author}/{}/{}", Collection::Post.nsid(), self.path.tid);
            self.out.text(&uri);
        }
    }

    /// The post with the same record key as this gate.
    fn own_post(&self) -> String {
        format!("at://{}/{}/{}", self.did, Collection::Post.nsid(), self.path.tid)
    }

    fn document(&mut self) {
        let paragraphs = self.random.between(1, 3) * self.random.between(1, 24);
        let (title, author) = (self.sentence(5), self.did.to_owned());
        self.out.map(5);
        self.type_field();
        self.out.text("pages").array(1).map(2);
        self.out.text("$type").text("pub.leaflet.pages.linearDocument");
        self.out.text("blocks").array(paragraphs as usize);
        (0..paragraphs).for_each(|_| self.paragraph());
        self.out.text("title").text(&title).text("author").text(&author);
        let published_at = self.created_at.clone();
        self.out.text("publishedAt").text(&published_at);
    }

    fn paragraph(&mut self) {
        let words = self.random.between(10, 60);
        let text = self.sentence(words);
        self.out.map(2).text("$type").text("pub.leaflet.pages.linearDocument#block");
        self.out.text("block").map(3).text("$type").text("pub.leaflet.blocks.text");
        self.out.text("facets").array(0).text("plaintext").text(&text);
    }

    /// A CID and an `at://` URI of a record of another account that does not exist.
    fn strong_reference(&mut self, collection: Collection) {
        let cid = Cid::from_digest(Codec::DagCbor, &self.random.bytes32());
        let author = did_plc(&mut self.random);
        let age_micros = self.random.below(30 * DAY_MICROS);
        let tid = Tid::new(self.path.tid.micros() - age_micros, self.random.next_u64() as u16);
        let uri = format!("at://{author}/{}/{tid}", collection.nsid());
        self.out.map(2).text("cid").text(&cid.to_string()).text("uri").text(&uri);
    }

    fn sentence(&mut self, words: u64) -> String {
        text::sentence(&mut self.random, words)
    }
}

/// A DID in the form of the PLC directory: 24 symbols of base32.
pub fn did_plc(random: &mut Random) -> String {
    let digest = random.bytes32();
    let mut did = "did:plc:".to_owned();
    kernels::base32::encode_into(&digest[..15], &mut did);
    did
}

/// Number of parts of 32 bytes up to which a blob has content.
const MAX_BLOB_PARTS: usize = 64;

/// The share of likes and reposts with a `via` field, per mille.
const VIA_PER_MILLE: u64 = 190;

/// The beginning of every post that is not a reply, so that such posts have the measured length.
const LEAD_IN: &str = "Notes from the workbench, part of a longer story that I keep meaning to \
    write down properly, for anyone who likes small machines and long walks: ";
