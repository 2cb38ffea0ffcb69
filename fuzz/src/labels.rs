//! Labels get the same verdict alone and in a batch, and only signed ones are accepted; messages survive being written.

use std::collections::HashMap;

use atproto::label::{Label, LabelMessage, LabelPage, Labels};
use crypto::{Curve, SecretKey};
use verify::labels::{LabelJudge, ReceivedLabel, SourceKeys};

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(page) = LabelPage::parse(bytes) {
        let labels: Vec<&[u8]> = page.labels.iter().map(Vec::as_slice).collect();
        judge(&labels);
    }
    match LabelMessage::decode(bytes) {
        Ok(LabelMessage::Labels(labels)) => {
            let written = labels.to_frame();
            assert_eq!(LabelMessage::decode(&written), Ok(LabelMessage::Labels(labels.clone())));
            judge(&labels.labels);
        }
        Ok(_) => {}
        Err(error) => assert!(error.offset <= bytes.len()),
    }
    judge(&[bytes]);
}

/// Judges labels as they are, and signed again.
fn judge(labels: &[&[u8]]) {
    let secret = SecretKey::from_bytes(Curve::K256, &[7; 32]).expect("a small number");
    let parsed: Vec<Label<'_>> =
        labels.iter().filter_map(|label| Label::parse(label).ok()).collect();
    let key = SourceKeys::of(*secret.public_key().as_compressed());
    let keys: HashMap<Box<str>, SourceKeys> =
        parsed.iter().map(|label| (label.fields.src.into(), key.clone())).collect();
    let signed: Vec<Vec<u8>> = { parsed.iter() }
        .map(|label| label.fields.with_signature(&secret.sign(&label.fields.to_bytes())))
        .collect();
    let all = labels.iter().copied().chain(signed.iter().map(Vec::as_slice));
    let received: Vec<ReceivedLabel<'_>> =
        all.map(|bytes| ReceivedLabel { bytes, service: None }).collect();
    let (mut together, mut alone) = (judge_of_labels(), judge_of_labels());
    for (at, judged) in together.judge(&received, &keys, NOW).into_iter().enumerate() {
        assert_eq!(alone.judge(&received[at..=at], &keys, NOW)[0], judged);
        let is_signed = at >= labels.len();
        if let Ok(judged) = judged {
            let label = judged.label.into_inner();
            assert!(is_signed || *label.sig == secret.sign(&label.fields.to_bytes()));
        }
    }
    let frame = Labels { seq: 1, labels: signed.iter().map(Vec::as_slice).collect() }.to_frame();
    assert!(LabelMessage::decode(&frame).is_ok());
}

fn judge_of_labels() -> LabelJudge {
    LabelJudge::new([1; 16], false)
}

/// 2026-06-01T00:00:00Z.
const NOW: i64 = 1_780_272_000_000_000;
