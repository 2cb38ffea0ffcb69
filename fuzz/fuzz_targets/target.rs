//! The program that libFuzzer drives: the target whose name is in `WIREPROOF_FUZZ_TARGET`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wireproof_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("WIREPROOF_FUZZ_TARGET").expect("WIREPROOF_FUZZ_TARGET is not set");
    Target::find(&name).unwrap_or_else(|| panic!("unknown target `{name}`"))
});

fuzz_target!(|input: &[u8]| (TARGET.run)(input));
