//! `key` and `sig verify`: encodings of keys, verdicts on signatures, exit codes.

use std::fs;

use assert_cmd::assert::Assert;
use crypto::{Curve, PublicKey, SecretKey};
use kernels::hex::encode as hex;

use crate::{command, json, run, stderr, stdout};

fn key(text: &str, args: &[&str]) -> Assert {
    command(&["key", text]).args(args).assert()
}

fn secret(curve: Curve) -> SecretKey {
    SecretKey::from_bytes(curve, &[7; 32]).unwrap()
}

/// A point of both curves: one x in four is of both.
fn ambiguous_point() -> [u8; 33] {
    let mut point = [0; 33];
    point[0] = 2;
    while Curve::ALL.iter().any(|curve| PublicKey::from_sec1(*curve, &point).is_err()) {
        point[32] += 1;
    }
    point
}

#[test]
fn a_key_is_printed_in_every_encoding() {
    let text = stdout(&key(K256, &[]).success());
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    let public = PublicKey::from_did_key(K256).unwrap();
    assert_eq!(lines[0], ["curve", "K-256", "(secp256k1)"]);
    assert_eq!(lines[1], ["did:key", K256]);
    assert_eq!(lines[2], ["multikey", &K256["did:key:".len()..]]);
    assert_eq!(lines[3], ["compressed", &hex(&public.to_sec1())]);
    assert_eq!(lines[4], ["uncompressed", &hex(&public.to_sec1_uncompressed())]);
    assert_eq!(lines.len(), 5);
}

#[test]
fn every_encoding_of_a_key_gives_the_same_json() {
    for (curve, name) in [(Curve::K256, "k256"), (Curve::P256, "p256")] {
        let public = secret(curve).public_key();
        let uncompressed = hex(&public.to_sec1_uncompressed());
        let encodings = [
            public.to_did_key(),
            public.to_multikey(),
            public.to_legacy(),
            hex(&public.to_sec1()),
            uncompressed.to_uppercase(),
            uncompressed.clone(),
        ];
        for text in encodings {
            let assert = key(&text, &["--json", "--curve", name]).success();
            let document = json(&assert);
            assert_eq!(document["curve"], name);
            assert_eq!(document["did_key"], public.to_did_key());
            assert_eq!(document["multikey"], public.to_multikey());
            assert_eq!(document["compressed"], hex(&public.to_sec1()));
            assert_eq!(document["uncompressed"], uncompressed);
        }
    }
}

#[test]
fn a_key_is_read_from_standard_input_with_a_trailing_line_feed() {
    let assert = command(&["key", "-"]).write_stdin(format!("{K256}\n")).assert().success();
    assert!(stdout(&assert).contains(K256));
}

#[test]
fn a_point_of_one_curve_needs_no_curve_and_a_point_of_both_does() {
    for curve in Curve::ALL {
        let public = secret(curve).public_key();
        let message = stdout(&key(&public.to_legacy(), &[]).success());
        assert!(message.contains(&public.to_did_key()));
    }
    let point = hex(&ambiguous_point());
    assert!(stderr(&key(&point, &[]).code(2)).contains("--curve k256"));
    for (name, shown) in [("k256", "K-256"), ("p256", "P-256")] {
        assert!(stdout(&key(&point, &["--legacy", name]).success()).contains(shown));
    }
}

#[test]
fn a_key_on_another_curve_than_given_is_refused() {
    let message = stderr(&key(K256, &["--curve", "p256"]).code(1));
    assert!(message.contains("not a key on P-256"), "{message}");
    let point = hex(&secret(Curve::K256).public_key().to_sec1_uncompressed());
    key(&point, &["--curve", "p256"]).code(1);
}

#[test]
fn text_that_is_no_key_is_refused_with_the_rule() {
    let changed = K256.replace("FTS3", "FTS0");
    for (text, reason) in [
        ("hello", "neither a did:key, nor base58"),
        ("", "the text is empty"),
        (" \n", "the text is empty"),
        ("did:plc:z72i7hdynmk6r22z27h6tvur", "did:key:"),
        ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "an Ed25519 key"),
        ("z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "an Ed25519 key"),
        (&changed, "base58"),
        ("02", "1 bytes"),
        (&format!("05{}", "11".repeat(32)), "starts with 0x05"),
        (&format!("02{}", "ff".repeat(32)), "not a point"),
    ] {
        let assert = key(text, &[]).code(1);
        let message = stderr(&assert);
        assert!(
            message.starts_with("wireproof: not a key: ") && message.contains(reason),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1);
        assert!(stdout(&assert).is_empty());
    }
}

/// Verifies a signature of `hello`.
fn verify(curve: Curve, sig: &[u8], args: &[&str]) -> Assert {
    let (key, sig) = (secret(curve).public_key().to_did_key(), hex(sig));
    command(&["sig", "verify", "--key", &key, "--sig", &sig]).args(args).assert()
}

const HELLO: [&str; 2] = ["--hex", "68656c6c6f"];

#[test]
fn a_valid_signature_is_exit_code_0_for_every_form_of_the_message() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("message");
    fs::write(&file, "hello").unwrap();
    for curve in Curve::ALL {
        let sig = secret(curve).sign(b"hello");
        let digest = hex(&kernels::sha256::digest(b"hello"));
        for args in [HELLO, ["--message", file.to_str().unwrap()], ["--digest", &digest]] {
            let message = stdout(&verify(curve, &sig, &args).success());
            let did_key = secret(curve).public_key().to_did_key();
            assert_eq!(message, format!("valid: signed by {did_key}\n"));
        }
    }
}

#[test]
fn a_signature_may_be_a_file_of_bytes_or_of_digits() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, digits) = (dir.path().join("sig.bin"), dir.path().join("sig.hex"));
    let sig = secret(Curve::K256).sign(b"hello");
    fs::write(&bytes, sig).unwrap();
    fs::write(&digits, hex(&sig) + "\n").unwrap();
    let did_key = secret(Curve::K256).public_key().to_did_key();
    for file in [bytes, digits] {
        let file = file.to_str().unwrap();
        let args = ["sig", "verify", "--key", &did_key, "--sig", file, "--message", "-"];
        command(&args).write_stdin("hello").assert().success();
    }
}

#[test]
fn a_signature_of_another_message_is_exit_code_1_with_one_line() {
    for curve in Curve::ALL {
        let sig = secret(curve).sign(b"goodbye");
        let assert = verify(curve, &sig, &HELLO).code(1);
        let message = "wireproof: refused: not this key's signature of this message\n";
        assert_eq!(stderr(&assert), message);
        assert!(stdout(&assert).is_empty());
    }
}

#[test]
fn a_signature_that_breaks_a_rule_is_refused_with_the_rule() {
    let good = secret(Curve::K256).sign(b"hello");
    let mut zero_r = good;
    zero_r[..32].fill(0);
    for (sig, rule) in
        [(&good[..63], "this is 63"), (&zero_r, "r is out of range"), (&[0xff; 64], "out of range")]
    {
        assert!(stderr(&verify(Curve::K256, sig, &HELLO).code(1)).contains(rule));
    }
}

#[test]
fn a_high_s_is_accepted_only_with_the_option_and_with_a_remark() {
    for (curve, order) in [(Curve::K256, K256_ORDER), (Curve::P256, P256_ORDER)] {
        let twin = with_high_s(secret(curve).sign(b"hello"), order);
        let message = stderr(&verify(curve, &twin, &HELLO).code(1));
        assert!(message.contains("upper half") && message.contains("--allow-high-s"), "{message}");
        let args = [&HELLO[..], &["--allow-high-s"]].concat();
        let message = stdout(&verify(curve, &twin, &args).success());
        assert!(message.contains("repository data with it is refused"), "{message}");
        let other = with_high_s(secret(curve).sign(b"goodbye"), order);
        verify(curve, &other, &args).code(1);
    }
}

/// s becomes n − s.
fn with_high_s(mut sig: [u8; 64], order: [u8; 32]) -> [u8; 64] {
    let mut borrow = false;
    for (s, n) in sig[32..].iter_mut().zip(order).rev() {
        let (difference, first) = n.overflowing_sub(*s);
        let (difference, second) = difference.overflowing_sub(u8::from(borrow));
        (*s, borrow) = (difference, first || second);
    }
    sig
}

#[test]
fn arguments_that_make_no_sense_are_exit_code_2() {
    let sig = [1; 64];
    for args in [
        &[][..],
        &["--hex", "0"],
        &["--hex", "zz"],
        &["--digest", "00"],
        &["--digest", "zz"],
        &["--hex", "00", "--digest", "00"],
    ] {
        let assert = verify(Curve::K256, &sig, args).code(2);
        assert!(stdout(&assert).is_empty(), "{args:?}");
    }
    let no_sig = ["sig", "verify", "--key", K256, "--sig", "no-such-file", "--hex", "00"];
    assert!(stderr(&run(&no_sig).code(2)).contains("neither hexadecimal"));
}

#[test]
fn a_missing_message_file_is_exit_code_4() {
    verify(Curve::K256, &[1; 64], &["--message", "no-such-file"]).code(4);
}

#[test]
fn a_mistyped_key_of_an_option_is_exit_code_2_with_its_name() {
    let both_curves = hex(&ambiguous_point());
    for (mistyped, reason) in [
        ("hello", "not a key: neither a did:key"),
        ("", "not a key: the text is empty"),
        (&K256.replace("FTS3", "FTS0"), "not a key: "),
        (&both_curves, "--curve k256"),
    ] {
        let args = ["sig", "verify", "--key", mistyped, "--sig", "00", "--hex", "00"];
        let message = stderr(&run(&args).code(2));
        let start = format!("wireproof: --key {mistyped}: ");
        assert!(message.starts_with(&start) && message.contains(reason), "{message}");
    }
    let args = ["sig", "verify", "--key", K256, "--curve", "p256", "--sig", "00", "--hex", "00"];
    assert!(stderr(&run(&args).code(2)).contains("not a key on P-256"));
}

const K256: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";

/// SEC 2 §2.4.1 and §2.4.2.
const K256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];
const P256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];
