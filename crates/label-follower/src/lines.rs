//! The line of a label.

use atproto::label::{Label, UnsignedLabel};
use data_encoding::BASE64_NOPAD;
use events::{LabelLine, Verdict};
use verify::labels::{JudgedLabel, LabelOutcome, ReceivedLabel};

/// The line of a label with its verdict. The keys `host`, `seq` and `index` are the caller's.
pub fn label_line<'a>(received: ReceivedLabel<'a>, outcome: &LabelOutcome<'a>) -> LabelLine<'a> {
    let service = received.service.map(Into::into);
    let line = LabelLine { v: 1, kind: LabelLine::LABEL.into(), service, ..LabelLine::default() };
    match outcome {
        Ok(JudgedLabel { label, key, standing, .. }) => LabelLine {
            verdict: Some(Verdict::Verified),
            code: Some(standing.code().into()),
            key: Some(key.to_did_key().into()),
            ..with_fields(line, label)
        },
        Err(rejection) => {
            let line = match Label::parse(received.bytes) {
                Ok(label) => with_fields(line, &label),
                Err(_) => line,
            };
            LabelLine {
                verdict: Some(Verdict::Refused),
                code: Some(rejection.code().into()),
                message: Some(rejection.to_string().into()),
                ..line
            }
        }
    }
}

fn with_fields<'a>(line: LabelLine<'a>, label: &Label<'a>) -> LabelLine<'a> {
    let UnsignedLabel { src, uri, cid, val, neg, cts, exp } = label.fields;
    LabelLine {
        src: Some(src.into()),
        uri: Some(uri.into()),
        cid: cid.map(Into::into),
        val: Some(val.into()),
        neg,
        cts: Some(cts.into()),
        exp: exp.map(Into::into),
        sig: Some(BASE64_NOPAD.encode(label.sig).into()),
        ..line
    }
}
