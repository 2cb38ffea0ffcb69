//! ciborium, the CBOR library for serde.

mod codecs;

use codecs::{IntKey, Packed, Schemaless};
use runner_shell::{Runner, nostr};

fn main() -> std::io::Result<()> {
    let tasks = [nostr::tasks::<Schemaless>(), nostr::tasks::<Packed>(), nostr::tasks::<IntKey>()];
    runner_shell::run(&Runner {
        engine: "ciborium 0.2.2, serde_bytes 0.11.19, faster-hex 0.10.1",
        version: "0.2.2",
        tasks: &tasks.concat(),
    })
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<Schemaless>();
        claims::assert_claims::<Packed>();
        claims::assert_claims::<IntKey>();
    }
}
