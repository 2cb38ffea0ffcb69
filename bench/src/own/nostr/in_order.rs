//! How do events lie in memory that are about to be written? As what was just read or made does: one
//! behind the other, texts with texts and lists with lists.
//!
//! An arena hands out its memory from the end to the start. Events read into it one by one would lie in the
//! other order than they are written in, which doubles the time and says nothing of writing.

use bumpalo::Bump;
use bumpalo::collections::{String as BumpString, Vec as BumpVec};
use wireproof::nostr::{Event, Tag, Value};

/// The same events, with their texts and lists in `arena`.
pub(super) fn in_order<'a>(events: &[Event<'_>], arena: &'a Bump) -> Vec<Event<'a>> {
    let mut texts = texts(events, arena);
    let mut values = BumpVec::with_capacity_in(events.iter().flat_map(values_of).count(), arena);
    let mut contents = Vec::with_capacity(events.len());
    for event in events {
        let text = |value: &Value<'_>| Value::Text(take(&mut texts, value.text_len()));
        values.extend(values_of(event).map(text));
        contents.push(take(&mut texts, event.content.len()));
    }
    let mut tags = tags(events, values.into_bump_slice(), arena);
    let event = |(event, content): (&Event<'_>, &'a str)| {
        let (own, rest) = tags.split_at(event.tags.len());
        tags = rest;
        let Event { id, pubkey, created_at, kind, sig, .. } = *event;
        Event { id, pubkey, created_at, kind, tags: own, content, sig }
    };
    events.iter().zip(contents).map(event).collect()
}

/// The texts of each event's values and its content.
fn texts<'a>(events: &[Event<'_>], arena: &'a Bump) -> &'a str {
    let mut texts = BumpString::new_in(arena);
    for event in events {
        values_of(event).for_each(|value| texts.push_str(&value.to_text()));
        texts.push_str(event.content);
    }
    texts.into_bump_str()
}

/// The tags of all events, whose values are `values`.
fn tags<'a>(events: &[Event<'_>], mut values: &'a [Value<'a>], arena: &'a Bump) -> &'a [Tag<'a>] {
    let tag_lens = events.iter().flat_map(|event| event.tags).map(|tag| tag.len());
    let mut tags = BumpVec::with_capacity_in(tag_lens.clone().count(), arena);
    tags.extend(tag_lens.map(|len| {
        let (own, rest) = values.split_at(len);
        values = rest;
        own
    }));
    tags.into_bump_slice()
}

fn values_of<'e>(event: &'e Event<'_>) -> impl Iterator<Item = &'e Value<'e>> {
    event.tags.iter().copied().flatten()
}

/// The first `len` bytes of `text`, which gets shorter.
fn take<'a>(text: &mut &'a str, len: usize) -> &'a str {
    let (taken, rest) = text.split_at(len);
    *text = rest;
    taken
}

#[cfg(test)]
mod tests {
    use simnet::nostr_events::{Corpus, Spec};

    use super::*;

    #[test]
    fn what_lies_in_order_is_equal_to_what_it_was_made_of() {
        let corpus = Corpus::generate(&Spec { events: 300, ..Spec::quick() });
        let [read, laid] = [Bump::new(), Bump::new()];
        let events: Vec<_> = corpus.events().iter().map(|event| event.borrow_in(&read)).collect();
        let copies = in_order(&events, &laid);
        assert_eq!(copies, events);
        let contents: Vec<_> = copies.iter().map(|event| event.content.as_ptr()).collect();
        assert!(contents.is_sorted());
    }
}
