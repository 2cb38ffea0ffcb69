//! `wireproof key`: which key is this text, and how else is it spelled?

use std::io::{Read, Write};

use serde::Serialize;
use wireproof::crypto::{Curve, KeyError, PublicKey};

use crate::args::{KeyArgs, KeyCurve};
use crate::failure::Failure;
use crate::hex;
use crate::output::Output;

pub(crate) fn run(args: &KeyArgs, output: Output) -> Result<(), Failure> {
    let text = match args.text.as_str() {
        "-" => read_standard_input()?,
        text => text.to_owned(),
    };
    let forms = Forms::of(&parse(&text, args.curve)?);
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &forms).map_err(std::io::Error::from)?;
        return Ok(out.write_all(b"\n")?);
    }
    let Forms { did_key, multikey, compressed, uncompressed, .. } = forms;
    writeln!(out, "curve         {}", forms.curve.described())?;
    writeln!(out, "did:key       {did_key}\nmultikey      {multikey}")?;
    Ok(writeln!(out, "compressed    {compressed}\nuncompressed  {uncompressed}")?)
}

fn read_standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

/// The spellings of a key.
#[derive(Serialize)]
struct Forms {
    curve: KeyCurve,
    did_key: String,
    multikey: String,
    compressed: String,
    uncompressed: String,
}

impl Forms {
    fn of(key: &PublicKey) -> Self {
        Self {
            curve: KeyCurve::of(key.curve()),
            did_key: key.to_did_key(),
            multikey: key.to_multikey(),
            compressed: hex::encode(&key.to_sec1()),
            uncompressed: hex::encode(&key.to_sec1_uncompressed()),
        }
    }
}

/// Reads a key in any of its spellings. Those that do not name their curve are of `curve`, or of the
/// only one of which they are a point.
pub(crate) fn parse(text: &str, curve: Option<KeyCurve>) -> Result<PublicKey, Failure> {
    let text = text.trim();
    let key = if text.starts_with("did:") {
        PublicKey::from_did_key(text).map_err(refused)?
    } else if let Some(point) = hex::decode(text) {
        on_a_curve(curve, |curve| PublicKey::from_sec1(curve, &point))?
    } else {
        match PublicKey::from_multikey(text) {
            // A legacy text has no multicodec.
            Err(KeyError::Multicodec) => {
                on_a_curve(curve, |curve| match PublicKey::from_legacy(curve, text) {
                    Err(KeyError::Length(_) | KeyError::Form(_)) => Err(KeyError::Multicodec),
                    outcome => outcome,
                })?
            }
            Err(KeyError::Multibase) => return Err(Failure::Refused(NO_FORM.to_owned())),
            outcome => outcome.map_err(refused)?,
        }
    };
    match curve {
        Some(asked) if asked.curve() != key.curve() => {
            let named = KeyCurve::of(key.curve()).described();
            Err(Failure::Refused(format!("not a key on {}: it is on {named}", asked.described())))
        }
        _ => Ok(key),
    }
}

/// Reads a point whose curve is not spelled.
fn on_a_curve(
    asked: Option<KeyCurve>,
    read: impl Fn(Curve) -> Result<PublicKey, KeyError>,
) -> Result<PublicKey, Failure> {
    if let Some(asked) = asked {
        return read(asked.curve()).map_err(refused);
    }
    match Curve::ALL.map(read) {
        [Ok(_), Ok(_)] => Err(Failure::Usage(AMBIGUOUS.to_owned())),
        [Ok(key), Err(_)] | [Err(_), Ok(key)] => Ok(key),
        [Err(error), Err(_)] => Err(refused(error)),
    }
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

    fn described(self) -> &'static str {
        match self {
            Self::K256 => "K-256 (secp256k1)",
            Self::P256 => "P-256 (secp256r1)",
        }
    }
}

const NO_FORM: &str =
    "not a key: neither a did:key, nor base58 that starts with `z`, nor hexadecimal";
const AMBIGUOUS: &str = "this is a point of both curves; say which is meant with --curve k256 or \
                         --curve p256";
