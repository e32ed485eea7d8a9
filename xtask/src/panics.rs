//! Names the source lines from which a linked thumbv6m image can panic.
//!
//! The panic handler is the only root. The callers, direct and indirect, are read from the
//! machine code; line tables turn the address of each call into a line of ours.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use addr2line::Loader;
use anyhow::{Result, anyhow};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use crate::image::Image;

/// A branch-and-link: from where, to where.
struct Call {
    site: u64,
    target: u64,
}

/// A function's name and where it ends.
struct Function {
    name: String,
    end: u64,
}

/// One line per call that ends in the panic handler: the place in the project, the function
/// that it calls. Empty when the image holds no panic machinery. Lines below `root` are
/// given relative to it.
pub(crate) fn reachable_panics(path: &Path, root: &Path) -> Result<Vec<String>> {
    let image = Image::open(path)?;
    let elf = image.elf()?;
    let functions = functions(&elf);
    let calls = calls(&elf)?;
    let lines = Loader::new(path).map_err(|error| anyhow!("no line tables: {error}"))?;

    let handler = |name: &str| name.ends_with("rust_begin_unwind");
    let mut pending: Vec<u64> = functions
        .iter()
        .filter(|(_, f)| handler(&f.name))
        .map(|(&start, _)| start)
        .collect();
    let mut seen: HashSet<u64> = pending.iter().copied().collect();
    let mut places = BTreeSet::new();
    while let Some(target) = pending.pop() {
        for call in calls.iter().filter(|call| call.target == target) {
            if let Some(place) = project_line(&lines, call.site)? {
                let callee = functions.get(&target).map_or("?", |f| &f.name);
                places.insert(format!("{}: {callee}", without_prefix(&place, root)));
                continue;
            }
            // A call inside the core library is no place of ours; its own callers are.
            let Some(caller) = enclosing(&functions, call.site) else {
                continue;
            };
            if seen.insert(caller) {
                pending.push(caller);
            }
        }
    }
    Ok(places.into_iter().collect())
}

/// `place` as seen from `root`; as it is where it lies elsewhere.
fn without_prefix<'a>(place: &'a str, root: &Path) -> &'a str {
    let shortened = || place.strip_prefix(root.to_str()?)?.strip_prefix('/');
    shortened().unwrap_or(place)
}

/// The image's functions by address, their names demangled and without hash.
fn functions(elf: &object::File<'_>) -> HashMap<u64, Function> {
    elf.symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(|symbol| {
            let start = symbol.address() & !1;
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            Some((
                start,
                Function {
                    name,
                    end: start + symbol.size(),
                },
            ))
        })
        .collect()
}

/// The start of the function that holds `address`.
fn enclosing(functions: &HashMap<u64, Function>, address: u64) -> Option<u64> {
    functions
        .iter()
        .find(|(start, f)| (**start..f.end).contains(&address))
        .map(|(&start, _)| start)
}

/// Every `bl` of the image. Data between functions may look like one; its target then is
/// the start of a function only by accident.
fn calls(elf: &object::File<'_>) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    for section in elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
    {
        let halfwords: Vec<u16> = section
            .data()?
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u16::from_le_bytes)
            .collect();
        for (index, pair) in halfwords.windows(2).enumerate() {
            let site = section.address() + 2 * index as u64;
            if let [first, second] = *pair
                && let Some(offset) = branch_offset(first, second)
            {
                calls.push(Call {
                    site,
                    target: site.wrapping_add_signed(4 + offset),
                });
            }
        }
    }
    Ok(calls)
}

/// The offset of a `bl`, from the address after it.
///
/// Source: Armv6-M Architecture Reference Manual, A6.7.13, encoding T1.
fn branch_offset(first: u16, second: u16) -> Option<i64> {
    if first & 0xf800 != 0xf000 || second & 0xd000 != 0xd000 {
        return None;
    }
    let bit = |halfword: u16, position: u32| u32::from(halfword >> position) & 1;
    let sign = bit(first, 10);
    let i1 = 1 ^ bit(second, 13) ^ sign;
    let i2 = 1 ^ bit(second, 11) ^ sign;
    let magnitude = (sign << 24)
        | (i1 << 23)
        | (i2 << 22)
        | (u32::from(first & 0x3ff) << 12)
        | (u32::from(second & 0x7ff) << 1);
    // Sign-extend 25 bits.
    Some(i64::from((magnitude << 7).cast_signed() >> 7))
}

/// The innermost line outside the core library that the code at `address` comes from.
fn project_line(lines: &Loader, address: u64) -> Result<Option<String>> {
    let unreadable = |error| anyhow!("unreadable line tables: {error}");
    let mut frames = lines
        .find_frames(address)
        .map_err(|error| anyhow!("{error}"))?;
    while let Some(frame) = frames.next().map_err(unreadable)? {
        let Some(location) = frame.location else {
            continue;
        };
        let Some(file) = location.file else { continue };
        if !file.contains("/rustc/") && !file.contains("/library/core/") {
            return Ok(Some(format!("{file}:{}", location.line.unwrap_or(0))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_decoded() {
        // As assembled: bl .+4, bl .-0 (to itself), bl .+0x1000+4.
        assert_eq!(branch_offset(0xf000, 0xf800), Some(0));
        assert_eq!(branch_offset(0xf7ff, 0xfffe), Some(-4));
        assert_eq!(branch_offset(0xf001, 0xf800), Some(0x1000));
        // push {r4, lr}; mov r8, r8: no branch.
        assert_eq!(branch_offset(0xb510, 0x46c0), None);
    }
}
