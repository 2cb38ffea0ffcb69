use std::time::Instant;
use super::*;
#[test]
fn figures() {
    for spec in [Spec::quick(), Spec::default()] {
        let start = Instant::now();
        let corpus = Corpus::generate(&spec, &mut |_, _| {});
        let took = start.elapsed();
        let n = corpus.frames().len();
        let bytes: usize = corpus.frames().iter().map(Vec::len).sum();
        let c = corpus.counts();
        println!("{n} {bytes} {} {} accounts {} {took:?}", c.blocks as f64 / n as f64, bytes / n, corpus.accounts().len());
        let mut decoder = atproto::event::Decoder::new(Default::default());
        for f in corpus.frames() { decoder.decode(f).unwrap(); }
    }
}
