//! Which proxy leads to a server, if any: `proxy-url`, `HTTPS_PROXY`, `NO_PROXY`. Knows nothing of requests.
//!
//! Rules as in Go's `golang.org/x/net/http/httpproxy`, which kubectl and helm use.

use std::net::IpAddr;

use http::Uri;

use super::connect::ConnectError;

/// The proxy for `server`. `explicit` is the kubeconfig's `proxy-url`: it counts for any server, also one on loopback
/// (the far end of a tunnel); `environment` (`HTTPS_PROXY`) counts for https, never for loopback, and never for a host of `no_proxy`.
pub(super) fn choose(
    server: &Uri,
    explicit: Option<&str>,
    environment: Option<&str>,
    no_proxy: &[String],
) -> Result<Option<Uri>, ConnectError> {
    if let Some(proxy) = explicit {
        return parse(proxy, "proxy-url in the kubeconfig").map(Some);
    }
    let Some(proxy) = environment.map(str::trim).filter(|proxy| !proxy.is_empty()) else { return Ok(None) };
    if server.scheme_str() != Some("https") || is_loopback(server) || is_excepted(server, no_proxy) {
        return Ok(None);
    }
    parse(proxy, "HTTPS_PROXY").map(Some)
}

/// Whether the server is on this machine.
pub(super) fn is_loopback(server: &Uri) -> bool {
    let host = host(server);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Host without the brackets of an IPv6 address.
fn host(server: &Uri) -> &str {
    server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn parse(proxy: &str, from: &'static str) -> Result<Uri, ConnectError> {
    // The text may hold a password: it is never repeated.
    let bad = |reason: &str| ConnectError::BadProxy { from, reason: reason.to_owned() };
    let text = match proxy.split_once("://") {
        None => format!("http://{proxy}"),
        Some(("socks5h", rest)) => format!("socks5://{rest}"), // names are resolved by the proxy in either case
        Some(_) => proxy.to_owned(),
    };
    let url: Uri = text.parse().map_err(|_| bad("it is not a URL"))?;
    match url.scheme_str() {
        Some("http" | "https" | "socks5") if url.host().is_some_and(|host| !host.is_empty()) => Ok(url),
        Some("http" | "https" | "socks5") => Err(bad("it names no host")),
        Some(_) | None => Err(bad("it must begin with http://, https:// or socks5://")),
    }
}

/// One entry of `NO_PROXY` is `*`, an address, a network, a name (which covers what is below it), or `.name` (only below), each
/// perhaps with a port. Empty entries, e.g. after a final comma, say nothing.
fn is_excepted(server: &Uri, no_proxy: &[String]) -> bool {
    let host = host(server).to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(443);
    no_proxy
        .iter()
        .map(|entry| entry.trim().to_ascii_lowercase())
        .filter(|entry| !entry.is_empty())
        .any(|entry| covers(&entry, &host, port))
}

fn covers(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let address = host.parse::<IpAddr>().ok();
    if let Some((network, bits)) = entry.split_once('/') {
        return match (network.parse(), bits.parse(), address) {
            (Ok(network), Ok(bits), Some(address)) => is_in_network(address, network, bits),
            _ => false,
        };
    }
    let (name, wanted) = split_port(entry);
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if let Some(address) = address {
        return name.parse::<IpAddr>().is_ok_and(|one| one == address);
    }
    let name = name.strip_prefix('*').unwrap_or(name);
    match name.strip_prefix('.') {
        Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

/// `host:port`, `[v6]:port`; a bare IPv6 address has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if entry.parse::<IpAddr>().is_ok() {
        return (entry, None);
    }
    match entry.rsplit_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        None => (entry, None),
    }
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, no_proxy: &str) -> bool {
        let no_proxy: Vec<String> = no_proxy.split(',').map(str::to_owned).collect();
        choose(&server.parse().unwrap(), None, Some("http://proxy:3128"), &no_proxy).unwrap().is_some()
    }

    #[test]
    fn no_proxy_is_matched_against_the_server() {
        for (server, no_proxy, proxied) in [
            ("https://api.example.com", "", true),
            ("https://api.example.com:6443", "example.com", false),
            ("https://api.example.com", ".example.com", false),
            ("https://example.com", ".example.com", true),
            ("https://example.com", "*.example.com", true),
            ("https://badexample.com", "example.com", true),
            ("https://API.Example.com", "api.EXAMPLE.com,", false),
            ("https://api.example.com:6443", "api.example.com:443", true),
            ("https://api.example.com:6443", "api.example.com:6443", false),
            ("https://api.example.com", " , ,*", false),
            ("https://10.1.2.3:6443", "10.0.0.0/8", false),
            ("https://10.1.2.3:6443", "10.1.2.0/24", false),
            ("https://11.1.2.3", "10.0.0.0/8", true),
            ("https://11.1.2.3", "0.0.0.0/0", false),
            ("https://10.1.2.3", "10.1.2.3", false),
            ("https://10.1.2.3", "1.2.3", true),
            ("https://[fd00::1]:6443", "fd00::/8", false),
            ("https://[fd00::1]:6443", "fd00::1", false),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", false),
            ("https://127.0.0.1:6443", "", false),
            ("https://[::1]:6443", "", false),
            ("https://localhost:6443", "", false),
            ("http://api.example.com", "", false),
        ] {
            assert_eq!(chosen(server, no_proxy), proxied, "{server} with NO_PROXY={no_proxy}");
        }
    }

    #[test]
    fn the_kubeconfigs_proxy_counts_for_any_server() {
        let server: Uri = "https://127.0.0.1:6443".parse().unwrap();
        let proxy = choose(&server, Some("socks5h://localhost:1080"), None, &["*".to_owned()]).unwrap();
        assert_eq!(proxy.unwrap().to_string(), "socks5://localhost:1080/");
    }

    #[test]
    fn a_bad_proxy_is_named_without_its_password() {
        let server: Uri = "https://api.example.com".parse().unwrap();
        let error = choose(&server, None, Some("ftp://user:s3cret@proxy"), &[]).unwrap_err().to_string();
        assert_eq!(error, "the proxy of HTTPS_PROXY is of no use: it must begin with http://, https:// or socks5://");
    }
}
