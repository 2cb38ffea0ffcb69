//! The key that a caller gives: itself, or in a DID document, or in a did:plc log.

use atproto::did_document::{self, DidDocument};
use crypto::PublicKey;
use verify::{identity, plc};

use crate::fault::Fault;
use crate::plc::options_for;

/// The argument that names the signing key of an account.
#[derive(Clone, Copy, Debug)]
pub struct KeyArgument<'a> {
    /// `key`, `didDocument` or `plcLog`.
    pub kind: &'a str,
    /// A did:key, or the JSON of the document or the log.
    pub text: &'a str,
}

/// The key of an account.
#[derive(Clone, Debug)]
pub struct AccountKey {
    /// The key.
    pub key: PublicKey,
    /// The account that is expected; `None` for any.
    pub did: Option<String>,
}

impl KeyArgument<'_> {
    /// Reads the key. The account is `did` if that is given, and otherwise the account of the document or the log.
    ///
    /// # Errors
    /// If there is no such key, or the log breaks a rule.
    pub fn resolve(&self, did: Option<&str>) -> Result<AccountKey, Fault> {
        let (key, of_key) = match self.kind {
            "key" => (did_key(self.text)?, None),
            "didDocument" => of_document(self.text)?,
            "plcLog" => of_log(self.text, did)?,
            other => return Err(Fault::argument("key", format!("unknown form `{other}`"))),
        };
        Ok(AccountKey { key, did: did.map(str::to_owned).or(of_key) })
    }
}

fn did_key(text: &str) -> Result<PublicKey, Fault> {
    PublicKey::from_did_key(text).map_err(|error| Fault::argument("key", error))
}

fn of_document(json: &str) -> Result<(PublicKey, Option<String>), Fault> {
    let failed = |error: &dyn std::fmt::Display| Fault::argument("didDocument", error);
    let document = DidDocument::parse(json.as_bytes(), &did_document::Options::default());
    let document = document.map_err(|error| failed(&error))?;
    let key = identity::signing_key(&document).map_err(|error| failed(&error))?;
    let key = key.ok_or_else(|| failed(&"the document has no #atproto key"))?;
    Ok((key, Some(document.did().to_string())))
}

fn of_log(json: &str, did: Option<&str>) -> Result<(PublicKey, Option<String>), Fault> {
    let history = plc::verify(json.as_bytes(), &options_for(did)?)?;
    let none = || Fault::argument("plcLog", "it ends without a signing key");
    Ok((history.signing_key().ok_or_else(none)?, Some(history.did().to_string())))
}
