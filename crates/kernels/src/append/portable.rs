//! Pieces appended to the list itself: what the answer is.

use crate::json;

pub(super) fn quoted(text: &[u8], list: &mut Vec<u8>) -> bool {
    let start = list.len();
    list.push(b'"');
    if json::append_plain(text, list) < text.len() {
        list.truncate(start);
        return false;
    }
    list.push(b'"');
    true
}
