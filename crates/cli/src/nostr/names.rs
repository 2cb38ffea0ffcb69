//! Keys and ids as people have them: 64 hexadecimal digits, or the names of NIP-19 (`npub1…`, `note1…`), with or without
//! `nostr:`.

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use kernels::hex;

/// A public key: digits, `npub1…` or `nprofile1…`.
pub(super) fn public_key(text: &str) -> Result<[u8; 32], &'static str> {
    let name = bare(text);
    digits(name)
        .or_else(|| bytes_of("npub", name))
        .or_else(|| first_of("nprofile", name))
        .ok_or("expected a public key: 64 hexadecimal digits, npub1… or nprofile1…")
}

/// The id of an event: digits, `note1…` or `nevent1…`.
pub(super) fn event_id(text: &str) -> Result<[u8; 32], &'static str> {
    let name = bare(text);
    digits(name)
        .or_else(|| bytes_of("note", name))
        .or_else(|| first_of("nevent", name))
        .ok_or("expected the id of an event: 64 hexadecimal digits, note1… or nevent1…")
}

/// A secret key: digits, or `nsec1…`.
pub(super) fn secret_key(text: &str) -> Option<[u8; 32]> {
    digits(text).or_else(|| bytes_of("nsec", text))
}

fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix("nostr:").unwrap_or(text)
}

fn digits(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let is_hex = text.len() == 64 && hex::decode(text.to_ascii_lowercase().as_bytes(), &mut bytes);
    is_hex.then_some(bytes)
}

/// The content of a name with this prefix.
fn decoded(prefix: &str, text: &str) -> Option<Vec<u8>> {
    let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
    (checked.hrp().to_lowercase() == prefix).then(|| checked.byte_iter().take(MAX_BYTES).collect())
}

/// A name of 32 bytes.
fn bytes_of(prefix: &str, text: &str) -> Option<[u8; 32]> {
    decoded(prefix, text)?.try_into().ok()
}

/// The first value of type 0 in a name with several values, after its type and length.
fn first_of(prefix: &str, text: &str) -> Option<[u8; 32]> {
    let bytes = decoded(prefix, text)?;
    let mut rest = &*bytes;
    while let [kind, len, after @ ..] = rest {
        let (value, next) = after.split_at_checked(usize::from(*len))?;
        if *kind == 0 {
            return value.try_into().ok();
        }
        rest = next;
    }
    None
}

/// Bytes of a name that are read; one of Nostr has at most some relays after the id.
const MAX_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_key_is_64_digits_or_an_nsec() {
        // The example of NIP-19.
        let digits = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";
        let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
        assert_eq!(secret_key(nsec).map(|key| hex::encode(&key)), Some(digits.to_owned()));
        assert_eq!(secret_key(digits), secret_key(nsec));
        assert_eq!(secret_key(&digits.to_uppercase()), secret_key(nsec));
        let npub = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
        for text in ["", &digits[1..], &nsec[..60], &nsec.replace("laq", "lap"), npub] {
            assert_eq!(secret_key(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_digits_an_npub_or_an_nprofile_and_an_id_is_none_of_them() {
        // The examples of NIP-19.
        let npub = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
        let digits = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e";
        let nprofile = "nprofile1qqsrhuxx8l9ex335q7he0f09aej04zpazpl0ne2cgukyawd24mayt8gpp4mhxue69uhhytnc9e3k7mgpz4mhxue69uhkg6nzv9ejuumpv34kytnrdaksjlyr9p";
        let key = public_key(digits).unwrap();
        for text in [npub, &format!("nostr:{npub}"), &digits.to_uppercase(), &format!(" {npub}\n")]
        {
            assert_eq!(public_key(text), Ok(key), "{text}");
        }
        let of_profile = public_key(nprofile).unwrap();
        let expected = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d";
        assert_eq!(hex::encode(&of_profile), expected);
        assert_eq!(event_id(digits), Ok(key));
        for text in [npub, nprofile, "note1", "", &digits[1..]] {
            assert!(event_id(text).is_err(), "{text}");
        }
    }
}
