//! How fast is buffa, a Protobuf library whose generated views borrow from the bytes?

mod codec;
mod messages;

use codec::{Binary, BinaryHex, Strings};
use runner_shell::{Runner, nostr};

fn main() -> std::io::Result<()> {
    let tasks = [
        nostr::tasks::<Strings>(),
        nostr::tasks::<Binary>(),
        nostr::tasks::<BinaryHex>(),
        vec![nostr::fields::<Strings>(), nostr::fields::<Binary>(), nostr::fields::<BinaryHex>()],
    ];
    runner_shell::run(&Runner {
        engine: "buffa 0.9.2 into views",
        version: "0.9.2",
        tasks: &tasks.concat(),
    })
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<Strings>();
        experiments::hold_to_claims::<Binary>();
        experiments::hold_to_claims::<BinaryHex>();
        experiments::hold_fields::<Strings>();
        experiments::hold_fields::<Binary>();
        experiments::hold_fields::<BinaryHex>();
    }
}
