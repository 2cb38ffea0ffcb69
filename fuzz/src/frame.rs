//! Frames decode alike alone and in batches, and accepted frames survive being written.

use atproto::event::{Decoder, Options, Values, peek};

/// Runs the target on one input.
pub(crate) fn run(frame: &[u8]) {
    let mut alone = Decoder::new(Options::default());
    let event = alone.decode(frame);
    let mut batch = Decoder::new(Options::default());
    let events = batch.decode_batch(&[frame, frame]);
    assert_eq!((events[0], events[1]), (event, event));

    // Building no values, and trusting hashes, only ever leaves something out.
    let mut lazy = Options::default();
    lazy.values = Values::ValidateOnly;
    let mut lazy = Decoder::new(lazy);
    assert_eq!(lazy.decode(frame).map(drop), event.map(drop));
    let mut trusting = Options::default();
    trusting.trust_hashes = true;
    let mut trusting = Decoder::new(trusting);
    assert!(trusting.decode(frame).is_ok() || event.is_err());

    match event {
        Ok(event) => {
            assert!(peek(frame).is_ok());
            let written = event.to_frame();
            let mut again = Decoder::new(Options::default());
            assert_eq!(again.decode(&written), Ok(event));
        }
        Err(error) => assert!(error.offset <= frame.len()),
    }
}
