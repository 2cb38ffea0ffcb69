//! Erasure of an account from the ledgers of backfills, whose rows name accounts that failed.

use bytes::Bytes;
use serde_json::Value;

use crate::error::{ArchiveError, ArchiveFault};
use crate::ledger::FOLDER;
use crate::storage::Storage;

/// Rewrites the rows of all ledgers that name an account, without it. Returns how many there were.
pub(crate) async fn erase_from_ledgers(storage: &Storage, did: &str) -> Result<u64, ArchiveError> {
    let mut rows = 0;
    for object in storage.list(FOLDER).await? {
        let path = &*object.path;
        // A lease can be deleted meanwhile.
        let Some(json) = storage.get(path).await? else { continue };
        if let Some(without) = row_without(path, &json, did)? {
            storage.put(path, without).await?;
            rows += 1;
        }
    }
    Ok(rows)
}

/// A row without an account; `None` if it does not name it.
fn row_without(path: &str, json: &[u8], did: &str) -> Result<Option<Bytes>, ArchiveError> {
    let text = String::from_utf8_lossy(json);
    if !text.contains(did) {
        return Ok(None);
    }
    let damaged = |error: serde_json::Error| {
        ArchiveError::new(path, ArchiveFault::LedgerRow(error.to_string()))
    };
    let mut row: Value = serde_json::from_str(&text).map_err(damaged)?;
    erase(&mut row, did);
    let without = serde_json::to_vec(&row).map_err(damaged)?;
    Ok(Some(without.into()))
}

/// Takes the entries of an account out of lists, and its name out of messages. The cursors of a host stay as they are: a list is
/// read on from them.
fn erase(row: &mut Value, did: &str) {
    match row {
        Value::Array(entries) => {
            entries.retain(|entry| entry["did"] != did);
            entries.iter_mut().for_each(|entry| erase(entry, did));
        }
        Value::Object(members) => {
            for (key, value) in members {
                if !CURSORS.contains(&key.as_str()) {
                    erase(value, did);
                }
            }
        }
        Value::String(text) if text.contains(did) => *text = text.replace(did, "an erased account"),
        _ => {}
    }
}

const CURSORS: [&str; 2] = ["cursor", "next"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_leaves_lists_and_messages_and_nothing_else() {
        let failure = |did: &str| json!({"did": did, "message": format!("no {did}")});
        let row = json!({
            "page": 3, "cursor": "did:web:a.test", "message": "at did:web:a.test it ended",
            "failures": [failure("did:web:a.test"), failure("did:web:b.test")],
        });
        let json = row.to_string();
        let without = row_without("x", json.as_bytes(), "did:web:a.test").unwrap().unwrap();
        let expected = json!({
            "page": 3, "cursor": "did:web:a.test", "message": "at an erased account it ended",
            "failures": [failure("did:web:b.test")],
        });
        assert_eq!(serde_json::from_slice::<Value>(&without).unwrap(), expected);
        assert_eq!(row_without("x", json.as_bytes(), "did:web:c.test").unwrap(), None);
        assert!(row_without("x", b"{did:web:a.test", "did:web:a.test").is_err());
    }
}
