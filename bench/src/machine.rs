//! Describes the machine of a run, for judging its numbers.

use std::collections::BTreeMap;
use std::fs;

use crate::Machine;

/// This machine.
pub(crate) fn describe(toolchains: BTreeMap<String, String>) -> Machine {
    Machine {
        cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        features: features(),
        os: os(),
        toolchains,
    }
}

/// The processor's name, with its family and model where they are known.
fn cpu() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().map(str::trim) == Some(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = field("model name")?;
    match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => Some(format!("{name} (family {family}, model {model})")),
        _ => Some(name),
    }
}

fn os() -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    match fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => format!("{os} {} {arch}", release.trim()),
        Err(_) => format!("{os} {arch}"),
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    use std::is_x86_feature_detected as has;
    let features = [
        ("sha_ni", has!("sha")),
        ("avx2", has!("avx2")),
        ("bmi2", has!("bmi2")),
        ("avx512f", has!("avx512f")),
        ("avx512bw", has!("avx512bw")),
        ("avx512vl", has!("avx512vl")),
        ("avx512ifma", has!("avx512ifma")),
        ("avx512vbmi", has!("avx512vbmi")),
        ("gfni", has!("gfni")),
    ];
    present(&features)
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<String> {
    use std::arch::is_aarch64_feature_detected as has;
    present(&[("neon", has!("neon")), ("sha2", has!("sha2")), ("sve", has!("sve"))])
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<String> {
    present(&[])
}

fn present(features: &[(&str, bool)]) -> Vec<String> {
    features.iter().filter(|(_, has)| *has).map(|(name, _)| (*name).to_owned()).collect()
}
