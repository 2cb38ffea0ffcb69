//! The schema of an object: its keys, and rules that they keep.

use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::rules::{self, Rules};

/// The keys of an object, and the rules that they keep.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    #[serde(rename = "type")]
    json_type: &'static str,
    properties: Map<String, Value>,
    required: BTreeSet<String>,
    additional_properties: bool,
    #[serde(rename = "allOf", skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Value>,
}

impl Object {
    /// The keys of a type.
    pub(super) fn of<T: JsonSchema>(types: &mut SchemaGenerator) -> Self {
        let mut schema = T::json_schema(types).to_value();
        simplify(&mut schema);
        let required = schema["required"].as_array().into_iter().flatten();
        let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        let keys = schema["properties"].as_object().cloned().expect("the type has keys");
        Self { properties: keys, required, ..Self::empty() }
    }

    /// The object without keys.
    pub(super) fn empty() -> Self {
        Self {
            json_type: "object",
            properties: Map::new(),
            required: BTreeSet::new(),
            additional_properties: false,
            conditions: Vec::new(),
        }
    }

    /// The object with the keys of another one too.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.properties.extend(other.properties);
        self.required.extend(other.required);
        self
    }

    pub(super) fn with_key(mut self, key: &str, schema: &Value) -> Self {
        self.properties.insert(key.to_owned(), schema.clone());
        self
    }

    pub(super) fn requiring(mut self, keys: &str) -> Self {
        self.required.extend(keys.split_whitespace().map(str::to_owned));
        self
    }

    pub(super) fn requiring_none(self) -> Self {
        Self { required: BTreeSet::new(), ..self }
    }

    pub(super) fn under(mut self, rules: Rules) -> Self {
        for key in rules.lacks.split_whitespace() {
            self.properties.remove(key).unwrap_or_else(|| panic!("{key} is no key of the type"));
            self.required.remove(key);
        }
        self.conditions.extend(rules.conditions);
        let object = self.requiring(rules.requires);
        let unknown = object.required.iter().find(|key| !object.properties.contains_key(*key));
        assert_eq!(unknown, None, "a required key is one of the type");
        object
    }

    /// The object with its references to types as references to `file`.
    pub(super) fn referring_to(self, file: &str) -> Self {
        let properties = self.properties.into_iter();
        Self {
            properties: properties.map(|(key, schema)| (key, referring_to(file, schema))).collect(),
            conditions: self.conditions.into_iter().map(|of| referring_to(file, of)).collect(),
            ..self
        }
    }
}

pub(super) fn described(of_type: &str, description: &str) -> Value {
    json!({"type": of_type, "description": description})
}

/// Leaves out the parts of a schema that concern Rust alone: a key that may be missing is never null, and an object has no
/// key outside its type.
pub(super) fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(members) => simplify_members(members),
        Value::Array(schemas) => schemas.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn simplify_members(members: &mut Map<String, Value>) {
    members.remove("format");
    members.remove("default");
    if let Some(Value::Array(types)) = members.get("type") {
        let first = types.iter().find(|name| *name != "null").cloned();
        members.insert("type".to_owned(), first.expect("a type beside null"));
    }
    if let Some(Value::Array(forms)) = members.remove("anyOf") {
        let form = forms.into_iter().find(|form| form["type"] != "null");
        let Some(Value::Object(form)) = form else { panic!("a form beside null") };
        members.extend(form);
    }
    members.values_mut().for_each(simplify);
    let Some(Value::Object(keys)) = members.get_mut("properties") else { return };
    for (key, schema) in keys.iter_mut() {
        // A key with any value has the schema `true`.
        if schema == &Value::Bool(true) {
            *schema = json!({});
        }
        if let (Some(Value::Object(rule)), Value::Object(schema)) = (rules::of_key(key), schema) {
            schema.extend(rule);
        }
    }
    let written_if_true: BTreeSet<_> = keys
        .iter()
        .filter(|(_, schema)| schema["const"] == true)
        .map(|(key, _)| key.clone())
        .collect();
    members.insert("additionalProperties".to_owned(), false.into());
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|key| !key.as_str().is_some_and(|key| written_if_true.contains(key)));
    }
}

/// The schema with its references to types as references to `file`.
fn referring_to(file: &str, schema: Value) -> Value {
    let referring = |schema| referring_to(file, schema);
    match schema {
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| match value {
                Value::String(place) if key == "$ref" && place.starts_with("#/") => {
                    (key, format!("{file}{place}").into())
                }
                value => (key, referring(value)),
            });
            Value::Object(members.collect())
        }
        Value::Array(schemas) => schemas.into_iter().map(referring).collect(),
        value => value,
    }
}
