//! The canonical DAG-CBOR of an operation: shorter keys first, and `prev` as text.

use std::collections::BTreeMap;

use codec::Cid;
use codec::cbor::Encoder;
use data_encoding::BASE64URL_NOPAD;

use super::{AccountData, LegacyCreate, Service, UnsignedOperation, Update};

impl UnsignedOperation {
    pub(super) fn encode(&self, sig: Option<&[u8; 64]>) -> Vec<u8> {
        let mut out = Encoder::new();
        let fields = match self {
            Self::Update(_) => 6,
            Self::Tombstone { .. } => 2,
            Self::Create(_) => 6,
        };
        out.map(fields + usize::from(sig.is_some()));
        if let Some(sig) = sig {
            out.text("sig").text(&BASE64URL_NOPAD.encode(sig));
        }
        prev(&mut out, self.prev());
        match self {
            Self::Update(Update { data, .. }) => update(&mut out, data),
            Self::Tombstone { .. } => {
                out.text("type").text("plc_tombstone");
            }
            Self::Create(fields) => create(&mut out, fields),
        }
        out.into_bytes()
    }
}

fn prev(out: &mut Encoder, prev: Option<Cid>) {
    out.text("prev");
    match prev {
        Some(cid) => out.text(&cid.to_string()),
        None => out.null(),
    };
}

fn update(out: &mut Encoder, data: &AccountData) {
    out.text("type").text("plc_operation").text("services");
    map(out, &data.services, service);
    out.text("alsoKnownAs");
    list(out, &data.also_known_as);
    out.text("rotationKeys");
    list(out, &data.rotation_keys);
    out.text("verificationMethods");
    map(out, &data.verification_methods, |out, key| {
        out.text(key);
    });
}

fn create(out: &mut Encoder, create: &LegacyCreate) {
    out.text("type").text("create").text("handle").text(&create.handle);
    out.text("service").text(&create.service).text("signingKey").text(&create.signing_key);
    out.text("recoveryKey").text(&create.recovery_key);
}

fn service(out: &mut Encoder, service: &Service) {
    out.map(2).text("type").text(&service.kind).text("endpoint").text(&service.endpoint);
}

fn list(out: &mut Encoder, texts: &[String]) {
    out.array(texts.len());
    for text in texts {
        out.text(text);
    }
}

fn map<V>(out: &mut Encoder, map: &BTreeMap<String, V>, write: impl Fn(&mut Encoder, &V)) {
    let mut entries: Vec<(&String, &V)> = map.iter().collect();
    entries.sort_by_key(|(key, _)| (key.len(), *key));
    out.map(entries.len());
    for (key, value) in entries {
        out.text(key);
        write(out, value);
    }
}
