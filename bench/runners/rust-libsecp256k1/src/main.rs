//! libsecp256k1, the C library of Bitcoin Core. Its Rust crate verifies K-256 and BIP-340; P-256, which it does not
//! have, is verified by AWS-LC, the fastest implementation that a crate offers.
//!
//! It represents code that is written for speed on top of these libraries.

mod commit;
mod events;
mod sigs;

use runner_shell::Runner;

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "secp256k1 0.33.1 (libsecp256k1) + aws-lc-rs 1.19.0 for P-256, minicbor 2.3.1 + sha2 0.11.1",
        version: "secp256k1 0.33.1",
        tasks: &[
            runner_shell::sigs::task::<sigs::Libsecp256k1>(),
            runner_shell::schnorr::task::<events::Libsecp256k1>(),
        ],
    })
}
