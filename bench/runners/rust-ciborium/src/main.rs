//! How fast is ciborium, the CBOR library of those who have serde?

mod intkey;
mod named;
mod packed;
mod value;

use runner_shell::{Runner, nostr};

fn main() -> std::io::Result<()> {
    let tasks = [
        nostr::tasks::<named::Schemaless>(),
        nostr::tasks::<packed::Packed>(),
        nostr::tasks::<intkey::IntKey>(),
    ];
    runner_shell::run(&Runner {
        engine: "ciborium 0.2.2, serde_bytes 0.11.19, faster-hex 0.10.1",
        version: "0.2.2",
        tasks: &tasks.concat(),
    })
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<named::Schemaless>();
        experiments::hold_to_claims::<packed::Packed>();
        experiments::hold_to_claims::<intkey::IntKey>();
    }
}
