//! The answers of the sync methods, read strictly by their lexicons.

use atproto::syntax::{DidBuf, Tid};
use codec::Cid;
use serde_json::Value;

/// `getLatestCommit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatestCommit {
    pub(crate) cid: Cid,
    pub(crate) rev: Tid,
}

/// `getRepoStatus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) did: String,
    pub(crate) active: bool,
    pub(crate) status: Option<String>,
    pub(crate) rev: Option<Tid>,
}

/// An entry of `listRepos`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) did: DidBuf,
    pub(crate) rev: Tid,
    /// Whether the account is active; `None` if the entry does not say.
    pub(crate) active: Option<bool>,
}

/// A page of `listRepos`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Listed>,
    /// Entries that break the lexicon: the account, if one is named, and the entry with the rule.
    pub(crate) odd: Vec<(Option<String>, String)>,
    pub(crate) cursor: Option<String>,
}

/// Why an answer breaks its lexicon.
pub(crate) type SchemaFault = String;

pub(crate) fn latest_commit(body: &[u8]) -> Result<LatestCommit, SchemaFault> {
    let value = object(body)?;
    Ok(LatestCommit { cid: cid(&value, "cid")?, rev: tid(&value, "rev")? })
}

pub(crate) fn status(body: &[u8]) -> Result<Status, SchemaFault> {
    let value = object(body)?;
    let rev = if value["rev"].is_null() { None } else { Some(tid(&value, "rev")?) };
    let active = value["active"].as_bool().ok_or("`active` is no boolean")?;
    let status = match &value["status"] {
        Value::Null => None,
        Value::String(status) => Some(status.clone()),
        _ => return Err("`status` is no string".to_owned()),
    };
    let did =
        DidBuf::from(atproto::syntax::Did::parse(text(&value, "did")?).map_err(shown("did"))?);
    Ok(Status { did: did.to_string(), active, status, rev })
}

pub(crate) fn page(body: &[u8]) -> Result<Page, SchemaFault> {
    let value = object(body)?;
    let entries = value["repos"].as_array().ok_or("`repos` is no list")?;
    let cursor = match &value["cursor"] {
        Value::Null => None,
        Value::String(cursor) => Some(cursor.clone()).filter(|cursor| !cursor.is_empty()),
        _ => return Err("`cursor` is no string".to_owned()),
    };
    let mut page = Page { cursor, ..Page::default() };
    for entry in entries {
        match listed(entry) {
            Ok(listed) => page.entries.push(listed),
            Err(rule) => {
                let did = entry["did"].as_str().map(str::to_owned);
                page.odd.push((did, format!("{entry}: {rule}")));
            }
        }
    }
    Ok(page)
}

fn listed(entry: &Value) -> Result<Listed, SchemaFault> {
    if !entry.is_object() {
        return Err("no object".to_owned());
    }
    let did = DidBuf::from(atproto::syntax::Did::parse(text(entry, "did")?).map_err(shown("did"))?);
    cid(entry, "head")?;
    let active = match &entry["active"] {
        Value::Null => None,
        Value::Bool(active) => Some(*active),
        _ => return Err("`active` is no boolean".to_owned()),
    };
    Ok(Listed { did, rev: tid(entry, "rev")?, active })
}

fn object(body: &[u8]) -> Result<Value, SchemaFault> {
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("the body is no object".to_owned()) }
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, SchemaFault> {
    value[name].as_str().ok_or_else(|| format!("`{name}` is no string"))
}

fn cid(value: &Value, name: &str) -> Result<Cid, SchemaFault> {
    text(value, name)?.parse().map_err(|_| format!("`{name}` is no CID of a commit"))
}

fn tid(value: &Value, name: &str) -> Result<Tid, SchemaFault> {
    Tid::parse(text(value, name)?).map_err(shown(name))
}

fn shown<E: std::fmt::Display>(name: &str) -> impl Fn(E) -> SchemaFault {
    move |error| format!("`{name}`: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CID: &str = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";

    #[test]
    fn fields_are_required_and_of_their_types() {
        let latest = format!(r#"{{"cid":"{CID}","rev":"3jzfcijpj2z2a","more":1}}"#);
        assert_eq!(latest_commit(latest.as_bytes()).unwrap().rev.to_string(), "3jzfcijpj2z2a");
        for body in ["", "[]", "{}", r#"{"cid":7,"rev":"3jzfcijpj2z2a"}"#] {
            assert!(latest_commit(body.as_bytes()).is_err(), "{body}");
        }
        let of = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let good = format!(r#"{{"did":"{of}","active":false,"status":"takendown"}}"#);
        assert!(!status(good.as_bytes()).unwrap().active);
        for body in [r#"{"did":"x","active":true}"#.to_owned(), format!(r#"{{"did":"{of}"}}"#)] {
            assert!(status(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn an_odd_entry_costs_itself_only() {
        let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let body = format!(
            r#"{{"repos":[null,{{"did":"{did}","head":"{CID}","rev":"3jzfcijpj2z2a"}},{{"did":"{did}"}}],"cursor":""}}"#
        );
        let page = page(body.as_bytes()).unwrap();
        assert_eq!((page.entries.len(), page.odd.len(), page.cursor), (1, 2, None));
    }
}
