//! Is decoding the inverse of encoding, for any event at all?

use bumpalo::Bump;
use proptest::prelude::*;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, OwnedEvent, verify_many};

use crate::made::{self, encoded, raised_limits, there_and_back};

proptest! {
    #[test]
    fn what_a_format_holds_comes_back(event in any_event()) {
        for format in Format::ALL {
            if let Ok(back) = there_and_back(*format, &event) {
                prop_assert_eq!(&back, &event, "{}", format.name());
            }
        }
    }

    #[test]
    fn an_event_is_told_the_same_from_text_and_from_digits(event in any_event()) {
        // A value that one format read as bytes is written by the next as if it were text.
        let arena = Bump::new();
        let plain = event.borrow_in(&arena);
        for one in Format::ALL {
            let Ok(bytes) = encoded(*one, &plain) else { continue };
            let read = one.decode(&bytes, &arena, &raised_limits()).unwrap();
            for other in Format::ALL {
                prop_assert_eq!(
                    encoded(*other, &read),
                    encoded(*other, &plain),
                    "{} from {}",
                    other.name(),
                    one.name()
                );
            }
        }
    }

    #[test]
    fn batches_that_a_format_holds_come_back(events in proptest::collection::vec(any_event(), 0..6)) {
        let arena = Bump::new();
        let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
        for format in Format::ALL {
            let mut bytes = Vec::new();
            let singly = events.iter().all(|event| encoded(*format, event).is_ok());
            prop_assert_eq!(format.encode_batch(&events, &mut bytes).is_ok(), singly);
            if singly {
                let back = format.decode_batch(&bytes, &arena, &raised_limits());
                prop_assert_eq!(back, Ok(&events[..]), "{}", format.name());
            }
        }
    }

    #[test]
    fn many_are_judged_as_each_is(events in proptest::collection::vec(any_event(), 0..6)) {
        let arena = Bump::new();
        let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
        let singly: Vec<_> = events.iter().map(Event::verify).collect();
        prop_assert_eq!(verify_many(&events), singly);
    }
}

fn any_event() -> impl Strategy<Value = OwnedEvent> {
    let text = prop_oneof![
        "[ -~]{0,150}",
        "[0-9a-f]{0,70}",
        "[0-9a-fA-F]{0,20}",
        "(x|[0-9a-f]{30,35}|[0-9a-f]{64}| ){0,5}",
        "(?s).{0,20}",
        proptest::sample::select(&["e", "p", "t", "a", "", "root", "wss://nos.lol/"][..])
            .prop_map(str::to_owned),
    ];
    let tags = proptest::collection::vec(proptest::collection::vec(text.clone(), 0..7), 0..8);
    let keys = (any::<[u8; 32]>(), any::<[u8; 32]>(), any::<[u8; 32]>());
    (any::<i64>(), any::<u16>(), tags, text, keys).prop_map(
        |(created_at, kind, tags, content, (pubkey, first, second))| {
            let mut sig = [0; 64];
            sig[..32].copy_from_slice(&first);
            sig[32..].copy_from_slice(&second);
            let id = [0; 32];
            made::with_its_id(OwnedEvent { id, pubkey, created_at, kind, tags, content, sig })
        },
    )
}
