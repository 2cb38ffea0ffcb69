//! How do events stand in a file of lines?

use super::{EventGroup, EventShape};

/// The events as JSON, each followed by a line feed.
pub fn json_lines<'e, E: EventShape + 'e>(events: impl IntoIterator<Item = &'e E>) -> String {
    let mut out = Vec::new();
    write(events, &mut out);
    text(out)
}

/// The same with a line before each group, `#` and its name.
pub fn grouped_lines<E: EventShape>(groups: &[EventGroup<'_, E>]) -> String {
    let mut out = Vec::new();
    for group in groups {
        out.extend_from_slice(format!("#{}\n", group.name).as_bytes());
        write(group.events.iter().copied(), &mut out);
    }
    text(out)
}

fn write<'e, E: EventShape + 'e>(events: impl IntoIterator<Item = &'e E>, out: &mut Vec<u8>) {
    for event in events {
        event.write_json(out);
        out.push(b'\n');
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON of text is text")
}
