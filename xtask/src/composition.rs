//! Which module of the stack each byte of an image's code comes from.
//!
//! Line tables say so, inlining included. Code goes to the protocol that it is there for:
//! a header parser inlined into TCP is TCP's, a copy routine that all call is nobody's.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use anyhow::{Result, anyhow};
use object::{Object, ObjectSection, SectionKind};

use crate::image::Image;

/// Bytes of code by module: `tcp`, `mac`, …; `application` for the image's own, `runtime` for
/// start-up code, the core library's and other crates' functions.
pub(crate) fn code_by_module(path: &Path) -> Result<BTreeMap<String, u32>> {
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
            *bytes.entry(module_at(&lines, address)?).or_insert(0) += 2;
        }
    }
    Ok(bytes)
}

/// The module that the code at `address` serves.
fn module_at(lines: &Loader, address: u64) -> Result<String> {
    let mut frames = lines
        .find_frames(address)
        .map_err(|error| anyhow!("{error}"))?;
    let mut modules = Vec::new();
    while let Some(frame) = frames.next().map_err(|error| anyhow!("{error}"))? {
        let file = frame.location.and_then(|location| location.file);
        modules.extend(file.and_then(module_of));
    }
    // From the function inwards: the first protocol, else the innermost of ours.
    let protocol = modules
        .iter()
        .rev()
        .find(|module| PROTOCOLS.contains(module));
    let module = protocol.or(modules.first());
    Ok(module.map_or_else(|| "runtime".to_owned(), |module| (*module).to_owned()))
}

/// `tcp` for a file below the stack's `tcp` folder and for the one of its wire format.
fn module_of(file: &str) -> Option<&str> {
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
        assert_eq!(module_of("/p/crates/stack/src/wire/udp.rs"), Some("wire"));
        assert_eq!(module_of("/p/crates/stack/src/random.rs"), Some("random"));
        assert_eq!(
            module_of("/p/firmware/minimal-node/src/radio.rs"),
            Some("application")
        );
        assert_eq!(module_of("/rustc/1/library/core/src/slice/mod.rs"), None);
    }
}
