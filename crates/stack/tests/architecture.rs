//! The lines that ARCHITECTURE.md draws: which module may import which, and which crate may
//! depend on which. Tests may import what they like.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The stack's modules and, beside themselves, what each may import.
const MODULES: &[(&str, &[&str])] = &[
    ("limits", &[]),
    ("time", &[]),
    ("offer", &[]),
    ("hint", &["time"]),
    // In builds of tests only: counts what packets make others do.
    ("tally", &[]),
    ("remote", &[]),
    ("random", &["time"]),
    ("wire", &["limits", "storage", "tally"]),
    ("storage", &["limits", "wire"]),
    (
        "tcp",
        &[
            "limits", "time", "random", "wire", "storage", "remote", "offer", "hint",
        ],
    ),
    (
        "udp",
        &["limits", "time", "random", "wire", "storage", "remote"],
    ),
    (
        "ip",
        &["limits", "time", "random", "wire", "storage", "tally"],
    ),
    ("lowpan", PROTOCOL),
    (
        "mac",
        &["limits", "time", "random", "wire", "storage", "hint"],
    ),
    ("join", &["time", "random", "wire", "remote", "mac"]),
    ("thread", &["time", "random", "wire", "mac"]),
    ("ble", PROTOCOL),
    ("tcphc", PROTOCOL),
    ("tcple", PROTOCOL),
    ("rpl", PROTOCOL),
    (
        "link",
        &[
            "limits", "time", "random", "wire", "storage", "hint", "ip", "lowpan", "mac", "ble",
            "tcphc", "tcple", "thread",
        ],
    ),
    (
        "node",
        &[
            "limits", "time", "random", "wire", "remote", "offer", "hint", "tcp", "udp", "ip",
            "rpl", "link", "join",
        ],
    ),
    (
        "mote",
        &[
            "limits", "time", "random", "mac", "ip", "tcp", "tcphc", "link", "node",
        ],
    ),
];

/// Below modules that a module may import, what it may not: frames, fragments, compressed headers
/// and link addresses are a link's business. What TCP must know of a path is in `offer`, which
/// stands at the floor because both a link, that makes an offer, and TCP, that takes it, name it.
const EXCEPT: &[(&str, &[&str])] = &[("tcp", FRAMES), ("ip", FRAMES), ("node", FRAMES)];

const FRAMES: &[&str] = &[
    "wire::ieee802154",
    "wire::lorh",
    "wire::lowpan_dispatch",
    "wire::lowpan_frag",
    "wire::lowpan_iphc",
    "wire::lowpan_nhc",
    "wire::tcphc",
    "wire::LinkAddr",
    "wire::link_addr",
];

/// Protocol modules never import one another: those that make packets meet in `node`, those that
/// make frames in `link`.
const PROTOCOL: &[&str] = &["limits", "time", "random", "wire", "storage"];

/// The workspace's packages and which of one another they may depend on, tests aside.
const PACKAGES: &[(&str, &[&str])] = &[
    ("motet", &[]),
    ("motet-embassy", &["motet"]),
    ("motet-c", &["motet"]),
    ("motet-nrf", &["motet", "motet-embassy"]),
    ("motet-hci", &["motet"]),
    ("motet-spinel", &["motet"]),
    ("motet-radio", &["motet", "motet-spinel"]),
    ("motet-decode", &["motet"]),
    ("motet-state", &[]),
    (
        "motet-lab",
        &[
            "motet",
            "motet-decode",
            "motet-state",
            "motet-taim",
            "motet-update",
        ],
    ),
    ("motet-taim", &["motet"]),
    ("motet-update", &[]),
    ("motet-router", &["motet", "motet-taim"]),
    (
        "motet-cli",
        &[
            "motet",
            "motet-decode",
            "motet-hci",
            "motet-lab",
            "motet-radio",
            "motet-router",
            "motet-spinel",
            "motet-state",
            "motet-taim",
            "motet-update",
        ],
    ),
    ("motet-conformance", &["motet"]),
    ("motet-packetdrill", &["motet", "motet-conformance"]),
    (
        "motet-fuzz-targets",
        &[
            "motet",
            // What `motet import` reads.
            "motet-cli",
            "motet-decode",
            "motet-lab",
            "motet-conformance",
            "motet-nrf",
            "motet-spinel",
            "motet-state",
            "motet-taim",
            "motet-update",
        ],
    ),
    ("xtask", &[]),
];

#[test]
fn modules_import_only_what_they_may() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    assert!(files.len() > 10, "found only {} source files", files.len());

    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&source).expect("found below it");
        let Some(module) = module_path(relative) else {
            continue;
        };
        let text = fs::read_to_string(&file).expect("readable source");
        for import in forbidden_imports(&module, &text) {
            wrong.push(format!("crates/stack/src/{}:{import}", relative.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "imports across the lines:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn packages_depend_inward() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--no-deps",
            "--manifest-path",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    assert!(
        packages.len() >= 4,
        "found only {} packages",
        packages.len()
    );
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let (_, allowed) = PACKAGES
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("{name}: add the package and its rule to this test"));
        for dependency in package["dependencies"].as_array().expect("a list") {
            let target = dependency["name"].as_str().expect("a name");
            let ours = PACKAGES.iter().any(|(known, _)| *known == target);
            let for_tests = dependency["kind"] == "dev";
            assert!(
                !ours || for_tests || allowed.contains(&target),
                "{}: {name} must not depend on {target}",
                package["manifest_path"]
            );
        }
    }
}

/// A kind of change, and what one of its kind touches today.
struct Change {
    what: &'static str,
    /// A folder of the project.
    within: &'static str,
    /// The name of one that exists.
    example: &'static str,
    /// All files there whose product code says that name: what is opened for another one.
    files: &'static [&'static str],
}

/// The changes that happen most often.
const CHANGES: [Change; 10] = [
    Change {
        what: "a rule of the RTO",
        within: "crates/stack/src",
        example: "rto_min_ms",
        files: &["tcp/config.rs", "tcp/rtt.rs"],
    },
    Change {
        what: "a congestion control",
        within: "crates/stack/src",
        example: "Cubic",
        files: &["tcp/loss/control/cubic.rs", "tcp/loss/control/mod.rs"],
    },
    Change {
        what: "an objective function",
        within: "crates/stack/src",
        example: "Mrhof",
        files: &["rpl/objective.rs"],
    },
    Change {
        what: "a kind of link",
        within: "crates/stack/src",
        example: "Serial",
        files: &[
            "link/event.rs",
            "link/mod.rs",
            "link/serial.rs",
            "link/serial_absent.rs",
        ],
    },
    Change {
        what: "a wire format",
        within: "crates/stack/src",
        example: "att",
        files: &["ble/peer/attributes.rs", "wire/att.rs", "wire/mod.rs"],
    },
    Change {
        what: "a radio's driver",
        within: "crates/nrf/src",
        example: "motet_embassy",
        files: &["hardware.rs"],
    },
    Change {
        what: "a layer of the decoder",
        within: "crates/decode/src",
        example: "coap",
        files: &["layers/coap.rs", "layers/mod.rs"],
    },
    Change {
        what: "a key of scenarios",
        within: "crates/sim/src",
        example: "ack_wait_us",
        files: &["scenario/model.rs", "scenario/stack_keys.rs"],
    },
    Change {
        what: "an experiment",
        within: "crates/sim/src",
        example: "baselines",
        // The last one because some of its criteria are withdrawn.
        files: &[
            "experiments/tcplp/baselines.rs",
            "experiments/tcplp/mod.rs",
            "experiments/unjudged.rs",
        ],
    },
    Change {
        what: "a command",
        within: "crates/cli/src",
        example: "soak",
        files: &["lib.rs", "soak.rs"],
    },
];

/// Each kind of change is tried by an existing example: in the product code of the crate, the
/// example's name may occur in the listed files alone, as an identifier or as a word of a text.
/// The kinds are those within one crate; what a second crate needs, as the lab a new link's memory,
/// its guide in `docs/guide` says.
#[test]
fn a_change_opens_few_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for change in CHANGES {
        let folder = root.join(change.within);
        let mut files = Vec::new();
        rust_files(&folder, &mut files);
        let names = |file: &PathBuf| {
            let relative = file.strip_prefix(&folder).expect("found below it");
            let is_test = relative
                .iter()
                .any(|part| part.to_string_lossy().starts_with("tests"));
            let text = fs::read_to_string(file).expect("readable source");
            let is_own = relative
                .file_stem()
                .is_some_and(|stem| stem == change.example);
            (!is_test && (is_own || says(&text, change.example)))
                .then(|| relative.display().to_string())
        };
        let found: Vec<String> = files.iter().filter_map(names).collect();
        assert_eq!(
            found, change.files,
            "{}, by the example of {}",
            change.what, change.example
        );
    }
}

/// Whether the product code of a source file, which is all before its tests, has this identifier,
/// or a text with this word. Comments and attributes do not count.
fn says(text: &str, name: &str) -> bool {
    fn holds(tokens: TokenStream, name: &str) -> bool {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let found = match token {
                TokenTree::Ident(ident) => ident == name,
                TokenTree::Group(group) => holds(group.stream(), name),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                    text.starts_with('"') && words.any(|word| word == name)
                }
                // An attribute, as a comment for documentation is one.
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    let inner = |token: &TokenTree| matches!(token, TokenTree::Punct(_));
                    let _ = tokens.next_if(inner);
                    let _ = tokens.next_if(|token| matches!(token, TokenTree::Group(_)));
                    false
                }
                TokenTree::Punct(_) => false,
            };
            if found {
                return true;
            }
        }
        false
    }
    let product = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    holds(product.parse().expect("Rust source"), name)
}

/// A merge that stopped half-way leaves its markers where no compiler looks: in a document, a
/// capture's note, a script.
#[test]
fn no_tracked_file_holds_conflict_markers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let markers = "^(<{7}|\\|{7}|>{7})( |$)";
    let search = |text: &str, folder: &Path| {
        let mut git = Command::new("git");
        git.args(["grep", "-nE", text]).current_dir(folder);
        let output = git.output().expect("git runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    match search(markers, &root) {
        (Some(1), _) => {}
        (Some(0), found) => panic!("conflict markers:\n{found}"),
        // An unpacked archive has no list of tracked files.
        _ if !root.join(".git").exists() => return,
        (code, output) => panic!("git grep gave {code:?}: {output}"),
    }
    // The search itself finds what it looks for.
    let (code, _) = search("^fn no_tracked_file_holds_conflict_markers", &root);
    assert_eq!(code, Some(0));
}

/// The checker itself: each case is a file's module, its text, and the lines it must report.
#[test]
fn imports_are_found_however_they_are_written() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("tcp", "use crate::wire::tcp::Header;\nuse core::fmt;", &[]),
        (
            "tcp",
            "use crate::time::Instant;\n\nuse crate::ip::Route;",
            &["3: tcp imports ip"],
        ),
        (
            "wire::tcp",
            "use crate::{limits::X, mac::{A, B}, time};",
            &["1: wire imports mac", "1: wire imports time"],
        ),
        (
            "tcp::sockets",
            "use crate::wire::tcphc;\nuse crate::wire::{tcp::Flags, tcphc::FLIGHT_MAX};",
            &["1: tcp imports wire::tcphc", "2: tcp imports wire::tcphc"],
        ),
        (
            "tcp",
            "use crate::{time, wire::{cursor, lowpan_frag}};\nuse crate::wire::tcphc_not;",
            &["1: tcp imports wire::lowpan_frag"],
        ),
        ("tcp", "use crate::wire::*;", &["1: tcp imports wire::*"]),
        ("tcp", "use crate::wire;", &["1: tcp imports wire::self"]),
        (
            "tcp",
            "use crate::wire::{self, tcp};",
            &["1: tcp imports wire::self"],
        ),
        ("link", "use crate::wire::{self, tcphc};", &[]),
        (
            "mac::csma",
            "fn f() { crate::node::g() }",
            &["1: mac imports node"],
        ),
        (
            "mac::csma",
            "fn f() { debug_assert!(crate::ip::G, \"\") }",
            &["1: mac imports ip"],
        ),
        (
            "ip::route",
            "use super::address::A;\nuse super::super::tcp;",
            &["2: ip imports tcp"],
        ),
        (
            "ip::route",
            "mod inner { use super::super::super::lowpan::X; }",
            &["1: ip imports lowpan"],
        ),
        (
            "ip",
            "use super::{storage, lowpan};",
            &["1: ip imports lowpan"],
        ),
        (
            "lowpan",
            "/// See [`crate::node::Node`].\n// crate::mac\nfn f() { \"crate::mac\"; }",
            &[],
        ),
        (
            "lowpan",
            "#[cfg(test)]\nmod tests { use crate::mac::X; }",
            &[],
        ),
        ("lowpan::tests", "use crate::mac::X;", &[]),
        ("wire", "use crate::*;", &["1: wire imports *"]),
        ("tcp", "use crate as motet;", &["1: tcp imports as"]),
        ("tcp", "pub(crate) struct S;\npub(super) fn f() {}", &[]),
        ("link", "use crate::{mac, ip, lowpan};", &[]),
        (
            "node",
            "use crate::{mac, tcp};\nuse crate::wire::LinkAddr;",
            &["1: node imports mac", "2: node imports wire::LinkAddr"],
        ),
        ("pigeon", "fn f() {}", &["0: no rule for module pigeon"]),
    ];
    for (module, text, expected) in cases {
        let module: Vec<_> = module.split("::").map(str::to_owned).collect();
        assert_eq!(forbidden_imports(&module, text), *expected, "in {text:?}");
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable folder") {
        let path = entry.expect("readable entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
}

/// `tcp/rtt.rs` is `["tcp", "rtt"]`; none for `lib.rs`.
fn module_path(relative: &Path) -> Option<Vec<String>> {
    let mut names: Vec<String> = relative
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    names.pop_if(|last| last == "mod");
    (names != ["lib"]).then_some(names)
}

/// `line: module imports other`, for each import that the module's rule does not allow.
fn forbidden_imports(module: &[String], text: &str) -> Vec<String> {
    let name = module[0].as_str();
    let Some((_, allowed)) = MODULES.iter().find(|(known, _)| *known == name) else {
        return vec![format!("0: no rule for module {name}")];
    };
    let tokens: TokenStream = text.parse().expect("source that the compiler reads");
    let mut imports = Vec::new();
    collect_imports(tokens, module, &mut imports);
    let except = EXCEPT.iter().find(|(known, _)| *known == name);
    let except = except.map_or(&[][..], |(_, paths)| *paths);
    let is_wrong = |import: &Import| {
        let (top, path) = (import.top.as_str(), import.path());
        // The whole of a module holds what is excepted.
        let holds = matches!(import.below.as_str(), "*" | "self")
            && except
                .iter()
                .any(|wrong| wrong.split("::").next() == Some(top));
        top != name && (!allowed.contains(&top) || holds || except.contains(&path.as_str()))
    };
    let report = |import: Import| match allowed.contains(&import.top.as_str()) {
        true => format!("{}: {name} imports {}", import.line, import.path()),
        false => format!("{}: {name} imports {}", import.line, import.top),
    };
    let mut wrong: Vec<_> = imports.into_iter().filter(is_wrong).map(report).collect();
    wrong.dedup();
    wrong
}

/// A path that starts at the crate's root.
struct Import {
    line: usize,
    /// Its first name.
    top: String,
    /// Its second name; `self` where it ends at the first.
    below: String,
}

impl Import {
    fn path(&self) -> String {
        format!("{}::{}", self.top, self.below)
    }
}

/// The first two names of every path that starts at the crate's root, in `use`, in
/// code and in macro arguments. `module` is where the tokens stand.
fn collect_imports(tokens: TokenStream, module: &[String], imports: &mut Vec<Import>) {
    if module.iter().any(|name| name == "tests") {
        return;
    }
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let rest = &tokens[index..];
        match token {
            // A module in line: `super` means one level more in it.
            TokenTree::Ident(word) if word == "mod" => {
                if let [_, TokenTree::Ident(name), TokenTree::Group(body), ..] = rest {
                    let mut inner = module.to_vec();
                    inner.push(name.to_string());
                    collect_imports(body.stream(), &inner, imports);
                    index += 2;
                }
            }
            TokenTree::Ident(word) if word == "crate" => root_items(&rest[1..], imports),
            TokenTree::Ident(word) if word == "super" => {
                let ups = 1 + count_supers(&rest[1..]);
                index += 3 * (ups - 1);
                if ups == module.len() {
                    root_items(&tokens[index + 1..], imports);
                }
            }
            TokenTree::Group(group) => collect_imports(group.stream(), module, imports),
            _ => {}
        }
        index += 1;
    }
}

/// How many times `::super` follows.
fn count_supers(mut tokens: &[TokenTree]) -> usize {
    let mut count = 0;
    while let [
        TokenTree::Punct(_),
        TokenTree::Punct(_),
        TokenTree::Ident(word),
        rest @ ..,
    ] = tokens
        && word == "super"
    {
        count += 1;
        tokens = rest;
    }
    count
}

/// The names below the root in `::name…`, `::{name…, name…}`, `::*` and `as name`.
fn root_items(after_root: &[TokenTree], imports: &mut Vec<Import>) {
    for item in items_below(after_root) {
        let [first, rest @ ..] = item.as_slice() else {
            continue;
        };
        let below = items_below(rest);
        let below = below.iter().filter_map(|item| item.first());
        let mut below: Vec<String> = below.map(ToString::to_string).collect();
        if below.is_empty() {
            below.push("self".to_owned());
        }
        imports.extend(below.into_iter().map(|below| Import {
            line: first.span().start().line,
            top: first.to_string(),
            below,
        }));
    }
    // `pub(crate)` and `pub(super)` are followed by neither.
    if let [TokenTree::Ident(word), ..] = after_root
        && word == "as"
    {
        imports.push(Import {
            line: word.span().start().line,
            top: word.to_string(),
            below: String::new(),
        });
    }
}

/// What follows a name: in `::item` that item and all behind it, in `::{item, item}` each of
/// them, else nothing.
fn items_below(after: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let [TokenTree::Punct(a), TokenTree::Punct(b), item, ..] = after else {
        return Vec::new();
    };
    if a.as_char() != ':' || b.as_char() != ':' {
        return Vec::new();
    }
    match item {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            let is_comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
            tokens.split(is_comma).map(<[_]>::to_vec).collect()
        }
        _ => vec![after[2..].to_vec()],
    }
}
