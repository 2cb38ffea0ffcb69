//! Describes the machine of a run, for judging its numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Machine;

/// This machine.
pub(crate) fn describe(toolchains: BTreeMap<String, String>) -> Machine {
    let info = read("/proc/cpuinfo").unwrap_or_default();
    Machine {
        cpu: cpu(&info).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        virtual_machine: virtual_machine(&info, &product()),
        memory_bytes: read("/proc/meminfo").and_then(|info| memory(&info)),
        memory_limit_bytes: limit(read_limit, "memory.max", "memory/memory.limit_in_bytes"),
        cpu_limit: cpu_limit(),
        features: features(),
        os: os(),
        toolchains,
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The value of the first line `name : value`.
fn field(info: &str, name: &str) -> Option<String> {
    let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The processor's name, with its family and model where they are known.
fn cpu(info: &str) -> Option<String> {
    let name = field(info, "model name")?;
    match (field(info, "cpu family"), field(info, "model")) {
        (Some(family), Some(model)) => Some(format!("{name} (family {family}, model {model})")),
        _ => Some(name),
    }
}

/// The maker and the product name of the machine, by its firmware; empty where it has none.
fn product() -> String {
    let names =
        ["sys_vendor", "product_name"].map(|name| read(format!("/sys/class/dmi/id/{name}")));
    names.into_iter().flatten().map(|name| name.trim().to_owned()).collect::<Vec<_>>().join(" ")
}

/// The product of a virtual machine, or "unnamed hypervisor"; `None` for hardware, and where neither is known.
///
/// Every common hypervisor sets the processor flag `hypervisor` on x86-64. Elsewhere only the firmware's product name shows it.
fn virtual_machine(info: &str, product: &str) -> Option<String> {
    let has_flag = field(info, "flags").is_some_and(|flags| flags.split(' ').any(is_hypervisor));
    let is_known = PRODUCTS.iter().any(|known| product.contains(known));
    match (has_flag || is_known, product) {
        (false, _) => None,
        (true, "") => Some("unnamed hypervisor".to_owned()),
        (true, product) => Some(product.to_owned()),
    }
}

fn is_hypervisor(flag: &str) -> bool {
    flag == "hypervisor"
}

/// The memory of the machine in bytes.
fn memory(info: &str) -> Option<u64> {
    let kib: u64 = field(info, "MemTotal")?.strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The least limit that the control groups of this process and their parents set; `None` without one.
fn limit(parse: fn(&str) -> Option<u64>, v2: &str, v1: &str) -> Option<u64> {
    let of_v2 = groups().into_iter().filter_map(|group| parse(&read(group.join(v2))?));
    let of_v1 = read(Path::new(CONTROL_GROUPS).join(v1)).and_then(|text| parse(&text));
    of_v2.chain(of_v1).min()
}

/// A limit in bytes. The first version of control groups writes a huge number where there is none.
fn read_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

/// The processor time per second that control groups grant, in thousandths of a core.
fn cpu_limit() -> Option<u64> {
    let of_v1 = || {
        let read = |name: &str| {
            let text = read(format!("{CONTROL_GROUPS}/cpu/cpu.cfs_{name}_us"))?;
            text.trim().parse::<u64>().ok()
        };
        thousandths(read("quota")?, read("period")?)
    };
    groups()
        .into_iter()
        .filter_map(|group| quota(&read(group.join("cpu.max"))?))
        .min()
        .or_else(of_v1)
}

/// The quota of `cpu.max`: `max 100000` without one, `150000 100000` for one and a half cores.
fn quota(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    thousandths(quota.parse().ok()?, period.parse().ok()?)
}

fn thousandths(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(1000)?.checked_div(period)
}

/// The folder of this process's control group and its parents' folders, by the second version.
fn groups() -> Vec<PathBuf> {
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return Vec::new();
    };
    let own = Path::new(CONTROL_GROUPS).join(path);
    own.ancestors()
        .take_while(|group| group.starts_with(CONTROL_GROUPS))
        .map(Path::to_owned)
        .collect()
}

const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Parts of the product names of virtual machines, as their firmware gives them.
const PRODUCTS: [&str; 10] = [
    "Amazon EC2",
    "Apple Virtualization",
    "Bochs",
    "Droplet",
    "Google Compute Engine",
    "KVM",
    "QEMU",
    "VMware",
    "Virtual Machine",
    "VirtualBox",
];

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

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\
                        flags\t\t: fpu hypervisor avx2\n";

    #[test]
    fn a_processor_is_named_with_its_family_and_model() {
        assert_eq!(cpu(INFO).unwrap(), "AMD EPYC (family 26, model 2)");
        assert_eq!(cpu("model name: X\n").unwrap(), "X");
        assert_eq!(cpu(""), None);
    }

    #[test]
    fn the_hypervisor_flag_or_the_product_makes_a_virtual_machine() {
        assert_eq!(virtual_machine(INFO, "").unwrap(), "unnamed hypervisor");
        assert_eq!(virtual_machine(INFO, "QEMU Standard PC").unwrap(), "QEMU Standard PC");
        assert_eq!(virtual_machine("Features: fp\n", "QEMU QEMU").unwrap(), "QEMU QEMU");
        let hardware = INFO.replace("hypervisor", "hypervisors");
        assert_eq!(virtual_machine(&hardware, "Dell PowerEdge"), None);
        assert_eq!(virtual_machine("", ""), None);
    }

    #[test]
    fn limits_are_read_and_their_absence_is_no_limit() {
        assert_eq!(quota("150000 100000\n"), Some(1500));
        assert_eq!(quota("max 100000\n"), None);
        assert_eq!(quota("100000 0\n"), None);
        assert_eq!(read_limit("1073741824\n"), Some(1 << 30));
        assert_eq!(read_limit("max\n"), None);
        assert_eq!(read_limit("9223372036854771712\n"), None);
        assert_eq!(memory("MemTotal:       25165824 kB\n"), Some(24 << 30));
    }
}
