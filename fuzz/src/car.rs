//! The readers of archives agree on the blocks, or on the error and its offset.

use codec::car::{self, Block, CarError, HashProof, Options, OwnedBlock, StreamError};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    for trust_hashes in [false, true] {
        let mut options = Options::default();
        options.trust_hashes = trust_hashes;
        assert_readers_agree(input, &options);
    }
}

fn assert_readers_agree(input: &[u8], options: &Options) {
    let (stepped, fault) = step(input, options);
    match car::read(input, options) {
        Ok(whole) => {
            assert_eq!(fault, None);
            assert_eq!(whole.blocks, stepped);
        }
        Err(error) => assert_eq!(fault, Some(error)),
    }
    let (streamed, stream_fault) = stream(input, options);
    assert_eq!(stream_fault, fault);
    assert_eq!(streamed.len(), stepped.len());
    for (streamed, block) in streamed.iter().zip(&stepped) {
        assert_eq!(streamed.cid(), block.cid);
        assert_eq!(streamed.data(), block.data);
        assert_eq!((streamed.offset, streamed.proof), (block.offset, block.proof));
        assert_block_lies_in(input, block);
        assert_eq!(block.proof == HashProof::Trusted, options.trust_hashes);
    }
}

fn assert_block_lies_in(input: &[u8], block: &Block<'_>) {
    let at = block.data_offset();
    assert_eq!(&input[at..at + block.data.len()], block.data);
}

/// The blocks in front of the first fault, and the fault.
fn step<'a>(input: &'a [u8], options: &Options) -> (Vec<Block<'a>>, Option<CarError>) {
    let mut found = Vec::new();
    match car::Blocks::new(input, options) {
        Err(error) => return (found, Some(error)),
        Ok(blocks) => {
            for block in blocks {
                match block {
                    Ok(block) => found.push(block),
                    Err(error) => return (found, Some(error)),
                }
            }
        }
    }
    (found, None)
}

fn stream(input: &[u8], options: &Options) -> (Vec<OwnedBlock>, Option<CarError>) {
    let mut found = Vec::new();
    match car::StreamReader::new(input, options) {
        Err(error) => return (found, Some(of_archive(error))),
        Ok(blocks) => {
            for block in blocks {
                match block {
                    Ok(block) => found.push(block),
                    Err(error) => return (found, Some(of_archive(error))),
                }
            }
        }
    }
    (found, None)
}

fn of_archive(error: StreamError) -> CarError {
    match error {
        StreamError::Car(error) => error,
        other => panic!("a slice does not fail: {other}"),
    }
}
