//! Which module of the stack each byte of an image's code comes from.
//!
//! Line tables give the answer, inlining included. Code counts for the protocol that it serves: a
//! header parser inlined into TCP is TCP's; a copy routine that all modules call counts for none.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use anyhow::{Result, anyhow};
use object::{Object, ObjectSection, SectionKind};

use crate::image::Image;

/// How source files are called in a table; none for those that are not ours.
type Naming = fn(&str) -> Option<&str>;

/// Bytes of code by source file as `naming` calls it; `runtime` for start-up code, the core
/// library's and other crates' functions.
pub(crate) fn code_by(naming: Naming, path: &Path) -> Result<BTreeMap<String, i64>> {
    let image = Image::open(path)?;
    let elf = image.elf()?;
    let lines = Loader::new(path).map_err(|error| anyhow!("no line tables: {error}"))?;
    let mut bytes = BTreeMap::new();
    for section in elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
    {
        let end = section.address() + section.size();
        // Every instruction starts at an even address.
        for address in (section.address()..end).step_by(2) {
            *bytes.entry(name_at(naming, &lines, address)?).or_insert(0) += 2;
        }
    }
    Ok(bytes)
}

/// What the code at `address` serves.
fn name_at(naming: Naming, lines: &Loader, address: u64) -> Result<String> {
    let mut frames = lines
        .find_frames(address)
        .map_err(|error| anyhow!("{error}"))?;
    let mut names = Vec::new();
    while let Some(frame) = frames.next().map_err(|error| anyhow!("{error}"))? {
        let file = frame.location.and_then(|location| location.file);
        names.extend(file.and_then(naming));
    }
    // From the function inwards: the first protocol, else the innermost of ours.
    let protocol = names.iter().rev().find(|name| PROTOCOLS.contains(name));
    let name = protocol.or(names.first());
    Ok(name.map_or_else(|| "runtime".to_owned(), |name| (*name).to_owned()))
}

/// The file's path in the stack; `application` for the image's own.
pub(crate) fn file_of(file: &str) -> Option<&str> {
    match file.split_once("crates/stack/src/") {
        Some((_, path)) => (path != "lib.rs").then_some(path),
        None => file.contains("/firmware/").then_some("application"),
    }
}

/// `tcp` for a file below the stack's `tcp` folder and for the one of its wire format.
pub(crate) fn module_of(file: &str) -> Option<&str> {
    if let Some((_, path)) = file.split_once("crates/stack/src/") {
        if path == "wire/tcp.rs" {
            return Some("tcp");
        }
        // What the compiler writes itself carries the crate's first line.
        return path
            .split(['/', '.'])
            .next()
            .filter(|module| *module != "lib");
    }
    file.contains("/firmware/").then_some("application")
}

/// Modules that pull in others; `node` only joins them.
const PROTOCOLS: &[&str] = &["tcp", "ip", "lowpan", "mac"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_modules() {
        assert_eq!(
            module_of("/p/firmware/../crates/stack/src/tcp/rtt.rs"),
            Some("tcp")
        );
        assert_eq!(module_of("/p/crates/stack/src/wire/tcp.rs"), Some("tcp"));
        assert_eq!(
            file_of("/p/crates/stack/src/tcp/rtt.rs"),
            Some("tcp/rtt.rs")
        );
        assert_eq!(module_of("/p/crates/stack/src/wire/udp.rs"), Some("wire"));
        assert_eq!(module_of("/p/crates/stack/src/random.rs"), Some("random"));
        assert_eq!(
            module_of("/p/firmware/minimal-node/src/radio.rs"),
            Some("application")
        );
        assert_eq!(module_of("/rustc/1/library/core/src/slice/mod.rs"), None);
    }
}
