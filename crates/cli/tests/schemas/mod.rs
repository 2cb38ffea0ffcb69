//! The JSON Schemas in `docs/formats/schemas`, which lines and documents of the command are checked against.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jsonschema::{Registry, Validator};
use serde_json::Value;

/// Checks a document of a command, or a line of `follow`.
///
/// # Panics
/// If it breaks the schema of the command, or of the line's kind, or if there is no such schema.
pub(crate) fn check(command: &str, value: &Value) {
    let faults = faults(command, value);
    assert!(faults.is_empty(), "{command}: {faults:#?} in {value}");
}

/// The rules that a value breaks.
pub(crate) fn faults(command: &str, value: &Value) -> Vec<String> {
    assert!(command == "follow" || has(command), "no schema of {command}");
    let kind = value["kind"].as_str().filter(|_| command == "follow");
    let kind = kind.map(|kind| format!("follow/{kind}.json"));
    let whole = if command == "follow" { "follow/line.json" } else { &format!("{command}.json") };
    kind.as_deref().into_iter().chain([whole]).flat_map(|name| broken(name, value)).collect()
}

fn broken(schema: &str, value: &Value) -> Vec<String> {
    let validator = SCHEMAS.get(schema).unwrap_or_else(|| panic!("no schema {schema}"));
    let faults = validator.iter_errors(value);
    faults.map(|fault| format!("{schema}, at `{}`: {fault}", fault.instance_path())).collect()
}

/// Whether there is a schema of a command.
pub(crate) fn has(command: &str) -> bool {
    SCHEMAS.contains_key(&format!("{command}.json"))
}

/// The validators of the schemas, by path in the folder.
static SCHEMAS: LazyLock<HashMap<String, Validator>> = LazyLock::new(|| {
    let files = files(&folder());
    let names = files.iter().map(|path| name(path));
    let schemas: HashMap<String, Value> = names.map(|name| (name.clone(), read(&name))).collect();
    let id = |schema: &Value| schema["$id"].as_str().expect("an id").to_owned();
    let mut registry = Registry::new();
    for (path, schema) in &schemas {
        assert!(id(schema).ends_with(&format!("/docs/formats/schemas/{path}")), "{path}");
        registry = registry.add(id(schema), schema).expect("a schema");
    }
    let registry = registry.prepare().expect("references that can be resolved");
    let validator = |schema| {
        let built = jsonschema::options().with_registry(&registry).build(schema);
        built.unwrap_or_else(|error| panic!("{}: {error}", id(schema)))
    };
    schemas.iter().map(|(path, schema)| (path.clone(), validator(schema))).collect()
});

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/schemas")
}

/// A schema by its path in the folder.
pub(crate) fn read(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder().join(name)).unwrap()).expect("JSON")
}

fn name(path: &Path) -> String {
    path.strip_prefix(folder()).unwrap().to_str().unwrap().replace('\\', "/")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(of).collect()
}
