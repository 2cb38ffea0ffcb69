//! An event, its id and its signature, as NIP-01 has them.
//!
//! The id is the SHA-256 of `[0,pubkey,created_at,kind,tags,content]` as JSON without spaces, in which
//! seven characters are escaped and no others.

use k256::schnorr::SigningKey;
use k256::schnorr::signature::hazmat::PrehashSigner;
use kernels::sha256::{self, Digest};

use crate::hex::hex;
use crate::random::Random;

/// A signed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The SHA-256 of what is signed.
    pub id: Digest,
    /// The author's x-only public key.
    pub pubkey: [u8; 32],
    /// What was signed.
    pub draft: Draft,
    /// The BIP-340 signature over the id.
    pub sig: [u8; 64],
}

/// What an author writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Seconds since 1970.
    pub created_at: u64,
    /// What kind of event it is.
    pub kind: u16,
    /// The tags, each a name and values.
    pub tags: Vec<Vec<String>>,
    /// The content.
    pub content: String,
}

impl Event {
    /// The event as a JSON object without spaces, on one line.
    pub fn to_json(&self) -> String {
        let Draft { created_at, kind, tags, content } = &self.draft;
        let [id, pubkey, sig] = [hex(&self.id), hex(&self.pubkey), hex(&self.sig)];
        let (tags, content) = (tags_to_json(tags), to_json(content));
        format!(
            r#"{{"id":"{id}","pubkey":"{pubkey}","created_at":{created_at},"kind":{kind},"tags":{tags},"content":{content},"sig":"{sig}"}}"#
        )
    }
}

impl Draft {
    /// What it is called when the owner of `pubkey` has written it.
    fn id(&self, pubkey: &[u8; 32]) -> Digest {
        let Self { created_at, kind, tags, content } = self;
        let (pubkey, tags, content) = (hex(pubkey), tags_to_json(tags), to_json(content));
        let message = format!(r#"[0,"{pubkey}",{created_at},{kind},{tags},{content}]"#);
        sha256::digest(message.as_bytes())
    }
}

fn tags_to_json(tags: &[Vec<String>]) -> String {
    list(tags.iter().map(|tag| list(tag.iter().map(|value| to_json(value)))))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// `text` in quotes, with the seven escapes of NIP-01.
pub(crate) fn to_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '\n' => json.push_str("\\n"),
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

/// Somebody who writes, with the key for it.
#[derive(Clone, Debug)]
pub struct Author {
    key: SigningKey,
    pubkey: [u8; 32],
}

impl Author {
    /// The next author that `random` gives.
    pub fn generate(random: &mut Random) -> Self {
        // A draw is out of range for one in 2¹²⁷ seeds.
        loop {
            if let Ok(key) = SigningKey::from_slice(&random.bytes32()) {
                let pubkey = key.verifying_key().to_bytes().into();
                return Self { key, pubkey };
            }
        }
    }

    /// The x-only public key.
    pub fn pubkey(&self) -> [u8; 32] {
        self.pubkey
    }

    /// Signs `draft`, without auxiliary randomness: an author and a draft have one signature.
    ///
    /// # Panics
    /// If the nonce comes out as 0, which no draft will show.
    pub fn sign(&self, draft: Draft) -> Event {
        let (pubkey, id) = (self.pubkey, draft.id(&self.pubkey));
        let signature = self.key.sign_prehash(&id).expect("a nonce that is not 0");
        Event { id, pubkey, draft, sig: signature.to_bytes() }
    }
}
