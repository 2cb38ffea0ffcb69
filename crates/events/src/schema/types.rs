//! The schemas of types that are not derived: texts, JSON, codes, actions.

use std::borrow::Cow;

use atproto::event::Action;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::code::Code;
use crate::operation::{ActionWord, Op, OpFields};
use crate::text::{Json, Text};

impl JsonSchema for Text<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl JsonSchema for Json<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

impl JsonSchema for Code<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<_> = Code::ALL.iter().map(Code::as_str).collect();
        json_schema!({
            "description": "The stable name of a verdict or of a broken rule: ../../codes.md says what to do about each.",
            "enum": codes,
        })
    }
}

impl JsonSchema for ActionWord {
    fn schema_name() -> Cow<'static, str> {
        "Action".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let actions = [Action::Create, Action::Update, Action::Delete].map(Action::as_str);
        json_schema!({"description": "What becomes of a record.", "enum": actions})
    }
}

/// An operation is read from its keys.
impl JsonSchema for Op<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Op".into()
    }

    fn json_schema(types: &mut SchemaGenerator) -> Schema {
        OpFields::json_schema(types)
    }
}
