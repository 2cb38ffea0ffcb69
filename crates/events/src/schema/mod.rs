//! The JSON Schemas of lines, generated from the types.
//!
//! The keys, the types of their values, the words and the descriptions come from the structs and enums. [`rules`] has the rest:
//! the keys that lines of a kind lack or must have, and conditions between keys.

mod object;
mod rules;
mod types;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::label::LabelLine;
use crate::line::{
    AccountClaims, CommitClaims, EventBody, IdentityClaims, Line, MessageClaims, Operation, Resync,
    Status, SyncClaims,
};
use crate::nostr::RelayLine;
use crate::operation::Op;
use crate::words::Kind;
use crate::writer::InvalidContent;
use object::{Object, described, simplify};

/// The schemas, by their path in `docs/formats/schemas`.
fn files() -> Vec<(String, String)> {
    let types = &mut SchemaGenerator::default();
    let mut files: Vec<_> =
        kinds(types).map(|(kind, about)| of_kind(types, kind, &about)).collect();
    files.push(of_any_line(types));
    files.push(of_relay_line(types));
    files.push(of_label_line(types));
    files.push(of_types(types));
    files
}

/// The kinds, with the descriptions of their lines.
fn kinds(types: &mut SchemaGenerator) -> impl Iterator<Item = (Kind, String)> + use<> {
    let words = Kind::json_schema(types);
    let words = words.get("oneOf").and_then(Value::as_array).cloned().expect("a word each");
    words.into_iter().map(|word| {
        let kind = serde_json::from_value(word["const"].clone()).expect("the word of a kind");
        (kind, word["description"].as_str().expect("a description").to_owned())
    })
}

fn of_kind(types: &mut SchemaGenerator, kind: Kind, about: &str) -> (String, String) {
    let object = keys_of(types, kind)
        .with(Object::of::<Line<'_>>(types))
        .with_key("v", &json!({"const": Line::VERSION, "description": "Version of the format."}))
        .with_key("kind", &json!({"const": kind.as_str()}))
        .requiring("v kind")
        .under(rules::of_kind(kind))
        .referring_to("types.json");
    let title = format!("A line of the kind `{kind}`");
    document(&format!("follow/{kind}.json"), &title, Some(about), &object)
}

/// The keys of a kind that not all lines have.
fn keys_of(types: &mut SchemaGenerator, kind: Kind) -> Object {
    match kind {
        Kind::Commit => event_with::<CommitClaims<'_>>(types),
        Kind::Sync => event_with::<SyncClaims<'_>>(types),
        Kind::Identity => event_with::<IdentityClaims<'_>>(types),
        Kind::Account => event_with::<AccountClaims<'_>>(types),
        Kind::Info | Kind::Error => event_with::<MessageClaims<'_>>(types),
        Kind::Unknown => {
            let name = described("string", "The type of the message, if it names one.");
            Object::of::<EventBody<'_>>(types).with_key("type", &name)
        }
        Kind::Undecodable => Object::of::<EventBody<'_>>(types),
        Kind::Resync => Object::of::<Resync<'_>>(types),
        Kind::Status => Object::of::<Status<'_>>(types),
        Kind::History => {
            let text = "The collections in which the delivered records of the account are complete: `app.bsky.feed.post`, or `app.bsky.feed.*` for all below it.";
            let mut complete = described("array", text);
            complete["items"] = json!({"type": "string"});
            Object::empty()
                .with_key("did", &described("string", "The account."))
                .requiring("did")
                .with_key("complete", &complete)
        }
        Kind::Operation => Object::of::<Operation<'_>>(types).with(Object::of::<Op<'_>>(types)),
    }
}

/// The keys of an event with claims, which one that cannot be decoded has not.
fn event_with<T: JsonSchema>(types: &mut SchemaGenerator) -> Object {
    Object::of::<EventBody<'_>>(types).with(Object::of::<T>(types).requiring_none())
}

fn of_any_line(types: &mut SchemaGenerator) -> (String, String) {
    let kinds = kinds(types).map(|(kind, _)| json!({"$ref": format!("{kind}.json")}));
    let content = json!({"oneOf": kinds.collect::<Vec<_>>()});
    document("follow/line.json", "A line of follow", Some("One of the kinds."), &content)
}

fn of_relay_line(types: &mut SchemaGenerator) -> (String, String) {
    let object = Object::of::<RelayLine<'_>>(types)
        .under(rules::of_relay_line())
        .referring_to("follow/types.json");
    let title = "A line of nostr follow --json";
    document("nostr-follow.json", title, None, &object)
}

fn of_label_line(types: &mut SchemaGenerator) -> (String, String) {
    let object = Object::of::<LabelLine<'_>>(types)
        .with_key("cid", &described("string", "The version of the subject."))
        .referring_to("follow/types.json");
    document("labels.json", "A line of labels", None, &object)
}

/// The types that other schemas refer to by their names.
fn of_types(types: &mut SchemaGenerator) -> (String, String) {
    types.subschema_for::<InvalidContent<'_>>();
    let mut definitions = types.take_definitions(true);
    for (name, definition) in &mut definitions {
        simplify(definition);
        if let (Some(rules), Value::Object(members)) = (rules::of_type(name), definition) {
            members.insert("allOf".to_owned(), rules.into());
        }
    }
    definitions.extend(rules::shared());
    let content = json!({"$defs": definitions});
    document("follow/types.json", "The types of lines of follow", None, &content)
}

/// A schema at its path.
fn document(
    path: &str,
    title: &str,
    description: Option<&str>,
    content: &impl Serialize,
) -> (String, String) {
    #[derive(Serialize)]
    struct Document<'d, T> {
        #[serde(rename = "$schema")]
        dialect: &'d str,
        #[serde(rename = "$id")]
        id: String,
        title: &'d str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'d str>,
        #[serde(flatten)]
        content: &'d T,
    }
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    let document = Document { dialect, id: format!("{BASE}{path}"), title, description, content };
    let text = serde_json::to_string_pretty(&document).expect("a schema is JSON");
    (path.to_owned(), text + "\n")
}

/// Where the schemas are published.
const BASE: &str =
    "https://raw.githubusercontent.com/wireproof/wireproof/main/docs/formats/schemas/";

/// The variable with which the test writes the schemas.
const UPDATE: &str = "WIREPROOF_UPDATE_SCHEMAS";

#[test]
fn the_schemas_of_lines_are_those_of_the_types() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/schemas");
    for (path, schema) in files() {
        let file = folder.join(&path);
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        if committed != schema {
            let updates = std::env::var_os(UPDATE).is_some();
            assert!(updates, "{path} is out of date: run this test with {UPDATE}=1");
            std::fs::write(&file, &schema).unwrap();
        }
    }
}
