//! The machine of a run in words, and its limits.

use results::Machine;

/// The processor, whether the machine is virtual, its cores, memory and limits.
pub(crate) fn words(machine: &Machine) -> String {
    let cores = match machine.cores {
        1 => "one core".to_owned(),
        cores => format!("{cores} cores"),
    };
    let kind = match &machine.virtual_machine {
        Some(product) => format!(", a virtual machine ({product}) with {cores}"),
        None => format!(", {cores}"),
    };
    let memory = machine.memory_bytes.map(|bytes| format!(", {} of memory", gibibytes(bytes)));
    format!("{}{kind}{}{}", machine.cpu, memory.unwrap_or_default(), limits(machine))
}

fn limits(machine: &Machine) -> String {
    let cpu = machine.cpu_limit.map(|limit| format!("{:.1} cores", limit as f64 / 1e3));
    let memory = machine.memory_limit_bytes.map(gibibytes);
    let limits: Vec<String> = cpu.into_iter().chain(memory).collect();
    if limits.is_empty() { String::new() } else { format!(", limited to {}", limits.join(" and ")) }
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.0} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_virtual_machine_with_two_cores_is_called_one() {
        let mut machine = Machine { cpu: "X".to_owned(), cores: 2, ..samples::results().machine };
        assert_eq!(words(&machine), "X, 2 cores");
        machine.virtual_machine = Some("QEMU".to_owned());
        machine.memory_bytes = Some(24 << 30);
        assert_eq!(words(&machine), "X, a virtual machine (QEMU) with 2 cores, 24 GiB of memory");
        (machine.cpu_limit, machine.memory_limit_bytes) = (Some(1500), Some(4 << 30));
        assert!(words(&machine).ends_with(", limited to 1.5 cores and 4 GiB"));
    }
}
