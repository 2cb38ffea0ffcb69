//! Conditions in the Common Expression Language.
//!
//! Records are untrusted. The evaluation is bounded by refusing expressions of more than quadratic cost: loops within
//! loops within loops, patterns that are not in the expression, and records that are too large for the loops of
//! the expression or for the memory that its values take.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use atproto::event::Action;
use cel::{Context, Env, Program, Value};
use codec::json::Json;
use serde::Serialize;

use super::{ConditionCounts, Subject, check, memory};
use program::json::RecordPath;

/// A condition. Clones share its counts.
#[derive(Clone, Debug)]
pub(crate) struct Condition(Arc<Inner>);

struct Inner {
    text: String,
    program: Program,
    env: Arc<Env>,
    /// Maximum size of a record that is evaluated, in bytes.
    max_bytes: usize,
    counts: ConditionCounts,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(format!("at most {MAX_EXPRESSION_BYTES} bytes are allowed"));
        }
        let env = Arc::new(Env::stdlib());
        let program = env.compile(text).map_err(|errors| parse_error(&errors))?;
        let loops = check::check(&program)?;
        let max_bytes = MAX_RECORD_BYTES.get(loops).copied().unwrap_or_default();
        let max_bytes = memory::max_record_bytes(program.expression(), max_bytes);
        if max_bytes < LEAST_RECORD_BYTES {
            return Err("its values may take more than 64 MiB even for small records".to_owned());
        }
        let text = text.to_owned();
        let condition = Self(Arc::new(Inner {
            text,
            program,
            env,
            max_bytes,
            counts: ConditionCounts::default(),
        }));
        condition.check_type()?;
        Ok(condition)
    }
}

impl Condition {
    /// Whether the subject matches. One that cannot be evaluated does not.
    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        let counts = &self.0.counts;
        if subject.record.is_some_and(|(_, bytes)| bytes > self.0.max_bytes) {
            counts.too_large.fetch_add(1, Relaxed);
            return false;
        }
        let record = subject.record.map(|(value, _)| Json(value));
        let (count, matches) = match self.evaluate(subject, record) {
            Some(Value::Bool(true)) => (&counts.matched, true),
            Some(Value::Bool(false)) => (&counts.unmatched, false),
            _ => (&counts.failed, false),
        };
        count.fetch_add(1, Relaxed);
        matches
    }

    /// The expression.
    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    /// The counts.
    pub(crate) fn counts(&self) -> &ConditionCounts {
        &self.0.counts
    }

    fn evaluate(&self, subject: &Subject<'_>, record: Option<impl Serialize>) -> Option<Value> {
        let mut context = Context::with_env(self.0.env.clone());
        let RecordPath { collection, rkey } = RecordPath::split(subject.path);
        let action = subject.action.as_str();
        let texts =
            [subject.did, subject.rev, action, collection, rkey].map(|text| text.to_owned());
        for (name, text) in TEXT_VARIABLES.into_iter().zip(texts) {
            context.add_variable_from_value(name, text);
        }
        context.add_variable_from_value("live", subject.live);
        match record {
            Some(record) => context.add_variable("record", record).ok()?,
            None => context.add_variable_from_value("record", Value::Null),
        }
        self.0.program.execute(&context).ok()
    }

    /// Refuses an expression whose value is never true or false, as far as an empty record shows that.
    fn check_type(&self) -> Result<(), String> {
        let subject = Subject {
            did: "did:web:a.test",
            rev: "2222222222222",
            live: true,
            action: Action::Create,
            path: "a.b.c/d",
            record: None,
        };
        match self.evaluate(&subject, Some(serde_json::json!({}))) {
            None | Some(Value::Bool(_)) => Ok(()),
            Some(_) => Err("expected an expression that is true or false".to_owned()),
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition").field("program", &self.program).finish_non_exhaustive()
    }
}

/// The first error, with its place.
fn parse_error(errors: &cel::ParseErrors) -> String {
    let Some(error) = errors.errors.first() else { return "not an expression".to_owned() };
    let (line, column) = error.pos;
    format!("line {line}, column {column}: {}", error.msg)
}

/// The variables with a text.
const TEXT_VARIABLES: [&str; 5] = ["did", "rev", "action", "collection", "rkey"];

const MAX_EXPRESSION_BYTES: usize = 16 << 10;

/// Maximum size of a record in bytes, by the number of nested loops: the cost of a loop is at most the square
/// of the size, as it may compare every part of the record with all of it.
const MAX_RECORD_BYTES: [usize; check::MAX_LOOPS + 1] = [1 << 20, 32 << 10, 4 << 10];

/// An expression must fit records of this size at least, in bytes.
const LEAST_RECORD_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use bumpalo::Bump;
    use codec::json as codec_json;

    use super::*;

    fn parse(text: &str) -> Result<Condition, String> {
        text.parse()
    }

    /// The result on a created post with this record.
    fn result(text: &str, record: &str) -> (bool, [u64; 4]) {
        let (arena, condition) = (Bump::new(), parse(text).unwrap());
        let value = codec_json::decode(record, &arena).unwrap();
        let matches = condition.matches(&Subject {
            did: "did:web:a.test",
            rev: "3jzfcijpj2z2a",
            live: true,
            action: Action::Create,
            path: "app.bsky.feed.post/3k",
            record: Some((&value, record.len())),
        });
        let counts = condition.counts();
        let counts = [&counts.matched, &counts.unmatched, &counts.failed, &counts.too_large];
        (matches, counts.map(|count| count.load(Relaxed)))
    }

    #[test]
    fn an_expression_is_true_of_its_record_and_its_variables() {
        let record = r#"{"text":"hello","langs":["en","de"],"n":3,
            "reply":{"parent":{"uri":"at://x"}},"embed":{"ref":{"$link":"bafyreib2rxk3rybk3aobmv5cjuql3bm2twh4jo5uxgfqgrtjnrumwqhwu4"}}}"#;
        for text in [
            "record.text.startsWith('hell') && 'en' in record.langs",
            "record.text.matches('^h.*o$') && record.n > 2",
            "has(record.reply) && !has(record.tags)",
            "record.langs.exists(lang, lang == 'de')",
            "record.embed.ref['$link'].startsWith('bafy')",
            "collection == 'app.bsky.feed.post' && rkey == '3k' && action == 'create' && live",
            "did == 'did:web:a.test' && rev > '3' && size(record.langs) == 2",
        ] {
            assert_eq!(result(text, record), (true, [1, 0, 0, 0]), "{text}");
        }
        assert_eq!(result("record.n > 3", record), (false, [0, 1, 0, 0]));
    }

    #[test]
    fn what_cannot_be_evaluated_does_not_match_and_is_counted() {
        for text in ["record.missing == 1", "record.text > 1", "record.langs.exists(x, x == 1)"] {
            assert_eq!(result(text, r#"{"text":"a","langs":1}"#), (false, [0, 0, 1, 0]), "{text}");
        }
    }

    #[test]
    fn a_mistyped_expression_is_refused_with_its_place() {
        for (text, expected) in [
            ("record.text ==", "line 1, column "),
            ("record.text == 'a", "line 1, column "),
            ("", "column"),
            ("recrod.text == 'a'", "column 1: unknown variable `recrod`"),
            ("true || record.text.startWith('a')", "unknown function `startWith`"),
            ("record.langs.exists(x, y == 1)", "unknown variable `y`"),
            ("record.text.matches(record.pattern)", "expected a text as pattern"),
            ("1 + 1", "true or false"),
            ("'a'", "true or false"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let long = format!("true{}", " || true".repeat(4096));
        assert!(parse(&long).unwrap_err().contains("at most"));
        let deep = format!("{}true{}", "(".repeat(2000), ")".repeat(2000));
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn loops_within_each_other_are_bounded_by_the_size_of_the_record() {
        let inner = "record.a.exists(x, record.a.exists(y, x == y))";
        let list = |count: usize| format!("{{\"a\":[{}1]}}", "1,".repeat(count));
        assert_eq!(result(inner, &list(10)), (true, [1, 0, 0, 0]));
        assert_eq!(result(inner, &list(4 << 10)), (false, [0, 0, 0, 1]));
        let one = "record.a.exists(x, x == 1)";
        assert_eq!(result(one, &list(4 << 10)), (true, [1, 0, 0, 0]));
        assert_eq!(result(one, &list(32 << 10)), (false, [0, 0, 0, 1]));
        assert_eq!(result("size(record.a) > 9", &list(400 << 10)), (true, [1, 0, 0, 0]));
        let product = "record.a.map(x, record.a.map(y, y)).size() > 1";
        assert_eq!(result(product, &list(40)), (true, [1, 0, 0, 0]));
        assert_eq!(result(product, &list(1900)), (false, [0, 0, 0, 1]), "values of 1 GB");
        let cube = parse("record.a.map(x, record.a.map(y, record.a)).size() > 1").unwrap_err();
        assert!(cube.contains("64 MiB"), "{cube}");
        let error = parse(&format!("record.a.all(z, {inner})")).unwrap_err();
        assert!(error.contains("nested loops"), "{error}");
        let pattern = "record.a.all(x, record.a.all(y, y.matches('a')))";
        assert!(parse(pattern).unwrap_err().contains("nested loops"), "a pattern is a loop");
    }

    #[test]
    fn a_record_as_deep_as_one_can_be_is_evaluated() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(60), "]".repeat(60));
        assert_eq!(result("size(record.a) == 1", &deep), (true, [1, 0, 0, 0]));
        let text = format!("{{\"a\":\"{}\"}}", "a".repeat(1 << 19));
        assert_eq!(result("record.a.matches('(a*)*b')", &text), (false, [0, 1, 0, 0]));
    }
}
