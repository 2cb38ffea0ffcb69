//! The plain driver: runs targets on seeds and on mutations of them, without coverage, on any toolchain.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Target;
use crate::seeds;

/// How long a target runs.
#[derive(Clone, Copy, Debug)]
pub enum Effort {
    /// Number of mutated inputs.
    Inputs(u64),
    /// Wall time.
    Time(Duration),
}

/// An input for which a property does not hold.
#[derive(Debug)]
pub struct Finding {
    /// The target.
    pub target: &'static str,
    /// The file with the input.
    pub path: PathBuf,
}

/// Runs a target on its seeds, and then on mutations of them. Returns the number of inputs.
///
/// The mutations depend only on `seed`. The first failing input is written to `findings` and returned as the error.
///
/// # Errors
/// If a property does not hold.
///
/// # Panics
/// If the failing input cannot be written.
pub fn run(target: Target, effort: Effort, seed: u64, findings: &Path) -> Result<u64, Finding> {
    let seeds = seeds::of(target.name);
    let mut mutator = Mutator(seed | 1);
    for input in &seeds {
        check(target, input, findings)?;
    }
    let (mut inputs, started) = (0, Instant::now());
    let is_enough = |inputs| match effort {
        Effort::Inputs(most) => inputs >= most,
        Effort::Time(most) => started.elapsed() >= most,
    };
    while !is_enough(inputs) {
        check(target, &mutator.mutate(&seeds), findings)?;
        inputs += 1;
    }
    Ok(inputs + seeds.len() as u64)
}

fn check(target: Target, input: &[u8], findings: &Path) -> Result<(), Finding> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|_| {
        let path = findings.join(format!("{}-{:016x}", target.name, fingerprint(input)));
        std::fs::create_dir_all(findings).expect("a folder for findings");
        std::fs::write(&path, input).expect("a file for the failing input");
        Finding { target: target.name, path }
    })
}

/// FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Random changes of seeds, by an xorshift generator.
struct Mutator(u64);

impl Mutator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % (end as u64).max(1)) as usize
    }

    /// A seed after one to eight changes.
    fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let pick = self.below(seeds.len());
        let mut input = seeds.get(pick).cloned().unwrap_or_default();
        for _ in 0..=self.below(8) {
            let other = self.below(seeds.len());
            self.change(&mut input, seeds.get(other).map_or(&[], Vec::as_slice));
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let (start, len) = (self.below(input.len()), 1 + self.below(8));
        let end = input.len().min(start + len);
        match self.below(7) {
            0 => input.truncate(start),
            1 => drop(input.drain(start..end)),
            2 => input.insert(start, self.next() as u8),
            3 => input.extend_from_within(start..end),
            4 => {
                let from = self.below(other.len());
                let part = &other[from..other.len().min(from + 4 * len)];
                drop(input.splice(start..end, part.iter().copied()));
            }
            5 => self.set(input, start, |mutator, _| mutator.next() as u8),
            _ => self.set(input, start, |mutator, byte| byte ^ 1 << mutator.below(8)),
        }
    }

    fn set(&mut self, input: &mut [u8], at: usize, change: impl Fn(&mut Self, u8) -> u8) {
        if let Some(byte) = input.get_mut(at) {
            *byte = change(self, *byte);
        }
    }
}

/// Maximum length of an input in bytes.
pub const MAX_INPUT_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_written_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::new("cbor", |input| assert!(input.len() < 3));
        let finding = run(target, Effort::Inputs(1_000), 1, folder.path()).unwrap_err();
        assert_eq!(finding.target, "cbor");
        assert!(std::fs::read(&finding.path).unwrap().len() >= 3);
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let seeds = [b"some bytes".to_vec(), b"others".to_vec()];
        let inputs = |seed| (0..100).map(|_| Mutator(seed).mutate(&seeds)).collect::<Vec<_>>();
        assert_eq!(inputs(5), inputs(5));
        assert_ne!(inputs(5), inputs(7));
    }
}
