//! `wireproof key`: reads a public key in any encoding, and prints it in all of them.

use std::path::Path;

use clap::{Args, ValueEnum};
use crypto::{Curve, KeyError, PublicKey};
use kernels::hex;
use serde::Serialize;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Show a public key in every encoding.
///
/// Reads a did:key, a Multikey, the base58 of legacy verification methods, and a SEC 1 point in hexadecimal, compressed
/// or not. Exit code 1 if the text is not a key. Other commands exit with 2 if an option has such a text.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeyArgs {
    /// The key; `-` for standard input.
    #[arg(value_name = "TEXT|-")]
    text: String,
    /// The curve of a key whose encoding does not name it: a legacy key or a bare point [default: the
    /// curve that has the point, if only one does].
    #[arg(long, visible_alias = "legacy", value_enum)]
    curve: Option<KeyCurve>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// The curves of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyCurve {
    /// secp256k1.
    K256,
    /// secp256r1, which OpenSSL calls prime256v1.
    P256,
}

pub(crate) fn run(args: &KeyArgs, output: Output) -> Result<(), Failure> {
    let text = match args.text.as_str() {
        "-" => {
            let path = Path::new("-");
            String::from_utf8(files::read(path)?).map_err(|_| {
                Failure::Local(format!("{}: text that is not UTF-8", files::name(path)))
            })?
        }
        text => text.to_owned(),
    };
    let key = Encodings::new(&parse(&text, args.curve)?);
    output.document(&key, args.json, Encodings::to_text)
}

/// The encodings of a key.
#[derive(Serialize)]
struct Encodings {
    curve: KeyCurve,
    did_key: String,
    multikey: String,
    compressed: String,
    uncompressed: String,
}

impl Encodings {
    fn new(key: &PublicKey) -> Self {
        Self {
            curve: KeyCurve::of(key.curve()),
            did_key: key.to_did_key(),
            multikey: key.to_multikey(),
            compressed: hex::encode(&key.to_sec1()),
            uncompressed: hex::encode(&key.to_sec1_uncompressed()),
        }
    }

    fn to_text(&self) -> String {
        let Self { curve, did_key, multikey, compressed, uncompressed } = self;
        let curve = curve.description();
        format!(
            "curve         {curve}\ndid:key       {did_key}\nmultikey      {multikey}\n\
             compressed    {compressed}\nuncompressed  {uncompressed}\n"
        )
    }
}

/// Parses the key of an option. A mistyped one is an error of usage.
pub(crate) fn parse_option(
    option: &str,
    text: &str,
    curve: Option<KeyCurve>,
) -> Result<PublicKey, Failure> {
    parse(text, curve).map_err(|failure| match failure {
        Failure::Refused(message) | Failure::Usage(message) => {
            Failure::Usage(format!("{option} {}: {message}", text.trim()))
        }
        other => other,
    })
}

/// Parses a key in any encoding. One that does not name its curve is on `curve`, or on the only curve
/// that has the point.
fn parse(text: &str, curve: Option<KeyCurve>) -> Result<PublicKey, Failure> {
    let text = text.trim();
    let key = if text.is_empty() {
        return Err(Failure::Refused(EMPTY.to_owned()));
    } else if text.starts_with("did:") {
        PublicKey::from_did_key(text).map_err(refused)?
    } else if let Some(point) = parse_hex(text) {
        on_curve(curve, |curve| PublicKey::from_sec1(curve, &point))?
    } else {
        match PublicKey::from_multikey(text) {
            // A legacy key has no multicodec.
            Err(KeyError::Multicodec) => {
                on_curve(curve, |curve| match PublicKey::from_legacy(curve, text) {
                    Err(KeyError::Length(_) | KeyError::Form(_)) => Err(KeyError::Multicodec),
                    outcome => outcome,
                })?
            }
            Err(KeyError::Multibase) => return Err(Failure::Refused(UNKNOWN_ENCODING.to_owned())),
            outcome => outcome.map_err(refused)?,
        }
    };
    match curve {
        Some(wanted) if wanted.curve() != key.curve() => {
            let found = KeyCurve::of(key.curve()).description();
            Err(Failure::Refused(format!(
                "not a key on {}: it is on {found}",
                wanted.description()
            )))
        }
        _ => Ok(key),
    }
}

/// Reads a point on the curve that is wanted, or on the only curve that has it.
fn on_curve(
    wanted: Option<KeyCurve>,
    read: impl Fn(Curve) -> Result<PublicKey, KeyError>,
) -> Result<PublicKey, Failure> {
    if let Some(wanted) = wanted {
        return read(wanted.curve()).map_err(refused);
    }
    match Curve::ALL.map(read) {
        [Ok(_), Ok(_)] => Err(Failure::Usage(AMBIGUOUS.to_owned())),
        [Ok(key), Err(_)] | [Err(_), Ok(key)] => Ok(key),
        [Err(error), Err(_)] => Err(refused(error)),
    }
}

/// The bytes of hexadecimal digits in either case; `None` for any other text.
pub(crate) fn parse_hex(digits: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    hex::decode_into(digits.to_ascii_lowercase().as_bytes(), &mut bytes).then_some(bytes)
}

fn refused(error: KeyError) -> Failure {
    Failure::Refused(format!("not a key: {error}"))
}

impl KeyCurve {
    fn of(curve: Curve) -> Self {
        match curve {
            Curve::K256 => Self::K256,
            Curve::P256 => Self::P256,
        }
    }

    fn curve(self) -> Curve {
        match self {
            Self::K256 => Curve::K256,
            Self::P256 => Curve::P256,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::K256 => "K-256 (secp256k1)",
            Self::P256 => "P-256 (secp256r1)",
        }
    }
}

const EMPTY: &str = "not a key: the text is empty";
const UNKNOWN_ENCODING: &str =
    "not a key: neither a did:key, nor base58 that starts with `z`, nor hexadecimal";
const AMBIGUOUS: &str = "the point is on both curves: name one with --curve k256 or --curve p256";

const EXAMPLES: &str = "\
Examples:
  wireproof key did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme
  wireproof key 0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798 --curve k256
  echo zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo | wireproof key - --json | jq -r .did_key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_pairs_of_digits_in_either_case_and_nothing_else() {
        assert_eq!(parse_hex("00fFa7"), Some(vec![0, 0xff, 0xa7]));
        assert_eq!(parse_hex(""), Some(Vec::new()));
        for bad in ["0", "0g", "+1", "0x00", " 00", "é"] {
            assert_eq!(parse_hex(bad), None, "{bad:?}");
        }
    }
}
