//! The address of a host: `https://`, a name and perhaps a port, and nothing behind them.

/// Whether `endpoint` is one.
pub(crate) fn is_host(endpoint: &str) -> bool {
    endpoint.strip_prefix("https://").and_then(name_of).is_some()
}

/// Whether `endpoint` is a server of this machine without TLS, as those are that try things out.
pub(super) fn is_development_host(endpoint: &str) -> bool {
    let name = endpoint.strip_prefix("http://").and_then(name_of);
    name.is_some_and(|name| matches!(name, "localhost" | "127.0.0.1") || name.ends_with(".test"))
}

/// The name of a host, with or without a port.
fn name_of(authority: &str) -> Option<&str> {
    match authority.split_once(':') {
        Some((name, port)) => (is_name(name) && is_port(port)).then_some(name),
        None => is_name(authority).then_some(authority),
    }
}

/// A domain name, or an address of IPv4, which is spelled alike.
fn is_name(name: &str) -> bool {
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        matches!(label.len(), 1..=63)
            && label.bytes().all(is_symbol)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}
