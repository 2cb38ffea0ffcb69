//! The rules of lines that no type says.

use serde_json::{Value, json};

use crate::code::Code;
use crate::words::Kind;

/// The keys that lines of a kind have and lack, beyond their types. Keys are separated by spaces.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Keys of the type that no line of the kind has.
    pub(super) lacks: &'static str,
    /// Keys that are optional in the type, and that every line of the kind has.
    pub(super) requires: &'static str,
    /// Conditions between keys, as schemas.
    pub(super) conditions: Vec<Value>,
}

/// The rules of the lines of a kind.
pub(super) fn of_kind(kind: Kind) -> Rules {
    let mut rules = match kind {
        Kind::Commit => Rules {
            lacks: "",
            requires: "seq did",
            conditions: vec![
                decoded(&["rev"]),
                json!({"if": with("verdict", "verified"), "then": {"required": ["time", "commit", "ops"]}}),
                json!({
                    "if": {"required": ["ops"]},
                    "then": {"properties": {"verdict": {"enum": ["verified", "not-asked"]}}},
                }),
            ],
        },
        Kind::Sync => {
            Rules { lacks: "ops", requires: "seq did", conditions: vec![decoded(&["time", "rev"])] }
        }
        Kind::Identity => {
            Rules { lacks: "ops proof", requires: "seq did", conditions: vec![decoded(&["time"])] }
        }
        Kind::Account => Rules {
            lacks: "ops proof",
            requires: "seq did",
            conditions: vec![decoded(&["time", "active"])],
        },
        Kind::Info | Kind::Error => Rules {
            lacks: "seq repeated did ops proof",
            requires: "",
            conditions: vec![decoded(&["name"])],
        },
        Kind::Unknown => Rules { lacks: "ops proof", requires: "frame", conditions: vec![] },
        Kind::Undecodable => {
            Rules { lacks: "arrival key ops proof", requires: "message frame", conditions: vec![] }
        }
        Kind::Resync => Rules {
            conditions: vec![
                with("live", false),
                with("verdict", "verified"),
                json!({"properties": {"ops": {
                    "maxItems": 100,
                    "items": {
                        "if": {"properties": {"action": {"not": {"const": "delete"}}}},
                        "then": {"required": ["cid"]},
                    },
                }}}),
            ],
            ..Rules::default()
        },
        Kind::Status => Rules {
            lacks: "",
            requires: "id live",
            conditions: vec![
                with("active", false),
                with("live", false),
                with("verdict", "unchecked"),
                with("code", Code::StatusConfirmed.as_str()),
            ],
        },
        Kind::History => Rules {
            lacks: "",
            requires: "id live",
            conditions: vec![
                with("live", false),
                with("verdict", "unchecked"),
                json!({"properties": {"code": {"enum": [
                    Code::HistoryOutdated.as_str(), Code::HistoryNarrowed.as_str(),
                ]}}}),
            ],
        },
        Kind::Operation => Rules {
            conditions: vec![
                json!({"properties": {"verdict": {"enum": ["verified", "not-asked"]}}}),
                json!({"$ref": "#/$defs/one_content"}),
            ],
            ..Rules::default()
        },
    };
    rules.conditions.insert(0, json!({"$ref": "#/$defs/line"}));
    rules
}

/// The rules of a line about a relay.
pub(super) fn of_relay_line() -> Rules {
    let kinds = [
        "event",
        "connected",
        "disconnected",
        "connect-failed",
        "retry",
        "end-of-stored",
        "compared",
        "fetched",
        "closed",
        "notice",
        "auth",
        "authenticated",
        "unknown-subscription",
        "unrequested",
        "unrecognized",
    ];
    let values = json!({"properties": {
        "relay": {"pattern": "^wss?://"},
        "kind": {"enum": kinds},
        "verdict": {"enum": ["verified", "refused"]},
        "id": {"pattern": "^[0-9a-f]{64}$"},
    }});
    let of_event = json!({
        "if": with("kind", "event"),
        "then": {
            "required": ["verdict", "code"],
            "if": with("verdict", "verified"),
            "then": {"required": ["event"]},
            "else": {"required": ["message"]},
        },
    });
    Rules { conditions: vec![values, of_event], ..Rules::default() }
}

/// The rule of the values of a key, wherever it is.
pub(super) fn of_key(key: &str) -> Option<Value> {
    Some(match key {
        "v" => json!({"const": 1}),
        "id" => json!({"minLength": 1}),
        "seq" => json!({"minimum": 0}),
        "commit" | "cid" => json!({"$ref": "../common.json#/$defs/cid"}),
        "key" => json!({"pattern": "^did:key:"}),
        "record" | "event" => json!({"type": "object"}),
        "invalid" => json!({"$ref": "#/$defs/InvalidContent"}),
        // Written only if they are true.
        "repeated" | "filtered" => json!({"const": true}),
        "$bytes" => json!({"pattern": "^[A-Za-z0-9+/]*$"}),
        _ => return None,
    })
}

/// The rules of a type with a name.
pub(super) fn of_type(name: &str) -> Option<Vec<Value>> {
    match name {
        "Op" => Some(vec![json!({"$ref": "#/$defs/one_content"})]),
        "InvalidContent" => {
            let codes = [Code::RecordCbor, Code::RecordShape, Code::RecordSize, Code::DataKey];
            let codes = codes.each_ref().map(Code::as_str);
            Some(vec![json!({"properties": {"code": {"enum": codes}}})])
        }
        _ => None,
    }
}

/// The rules that several schemas refer to, by their names.
pub(super) fn shared() -> [(String, Value); 2] {
    let of_archived = json!({
        "if": {"required": ["arrival"]},
        "then": {"required": ["live"], "properties": {"live": {"const": false}}},
        "else": {"properties": {"host": {"$ref": "../common.json#/$defs/host"}, "key": false}},
    });
    let of_refused = json!({
        "if": {"properties": {"verdict": {"enum": ["refused", "ignored", "unknown-key"]}}},
        "then": {"required": ["message"]},
    });
    let of_verified = json!({
        "if": with("verdict", "verified"),
        "then": {"properties": {
            "did": {"$ref": "../common.json#/$defs/valid_did"},
            "rev": {"$ref": "../common.json#/$defs/valid_rev"},
            "code": {"pattern": "^verified(/|$)"},
        }},
    });
    let line = json!({
        "description": "Rules of all lines.",
        "dependentRequired": {"id": ["live"], "live": ["id"]},
        "not": {"required": ["id", "repeated"]},
        "allOf": [of_archived, of_refused, of_verified],
    });
    let one_content = json!({
        "description": "A deletion has no record; other operations have it in one form.",
        "dependentSchemas": {"record": {"not": {"required": ["invalid"]}}},
        "if": {"properties": {"action": {"const": "delete"}}, "required": ["action"]},
        "then": {"not": {"anyOf": [
            {"required": ["cid"]},
            {"required": ["record"]},
            {"required": ["invalid"]},
        ]}},
    });
    [("line".to_owned(), line), ("one_content".to_owned(), one_content)]
}

/// Only an event that cannot be decoded has its frame instead of these claims.
fn decoded(claims: &[&str]) -> Value {
    json!({
        "if": {"required": ["frame"]},
        "then": with("verdict", "refused"),
        "else": {"required": claims},
    })
}

/// The key has this value, if it is there.
fn with(key: &str, value: impl Into<Value>) -> Value {
    json!({"properties": {key: {"const": value.into()}}})
}
