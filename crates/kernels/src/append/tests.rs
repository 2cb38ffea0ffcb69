use super::*;

/// Runs `piece` after a few bytes in a vector with little and with much spare capacity, on every back end that
/// this machine has; returns the result, which is the same for all.
fn appended<T: PartialEq + std::fmt::Debug>(piece: impl Fn(&mut Appender) -> T) -> (T, Vec<u8>) {
    let mut results = Vec::new();
    for room in [0, 1, 65, 1_000] {
        for is_wide in back_ends() {
            let mut list = Vec::with_capacity(BEFORE.len() + room);
            list.extend_from_slice(BEFORE);
            results.push(appended_to(&piece, *is_wide, list));
        }
    }
    let first = results.pop().unwrap();
    results.iter().for_each(|result| assert_eq!(*result, first));
    first
}

fn appended_to<T>(
    piece: impl Fn(&mut Appender) -> T,
    is_wide: bool,
    list: Vec<u8>,
) -> (T, Vec<u8>) {
    let mut appender = Appender { vec: list, is_wide };
    let result = piece(&mut appender);
    let appended = appender.vec.strip_prefix(BEFORE).expect("the bytes before stay");
    (result, appended.to_vec())
}

/// For every back end, whether it is the wide one.
fn back_ends() -> &'static [bool] {
    #[cfg(target_arch = "x86_64")]
    if x86_avx512::is_available() {
        return &[false, true];
    }
    &[false]
}

#[test]
fn every_back_end_appends_bytes_of_every_length() {
    for len in 0..=BYTES.len() {
        let bytes = &BYTES[..len];
        assert_eq!(appended(|out| out.bytes(bytes)).1, bytes);
    }
    assert_eq!(appended(|out| out.array(b"array")).1, b"array");
    assert_eq!(appended(|out| out.byte(7)).1, [7]);
}

#[test]
fn every_back_end_writes_hex_of_every_length() {
    for len in 0..=BYTES.len() {
        let bytes = &BYTES[..len];
        let expected: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(appended(|out| out.hex(bytes)).1, expected.into_bytes());
    }
}

#[test]
fn every_back_end_quotes_text_unless_a_byte_of_it_is_special() {
    for len in 0..=130 {
        let mut text = vec![b'a'; len];
        let quoted = [b"\"", &text[..], b"\""].concat();
        assert_eq!(appended(|out| out.quoted(&text)), (true, quoted));
        for at in (0..len).step_by(1 + len / 20).chain(len.checked_sub(1)) {
            for byte in 0..=255u8 {
                text[at] = byte;
                let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
                let (is_quoted, bytes) = appended(|out| out.quoted(&text));
                assert_eq!((is_quoted, bytes.is_empty()), (!is_special, is_special), "{byte:02x}");
            }
            text[at] = b'a';
        }
    }
}

#[test]
fn pieces_are_appended_in_order_by_the_chosen_back_end() {
    struct Growing;
    impl Pieces for Growing {
        fn append_to(self, out: &mut Appender) {
            for len in 0..BYTES.len() {
                out.bytes(&BYTES[..len]);
                out.with_vec(|list| list.push(b'/'));
            }
        }
    }
    let expected: Vec<u8> =
        (0..BYTES.len()).flat_map(|len| [&BYTES[..len], b"/"].concat()).collect();
    let mut list = Vec::new();
    append(Growing, &mut list);
    assert_eq!(list, expected);
    append_portable(Growing, &mut list);
    assert_eq!(list, expected.repeat(2));
}

const BEFORE: &[u8] = b"before";

const BYTES: [u8; 200] = {
    let mut bytes = [0; 200];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at as u8).wrapping_mul(37);
        at += 1;
    }
    bytes
};
