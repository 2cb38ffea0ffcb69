//! How fast is prost, the Protobuf library of most Rust programs?

mod binary;
mod text;

use runner_shell::{Runner, nostr};

fn main() -> std::io::Result<()> {
    let tasks = [
        nostr::tasks::<text::Strings>(),
        nostr::tasks::<binary::Binary>(),
        nostr::tasks::<binary::BinaryHex>(),
        vec![
            nostr::fields::<text::Strings>(),
            nostr::fields::<binary::Binary>(),
            nostr::fields::<binary::BinaryHex>(),
        ],
    ];
    runner_shell::run(&Runner { engine: "prost 0.14.4", version: "0.14.4", tasks: &tasks.concat() })
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<text::Strings>();
        experiments::hold_to_claims::<binary::Binary>();
        experiments::hold_to_claims::<binary::BinaryHex>();
        experiments::hold_fields::<text::Strings>();
        experiments::hold_fields::<binary::Binary>();
        experiments::hold_fields::<binary::BinaryHex>();
    }
}
