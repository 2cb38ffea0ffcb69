//! minicbor, a CBOR library that borrows, with structs by its own derive.

mod named;
mod numbered;

use runner_shell::{Runner, nostr};

fn main() -> std::io::Result<()> {
    let tasks = [
        nostr::tasks::<named::Schemaless>(),
        nostr::tasks::<numbered::Packed>(),
        nostr::tasks::<numbered::IntKey>(),
        vec![
            nostr::fields::<named::Schemaless>(),
            nostr::fields::<numbered::Packed>(),
            nostr::fields::<numbered::IntKey>(),
        ],
    ];
    runner_shell::run(&Runner {
        engine: "minicbor 2.3.1 into borrowed structs, faster-hex 0.10.1",
        version: "2.3.1",
        tasks: &tasks.concat(),
    })
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<named::Schemaless>();
        claims::assert_claims::<numbered::Packed>();
        claims::assert_claims::<numbered::IntKey>();
        claims::assert_fields::<named::Schemaless>();
        claims::assert_fields::<numbered::Packed>();
        claims::assert_fields::<numbered::IntKey>();
    }
}
