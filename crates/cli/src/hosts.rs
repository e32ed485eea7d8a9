//! Names of motes, and lines of hosts(5) that give them their addresses.

use std::{fs, net::Ipv6Addr, path::Path};

use motet_router::namespace::{self, Namespace};

use crate::output::{describe, say};

/// Lets all that runs in the namespace find these motes by their names. Where that is not possible
/// their addresses are all there is.
pub(crate) fn name_motes<'a>(
    namespace: &Namespace,
    motes: impl Iterator<Item = (Ipv6Addr, &'a str)>,
) {
    let motes: Vec<_> = motes.map(|(addr, name)| (addr, host_name(name))).collect();
    let before = fs::read_to_string(PATH).unwrap_or_default();
    let content = with_motes(&before, &motes);
    if let Err(error) = namespace::cover(namespace, Path::new(PATH), &content) {
        let why = describe(&error);
        say(&format!(
            "the motes have no names here, only addresses: {why}"
        ));
    }
}

/// A node's name as a host name: `mote3` for the mote 3; other names as they are, but for what no
/// host name has (RFC 1123 §2.1).
pub(crate) fn host_name(name: &str) -> String {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("mote{name}");
    }
    let allowed = |char: char| match char.is_ascii_alphanumeric() || char == '.' {
        true => char.to_ascii_lowercase(),
        false => '-',
    };
    let name: String = name.chars().map(allowed).collect();
    match name.trim_matches(['-', '.']) {
        "" => "mote".to_owned(),
        name => name.to_owned(),
    }
}

/// One line for one address, without a line feed.
pub(crate) fn line(addr: Ipv6Addr, name: &str) -> String {
    format!("{addr}\t{name}")
}

/// The machine's own file `before` with the names of motes behind it.
fn with_motes(before: &str, motes: &[(Ipv6Addr, String)]) -> String {
    let lines = motes.iter().map(|(addr, name)| line(*addr, name));
    let lines: Vec<String> = [HEAD.to_owned()].into_iter().chain(lines).collect();
    let gap = if before.is_empty() || before.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{before}{gap}{}\n", lines.join("\n"))
}

/// The addresses that [`with_motes`] has put behind a file.
pub(crate) fn motes_of(content: &str) -> Vec<&str> {
    let behind = content.lines().skip_while(|line| *line != HEAD).skip(1);
    behind.filter_map(|line| line.split('\t').next()).collect()
}

/// The file of a Unix system.
pub(crate) const PATH: &str = "/etc/hosts";

/// The comment before the motes.
const HEAD: &str = "# motes of motet up";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hosts() {
        for (name, expected) in [
            ("3", "mote3"),
            ("border", "border"),
            ("Office door", "office-door"),
            ("b2.attic", "b2.attic"),
            ("_ü_", "mote"),
            ("", "mote"),
        ] {
            assert_eq!(host_name(name), expected);
        }
    }

    #[test]
    fn motes_stand_behind_the_machines_own_hosts_and_are_found_there() {
        let addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2);
        let motes = [(addr, "mote1".to_owned())];
        for before in ["", "127.0.0.1 localhost", "127.0.0.1 localhost\n"] {
            let content = with_motes(before, &motes);
            assert!(content.starts_with(before.trim_end()));
            assert!(content.ends_with("\nfd00:0:0:1::2\tmote1\n") || before.is_empty());
            assert_eq!(motes_of(&content), ["fd00:0:0:1::2"]);
        }
        assert!(motes_of("127.0.0.1\tlocalhost\n").is_empty());
    }
}
