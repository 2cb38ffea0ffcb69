//! The events that a consumer was given and stored.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::resync_records::Records;

#[derive(Default)]
pub(crate) struct Consumed {
    pub(crate) records: Records,
    /// The first content of every event.
    contents: BTreeMap<String, Value>,
    /// Number of events that came again.
    pub(crate) repeated: usize,
}

impl Consumed {
    /// Number of different events.
    pub(crate) fn events(&self) -> usize {
        self.contents.len()
    }

    /// Applies a line, or an event of a channel.
    ///
    /// # Panics
    /// If an event comes again with another content.
    pub(crate) fn apply(&mut self, event: &Value) {
        match self.contents.get(&event["id"].to_string()) {
            Some(known) => {
                assert_eq!(known, event, "an event never changes");
                self.repeated += 1;
            }
            None => drop(self.contents.insert(event["id"].to_string(), event.clone())),
        }
        if event["type"] == "record" {
            self.apply_op(&event["record"]["did"], &event["record"]);
        } else if event["verdict"] == "verified" {
            if event["piece"] == 0 && event["whole"] == true {
                self.records.remove(event["did"].as_str().unwrap());
            }
            for op in event["ops"].as_array().into_iter().flatten() {
                self.apply_op(&event["did"], op);
            }
        }
    }

    fn apply_op(&mut self, did: &Value, op: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let records = self.records.entry(text(did)).or_default();
        let path = format!("{}/{}", text(&op["collection"]), text(&op["rkey"]));
        if op["action"] == "delete" {
            records.remove(&path)
        } else {
            records.insert(path, text(&op["cid"]))
        };
    }
}
