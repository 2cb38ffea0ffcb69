//! How fast is minicbor, a CBOR library that borrows, with structs by its own derive?

mod named;
mod numbered;
mod value;

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
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<named::Schemaless>();
        experiments::hold_to_claims::<numbered::Packed>();
        experiments::hold_to_claims::<numbered::IntKey>();
        experiments::hold_fields::<named::Schemaless>();
        experiments::hold_fields::<numbered::Packed>();
        experiments::hold_fields::<numbered::IntKey>();
    }
}
