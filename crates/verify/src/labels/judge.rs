//! The judge: syntax first, then the signatures of a whole batch.

use atproto::label::{Label, UnsignedLabel};
use atproto::syntax::{CidText, Datetime, Did, SyntaxError, Uri};
use crypto::{
    CompressedKey, KeyCache, KeyRef, SignatureCheck, SignatureFault, SignedData, verify_many_cached,
};
use kernels::sha256;

use super::keys::{LabelKeys, SourceKeys};
use super::rejection::LabelRejection;
use crate::Verified;

/// Judges batches of labels. It keeps the keys of earlier batches, ready for use.
#[derive(Debug)]
pub struct LabelJudge {
    cache: KeyCache,
    /// Whether keys that a source had before count.
    accept_earlier_keys: bool,
}

/// A label as it was received.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedLabel<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The DID of the service that sent it. `None` if that is unknown: any source may then have signed it.
    pub service: Option<&'a str>,
}

/// The verdict on a label.
pub type LabelOutcome<'a> = Result<JudgedLabel<'a>, LabelRejection<'a>>;

/// A verified label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JudgedLabel<'a> {
    /// The label.
    pub label: Verified<Label<'a>>,
    /// The key that signed it.
    pub key: CompressedKey,
    /// Its time of creation in microseconds since 1970.
    pub created_micros: i64,
    /// The time from which it no longer applies in microseconds since 1970.
    pub expires_micros: Option<i64>,
    /// What it says at the time of the judgement.
    pub standing: Standing,
}

/// What a verified label says at a time, as far as no other label replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its subject has its value.
    InForce,
    /// It retracts an earlier label.
    Negation,
    /// It no longer applies.
    Expired,
}

impl JudgedLabel<'_> {
    /// What it says at a time, microseconds since 1970.
    pub fn standing_at(&self, now_micros: i64) -> Standing {
        let is_expired = self.expires_micros.is_some_and(|expires| expires <= now_micros);
        match self.label.fields.is_negation() {
            true => Standing::Negation,
            false if is_expired => Standing::Expired,
            false => Standing::InForce,
        }
    }
}

impl Standing {
    /// The stable code of the verdict.
    pub fn code(self) -> &'static str {
        match self {
            Self::InForce => "verified",
            Self::Negation => "verified/negation",
            Self::Expired => "verified/expired",
        }
    }
}

impl LabelJudge {
    /// A judge. `seed` stays secret from those who choose keys. Earlier keys of a source count with `accept_earlier_keys`.
    pub fn new(seed: [u8; 16], accept_earlier_keys: bool) -> Self {
        Self { cache: KeyCache::new(KEY_CACHE_BYTES, seed), accept_earlier_keys }
    }

    /// Judges labels at `now_micros`, microseconds since 1970; a verdict each.
    pub fn judge<'a>(
        &mut self,
        labels: &[ReceivedLabel<'a>],
        keys: &impl LabelKeys,
        now_micros: i64,
    ) -> Vec<LabelOutcome<'a>> {
        let read: Vec<_> = labels.iter().map(|label| Read::new(*label, keys)).collect();
        let digests = digests(&read);
        let checks = read.iter().flatten().zip(&digests).map(|(read, digest)| SignatureCheck {
            signed: SignedData::Digest(*digest),
            signature: read.label.sig,
            key: KeyRef::Compressed(read.key),
        });
        let checks: Vec<SignatureCheck<'_>> = checks.collect();
        let mut verdicts = vec![Ok(()); checks.len()];
        verify_many_cached(&checks, &mut self.cache, &mut verdicts);
        let mut proofs = verdicts.into_iter().zip(digests);
        let judged = read.into_iter().zip(labels).map(|(read, received)| {
            let read = read?;
            let (verdict, digest) = proofs.next().expect("a proof for each label that is read");
            let key = self.signer(&read, verdict, &digest);
            key.map(|key| read.judged(key, now_micros))
                .map_err(|why| foreign(&read.label.fields, *received).unwrap_or(why))
        });
        judged.collect()
    }

    /// The key that signed a label.
    fn signer<'a>(
        &self,
        read: &Read<'_, 'a>,
        verdict: Result<(), SignatureFault>,
        digest: &sha256::Digest,
    ) -> Result<CompressedKey, LabelRejection<'a>> {
        let Err(fault) = verdict else { return Ok(read.key) };
        let signed = |key: &&CompressedKey| {
            let key = crypto::PublicKey::try_from(**key);
            key.is_ok_and(|key| key.verify_digest(digest, read.label.sig).is_ok())
        };
        match read.keys.earlier.iter().take(MAX_EARLIER_KEYS).find(signed) {
            Some(key) if self.accept_earlier_keys => Ok(*key),
            Some(_) => Err(LabelRejection::EarlierKey),
            None => Err(LabelRejection::Signature(fault)),
        }
    }
}

/// The rejection of a label that another service than its source sent.
fn foreign<'a>(
    label: &UnsignedLabel<'a>,
    received: ReceivedLabel<'_>,
) -> Option<LabelRejection<'a>> {
    let is_foreign = received.service.is_some_and(|service| service != label.src);
    is_foreign.then_some(LabelRejection::Source(label.src))
}

/// A label whose fields are well formed, and the keys of its source.
struct Read<'k, 'a> {
    label: Label<'a>,
    created_micros: i64,
    expires_micros: Option<i64>,
    key: CompressedKey,
    keys: &'k SourceKeys,
}

impl<'k, 'a> Read<'k, 'a> {
    fn new(
        received: ReceivedLabel<'a>,
        keys: &'k impl LabelKeys,
    ) -> Result<Self, LabelRejection<'a>> {
        let label = Label::parse(received.bytes).map_err(LabelRejection::Object)?;
        let fields = &label.fields;
        let syntax = |field| move |error| LabelRejection::Syntax { field, error };
        Did::parse(fields.src).map_err(syntax("src"))?;
        Uri::parse(fields.uri).map_err(syntax("uri"))?;
        fields.cid.map(CidText::parse).transpose().map_err(syntax("cid"))?;
        if fields.val.is_empty() || fields.val.len() > MAX_VALUE_BYTES {
            return Err(LabelRejection::Value(fields.val.len()));
        }
        let created_micros = micros(fields.cts).map_err(syntax("cts"))?;
        let expires_micros = fields.exp.map(micros).transpose().map_err(syntax("exp"))?;
        let no_key = || foreign(fields, received).unwrap_or(LabelRejection::NoKey(fields.src));
        let keys = keys.keys(fields.src).ok_or_else(no_key)?;
        let key = keys.current.ok_or_else(no_key)?;
        Ok(Self { label, created_micros, expires_micros, key, keys })
    }

    fn judged(&self, key: CompressedKey, now_micros: i64) -> JudgedLabel<'a> {
        let Self { created_micros, expires_micros, .. } = *self;
        let (label, standing) = (Verified::vouch(self.label), Standing::InForce);
        let judged = JudgedLabel { label, key, created_micros, expires_micros, standing };
        JudgedLabel { standing: judged.standing_at(now_micros), ..judged }
    }
}

fn micros(text: &str) -> Result<i64, SyntaxError> {
    Datetime::parse(text).map(Datetime::unix_micros)
}

/// The digests of the labels that are read, hashed together.
fn digests(read: &[Result<Read<'_, '_>, LabelRejection<'_>>]) -> Vec<sha256::Digest> {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for read in read.iter().flatten() {
        bytes = read.label.fields.append_to(bytes);
        ends.push(bytes.len());
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let messages: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect();
    sha256::digest_many(&messages)
}

/// Maximum length of a value in bytes.
const MAX_VALUE_BYTES: usize = 128;

/// Maximum number of earlier keys that are tried.
const MAX_EARLIER_KEYS: usize = 16;

/// Memory for keys: few sources sign most labels.
const KEY_CACHE_BYTES: usize = 4 << 20;
