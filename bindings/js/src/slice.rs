//! Slices of repositories: the proof of one record, or of all records of some collections.

use atproto::syntax::CollectionPatternBuf;
use codec::Cid;
use serde_json::{Value, json};
use verify::record::Options;
use verify::{InvalidRecord, collections, record};

use crate::fault::Fault;
use crate::key::KeyArgument;
use crate::repository::OptionFields;

fn limits(options: &OptionFields) -> Options {
    let mut limits = Options::default();
    limits.strict_records = options.strict_records;
    limits
}

/// Verifies the record at `path`, or its absence, and returns the proof as JSON.
///
/// # Errors
/// At the first broken rule.
pub fn verify_record(
    car: &[u8],
    path: &str,
    key: KeyArgument<'_>,
    did: Option<&str>,
    options: &OptionFields,
) -> Result<String, Fault> {
    let (named, path) = match path.strip_prefix("at://").and_then(|rest| rest.split_once('/')) {
        Some((did, path)) => (Some(did), path),
        None => (None, path),
    };
    let account = key.resolve(did.or(named))?;
    let did = account.did.as_deref();
    let proof = record::verify(car, path, did, &account.key, &limits(options))?;
    let record =
        proof.record().map(|(cid, bytes)| row(car, path, cid, bytes, proof.invalid_record()));
    let value = json!({
        "did": proof.commit().did,
        "rev": proof.commit().rev,
        "root": proof.root().to_string(),
        "path": path,
        "nodes": proof.nodes(),
        "extraBlocks": proof.extra().blocks,
        "record": record,
    });
    Ok(value.to_string())
}

/// Verifies all records of `patterns`, and returns the proof as JSON.
///
/// # Errors
/// At the first broken rule.
pub fn verify_range(
    car: &[u8],
    patterns: &[String],
    key: KeyArgument<'_>,
    did: Option<&str>,
    options: &OptionFields,
) -> Result<String, Fault> {
    let account = key.resolve(did)?;
    let pattern = |name: &String| {
        let parsed = name.parse::<CollectionPatternBuf>();
        parsed.map_err(|error| Fault::argument("collections", format!("{name:?}: {error}")))
    };
    let wanted = patterns.iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
    if wanted.is_empty() {
        return Err(Fault::argument("collections", "no collection is named"));
    }
    let did = account.did.as_deref();
    let proof = collections::verify(car, &wanted, did, &account.key, &limits(options))?;
    let record = |record: &collections::ProvedRecord<'_>| {
        row(car, &record.path, record.cid, record.bytes, record.invalid.as_ref())
    };
    let value = json!({
        "did": proof.commit().did,
        "rev": proof.commit().rev,
        "root": proof.root().to_string(),
        "nodes": proof.nodes().len(),
        "extraBlocks": proof.extra().blocks,
        "records": proof.records().iter().map(record).collect::<Vec<_>>(),
    });
    Ok(value.to_string())
}

/// A record with its place in the slice.
fn row(car: &[u8], path: &str, cid: Cid, bytes: &[u8], invalid: Option<&InvalidRecord>) -> Value {
    json!({
        "path": path,
        "cid": cid.to_string(),
        "offset": place(car, bytes),
        "length": bytes.len(),
        "invalid": invalid.map(|invalid| Fault::from(invalid.error).to_value()),
    })
}

/// Bytes from the start of `car` to a part of it.
pub(crate) fn place(car: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - car.as_ptr().addr()
}
