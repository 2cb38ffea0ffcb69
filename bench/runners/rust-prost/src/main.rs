//! prost, the Protobuf library of most Rust programs.

mod codecs;

use codecs::{Binary, BinaryHex, Strings};
use runner_shell::{Runner, nostr};

fn main() -> std::io::Result<()> {
    let tasks = [
        nostr::tasks::<Strings>(),
        nostr::tasks::<Binary>(),
        nostr::tasks::<BinaryHex>(),
        vec![nostr::fields::<Strings>(), nostr::fields::<Binary>(), nostr::fields::<BinaryHex>()],
    ];
    runner_shell::run(&Runner { engine: "prost 0.14.4", version: "0.14.4", tasks: &tasks.concat() })
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<Strings>();
        claims::assert_claims::<Binary>();
        claims::assert_claims::<BinaryHex>();
        claims::assert_fields::<Strings>();
        claims::assert_fields::<Binary>();
        claims::assert_fields::<BinaryHex>();
    }
}
