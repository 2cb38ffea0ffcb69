//! Nostr events as JSON: their ids and signatures.

use kernels::hex;
use nostr::{Arena, DecodeError, Event, EventFault, IdSerialization, Limits, verify_many_with};
use nostr_formats::Format;
use serde_json::{Map, Value};

use crate::fault::{Details, Fault};

/// The verdicts on events, each JSON of `texts`, as a JSON array.
///
/// # Errors
/// If `ids` is not a serialization.
pub fn verify_many(texts: &[&[u8]], ids: &str) -> Result<String, Fault> {
    let ids = serialization(ids)?;
    let (arena, limits) = (Arena::new(), Limits::default());
    let decoded: Vec<Result<Event<'_>, DecodeError>> =
        texts.iter().map(|text| Format::Json.decode(text, &arena, &limits)).collect();
    let readable: Vec<Event<'_>> = decoded.iter().flatten().copied().collect();
    let mut verified = verify_many_with(&readable, ids).into_iter();
    let of_each = |event: Result<Event<'_>, DecodeError>| match event {
        Ok(event) => {
            let result = verified.next().unwrap_or(Err(EventFault::Id));
            verdict(Some(&event), result.err().map(fault_of))
        }
        Err(error) => verdict(None, Some(unreadable(error))),
    };
    Ok(Value::Array(decoded.into_iter().map(of_each).collect()).to_string())
}

fn serialization(ids: &str) -> Result<IdSerialization, Fault> {
    let named = IdSerialization::ALL.into_iter().find(|of| of.name() == ids);
    let why = || Fault::argument("ids", format!("{ids:?} is not either, verbatim or escaped"));
    named.ok_or_else(why)
}

fn verdict(event: Option<&Event<'_>>, fault: Option<Fault>) -> Value {
    let mut fields = Map::new();
    fields.insert("verified".to_owned(), fault.is_none().into());
    if let Some(event) = event {
        fields.insert("id".to_owned(), hex::encode(&event.id).into());
    }
    match fault {
        None => fields.insert("code".to_owned(), "verified".into()),
        Some(fault) => {
            fields.extend(fault.to_value());
            None
        }
    };
    Value::Object(fields)
}

fn unreadable(error: DecodeError) -> Fault {
    Details {
        code: "event/unreadable",
        rule: error.reason.to_string(),
        message: error.to_string(),
        offset: Some(error.offset as u64),
        ..Details::default()
    }
    .into()
}

fn fault_of(fault: EventFault) -> Fault {
    let code = match fault {
        EventFault::Id => "event/id",
        EventFault::IdForm(_) => "event/id-form",
        EventFault::Signature(_) => "signature/wrong",
        _ => "event/refused",
    };
    let (rule, message) = (fault.to_string(), fault.to_string());
    Details { code, rule, message, ..Details::default() }.into()
}
