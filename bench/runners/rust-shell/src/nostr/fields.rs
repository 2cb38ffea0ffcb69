//! Single fields of the events of a corpus, read without the rest.

use std::marker::PhantomData;

use serde_json::{Value, json};

use super::Fields;
use super::corpus::Encoded;
use crate::protocol::{guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work, heap};

/// What the variants are called behind the format's name.
pub(super) const NAMES: [&str; 4] = ["kind", "pubkey", "both", "filter"];

/// What a variant reads of an event.
#[derive(Clone, Copy)]
enum Field {
    Kind,
    Pubkey,
    Both,
    Filter,
}

struct Events<F> {
    codec: PhantomData<F>,
    field: Field,
    encoded: Encoded,
}

pub(super) fn load<F: Fields>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let field = match variant.rsplit('/').next() {
        Some("kind") => Field::Kind,
        Some("pubkey") => Field::Pubkey,
        Some("both") => Field::Both,
        _ => Field::Filter,
    };
    let encoded = Encoded::load::<F>(files)?;
    Ok(Box::new(Events::<F> { codec: PhantomData, field, encoded }))
}

impl<F: Fields> Work for Events<F> {
    fn size(&self) -> Size {
        self.encoded.size
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let (mut sums, mut errors) = (Sums::default(), 0);
        for (number, event) in self.encoded.events().enumerate() {
            sums.events += 1;
            let added = guarded(|| sums.add::<F>(self.field, self.encoded.bytes_of(event)?));
            if let Err(refusal) = added {
                errors += 1;
                tell(number, errors, &refusal);
            }
        }
        let allocations = heap::asked_by(|| self.work());
        Ok(Proof { allocations: Some(allocations), ..sums.to_json(self.field).into() })
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        self.work();
        Ok(Parts::default())
    }
}

impl<F: Fields> Events<F> {
    fn work(&self) {
        match self.field {
            Field::Kind => self.encoded.each_of_all(F::kind),
            Field::Pubkey => self.encoded.each_of_all(F::pubkey),
            Field::Both => self.encoded.each_of_all(F::both),
            Field::Filter => self.encoded.each_of_all(is_wanted::<F>),
        }
    }
}

fn is_wanted<F: Fields>(bytes: &[u8]) -> Result<bool, Refusal> {
    let (kind, pubkey) = F::both(bytes)?;
    Ok(kind == 1 && pubkey[0] < 0x40)
}

#[derive(Default)]
struct Sums {
    events: u64,
    kinds: u64,
    pubkeys: u32,
    matched: u64,
}

impl Sums {
    fn add<F: Fields>(&mut self, field: Field, bytes: &[u8]) -> Result<(), Refusal> {
        match field {
            Field::Kind => self.kinds += u64::from(F::kind(bytes)?),
            Field::Pubkey => self.add_pubkey(F::pubkey(bytes)?),
            Field::Both => {
                let (kind, pubkey) = F::both(bytes)?;
                self.kinds += u64::from(kind);
                self.add_pubkey(pubkey);
            }
            Field::Filter => self.matched += u64::from(is_wanted::<F>(bytes)?),
        }
        Ok(())
    }

    fn add_pubkey(&mut self, [a, b, c, d, ..]: [u8; 32]) {
        self.pubkeys = self.pubkeys.wrapping_add(u32::from_be_bytes([a, b, c, d]));
    }

    fn to_json(&self, field: Field) -> Value {
        let Sums { events, kinds, pubkeys, matched } = self;
        match field {
            Field::Kind => json!({ "events": events, "kinds": kinds }),
            Field::Pubkey => json!({ "events": events, "pubkeys": pubkeys }),
            Field::Both => json!({ "events": events, "kinds": kinds, "pubkeys": pubkeys }),
            Field::Filter => json!({ "events": events, "matched": matched }),
        }
    }
}
