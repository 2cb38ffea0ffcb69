//! The events of a corpus, each read, its id hashed and its signature verified.

use std::marker::PhantomData;

use serde_json::json;

use super::Validate;
use super::corpus::Encoded;
use crate::protocol::{guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work, heap};

struct Events<V> {
    codec: PhantomData<V>,
    encoded: Encoded,
}

pub(super) fn load<V: Validate>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    Ok(Box::new(Events::<V> { codec: PhantomData, encoded: Encoded::load::<V>(files)? }))
}

impl<V: Validate> Work for Events<V> {
    fn size(&self) -> Size {
        self.encoded.size
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let (mut valid, mut invalid, mut errors) = (0, 0, 0);
        for (number, event) in self.encoded.events().enumerate() {
            match guarded(|| V::validate(self.encoded.bytes_of(event)?)) {
                Ok(true) => valid += 1,
                Ok(false) => invalid += 1,
                Err(refusal) => {
                    errors += 1;
                    tell(number, errors, &refusal);
                }
            }
        }
        let events = self.encoded.size.units;
        let counts =
            json!({ "events": events, "valid": valid, "invalid": invalid, "errors": errors });
        let allocations = heap::asked_by(|| self.encoded.each_of_all(V::validate));
        Ok(Proof { allocations: Some(allocations), ..counts.into() })
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        Ok(self.encoded.each_timed(V::validate))
    }
}
