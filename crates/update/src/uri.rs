//! Where to fetch from: `http://ADDRESS[:PORT]/PATH` (RFC 3986), in a list of URIs (RFC 2483 §5).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A place to fetch from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source<'u> {
    /// The server.
    pub server: SocketAddr,
    /// Name and port as the URI has them, for the field `Host`.
    pub authority: &'u str,
    /// The path, with its query.
    pub path: &'u str,
}

/// Why a list of URIs names no place to fetch from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UriError {
    /// There is none in the list.
    Empty,
    /// It is not `http://` and an address: names are not looked up, TLS is not spoken.
    Unusable,
    /// The address is no other host's.
    Forbidden,
}

impl<'u> Source<'u> {
    /// The first URI of a list; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// See [`UriError`].
    pub fn parse(list: &'u [u8]) -> Result<Self, UriError> {
        let list = core::str::from_utf8(list).map_err(|_| UriError::Unusable)?;
        let mut lines = list.lines().map(str::trim);
        let is_uri = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let uri = lines.find(is_uri).ok_or(UriError::Empty)?;
        Self::of(uri)
    }

    fn of(uri: &'u str) -> Result<Self, UriError> {
        let is_plain = uri.bytes().all(|byte| byte.is_ascii_graphic());
        let (scheme, rest) = uri
            .split_at_checked(SCHEME.len())
            .ok_or(UriError::Unusable)?;
        if !is_plain || !scheme.eq_ignore_ascii_case(SCHEME) {
            return Err(UriError::Unusable);
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).ok_or(UriError::Unusable)?;
        let path = if path.is_empty() { "/" } else { path };
        if !path.starts_with('/') {
            return Err(UriError::Unusable);
        }
        let (ip, port) = address(authority).ok_or(UriError::Unusable)?;
        if ip.is_multicast() || ip.is_loopback() || ip.is_unspecified() || port == 0 {
            return Err(UriError::Forbidden);
        }
        Ok(Self {
            server: SocketAddr::new(ip, port),
            authority,
            path,
        })
    }
}

fn address(authority: &str) -> Option<(IpAddr, u16)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (ip, port) = rest.split_once(']')?;
        let ip: Ipv6Addr = ip.parse().ok()?;
        let port = match port.strip_prefix(':') {
            Some(port) => number(port)?,
            None if port.is_empty() => HTTP,
            None => return None,
        };
        return Some((ip.into(), port));
    }
    let (ip, port) = match authority.split_once(':') {
        Some((ip, port)) => (ip, number(port)?),
        None => (authority, HTTP),
    };
    let ip: Ipv4Addr = ip.parse().ok()?;
    Some((ip.into(), port))
}

/// A port; without digits HTTP's (RFC 3986 §3.2.3).
fn number(text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(HTTP);
    }
    u16::try_from(crate::request::number(text)?).ok()
}

const SCHEME: &str = "http://";
const HTTP: u16 = 80;
