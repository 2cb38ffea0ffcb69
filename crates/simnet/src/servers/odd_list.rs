//! Lists with odd entries: some name no account or host, others have optional values of no use.

use serde_json::{Value, json};

/// The entries of a page among odd ones, with other optional values.
pub(super) fn with_odd_entries(entries: Vec<Value>) -> Vec<Value> {
    let unnamed = unnamed();
    let mut list = Vec::with_capacity(entries.len() + unnamed.len());
    let mut others = unnamed.into_iter();
    for (number, mut entry) in entries.into_iter().enumerate() {
        list.extend(others.next());
        make_odd(&mut entry, number);
        list.push(entry);
    }
    list.extend(others);
    list
}

/// Entries that name neither an account nor a host.
fn unnamed() -> Vec<Value> {
    let no_names = [json!(null), json!(7), json!(""), json!([])];
    let named = no_names.iter().map(|name| json!({ "did": name, "hostname": name, "rev": "" }));
    let upper = json!({ "did": "DID:PLC:7IZA6DE2DWAP2SBKPAV7C6C6", "rev": null });
    let unlike = [json!(null), json!(7), json!("did"), json!([]), json!({}), upper];
    named.chain(unlike).collect()
}

/// Gives the optional values of an entry another form.
fn make_odd(entry: &mut Value, number: usize) {
    for name in ["rev", "head", "seq", "accountCount"] {
        let Some(value) = entry.get_mut(name) else { continue };
        match number % 4 {
            0 => *value = "".into(),
            1 => *value = Value::Null,
            2 => *value = json!({ "of": number }),
            _ => {}
        }
    }
}
