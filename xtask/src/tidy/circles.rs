//! Which files of a crate import one another in a circle.
//!
//! An arrow leads from a file to each file that defines a name which the first one writes as a
//! path: in `use`, in types and in expressions. Names that a module only re-exports lead to the
//! file that defines them. A file may always name what its own folder's `mod.rs` defines: such
//! files carry that module further, as `mac/csma.rs` does with `impl Mac`. Left out: calls of
//! methods, whose files no path names, and what stands in macros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use super::known::{KNOWN, Known};
use super::{Source, is_for_tests};

/// A module's place, from the crate's root.
type Place = Vec<String>;

/// Reports each circle that [`KNOWN`] does not name, and each entry there that is none any more.
pub(super) fn judge(sources: &[Source], faults: &mut Vec<String>) {
    judge_but(&KNOWN, sources, faults);
}

fn judge_but(known: &[Known], sources: &[Source], faults: &mut Vec<String>) {
    let mut crates: BTreeMap<PathBuf, Vec<(Place, &Source)>> = BTreeMap::new();
    for source in sources {
        if let Some((root, inside)) = in_crate(&source.path) {
            let files = crates.entry(root).or_default();
            files.push((place_of(&inside), source));
        }
    }
    let mut met = BTreeSet::new();
    for (root, files) in crates {
        let modules = Modules::of(files.into_iter());
        for circle in modules.circles() {
            let is_it = |known: &Known| {
                root == Path::new(known.root)
                    && circle
                        .iter()
                        .all(|file| known.files.contains(&&*file.join("::")))
            };
            match known.iter().position(is_it) {
                Some(which) => _ = met.insert(which),
                None => faults.push(modules.describe(&root, &circle)),
            }
        }
    }
    for (which, known) in known.iter().enumerate() {
        if !met.contains(&which) {
            let (root, files) = (known.root, known.files.join(", "));
            faults.push(format!(
                "{root}: {files} are no circle any more: take them off the list ({})",
                known.why
            ));
        }
    }
}

/// The folder of a crate's sources, and where `path` is in it.
fn in_crate(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let root = path
        .ancestors()
        .filter(|part| part.ends_with("src"))
        .last()?;
    let inside = path.strip_prefix(root).ok()?;
    Some((root.to_owned(), inside.to_owned()))
}

/// `tcp/rtt.rs` is `["tcp", "rtt"]`, `tcp/mod.rs` is `["tcp"]`, `lib.rs` is `[]`.
fn place_of(path: &Path) -> Place {
    let mut place: Place = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    place.pop_if(|last| last == "mod" || last == "lib");
    place
}

/// The modules that are files, what each re-exports, and the arrows between them.
#[derive(Default)]
struct Modules {
    /// What a name of a module stands for, where a `use` put it there.
    imported: BTreeMap<Place, BTreeMap<String, Place>>,
    /// From a file to another: the names that the first takes from the second.
    arrows: BTreeMap<Place, BTreeMap<Place, BTreeSet<String>>>,
}

impl Modules {
    fn of<'s>(sources: impl Iterator<Item = (Place, &'s Source)>) -> Self {
        let sources: Vec<_> = sources.collect();
        let mut modules = Self::default();
        for (place, _) in &sources {
            modules.arrows.insert(place.clone(), BTreeMap::new());
        }
        let mut written = Vec::new();
        for (place, source) in &sources {
            let mut paths = Paths::in_module(place, &modules.arrows);
            paths.visit_file(&source.syntax);
            modules.imported.insert(place.clone(), paths.imported);
            written.push((place, paths.found));
        }
        for (from, found) in written {
            for path in found {
                if let Some((to, name)) = modules.resolve(&path, 0)
                    && !from.starts_with(&to)
                {
                    let names = modules.arrows.get_mut(from).expect("a file").entry(to);
                    names.or_default().insert(name);
                }
            }
        }
        modules
    }

    /// The file that defines what `path` names, and its name there; `None` outside the crate.
    fn resolve(&self, path: &[String], depth: usize) -> Option<(Place, String)> {
        let mut len = path.len();
        while !self.arrows.contains_key(&path[..len]) {
            len = len.checked_sub(1)?;
        }
        let place = path[..len].to_vec();
        let Some(name) = path.get(len) else {
            // A module itself: what is taken from it is seen where it is used.
            return None;
        };
        match self.imported.get(&place).and_then(|names| names.get(name)) {
            // Re-exports of re-exports end somewhere.
            Some(target) if depth < 8 => self.resolve(target, depth + 1),
            _ => Some((place, name.clone())),
        }
    }

    /// A circle in words: each arrow, and what is taken along it.
    fn describe(&self, root: &Path, circle: &BTreeSet<Place>) -> String {
        let mut lines = vec![format!(
            "{}: {} files import one another:",
            root.display(),
            circle.len()
        )];
        for from in circle {
            for (to, names) in &self.arrows[from] {
                if circle.contains(to) {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    let [from, to] = [from, to].map(|place| place.join("::"));
                    lines.push(format!("  {from} -> {to}: {}", names.join(", ")));
                }
            }
        }
        lines.join("\n")
    }

    /// Sets of files each of which reaches every other one of its set.
    fn circles(&self) -> Vec<BTreeSet<Place>> {
        let reach: BTreeMap<&Place, BTreeSet<&Place>> = self
            .arrows
            .keys()
            .map(|from| (from, self.reachable(from)))
            .collect();
        let mut circles = BTreeSet::new();
        for (from, reached) in &reach {
            if reached.contains(from) {
                let circle = reached.iter().filter(|to| reach[**to].contains(from));
                circles.insert(circle.map(|to| (*to).clone()).collect::<BTreeSet<_>>());
            }
        }
        circles.into_iter().collect()
    }

    fn reachable(&self, from: &Place) -> BTreeSet<&Place> {
        let mut reached = BTreeSet::new();
        let mut ahead: Vec<&Place> = self.arrows[from].keys().collect();
        while let Some(place) = ahead.pop() {
            if reached.insert(place) {
                ahead.extend(self.arrows[place].keys());
            }
        }
        reached
    }
}

/// Collects the paths that a file writes, from the crate's root.
struct Paths<'m> {
    /// Where the tokens stand: the file's module, or one inside it.
    place: Place,
    modules: &'m BTreeMap<Place, BTreeMap<Place, BTreeSet<String>>>,
    imported: BTreeMap<String, Place>,
    found: Vec<Place>,
    /// Modules inside the file that the walk stands in.
    inner: usize,
}

impl<'m> Paths<'m> {
    fn in_module(
        place: &Place,
        modules: &'m BTreeMap<Place, BTreeMap<Place, BTreeSet<String>>>,
    ) -> Self {
        Self {
            place: place.clone(),
            modules,
            imported: BTreeMap::new(),
            found: Vec::new(),
            inner: 0,
        }
    }

    /// A path from the crate's root; `None` where it starts in another crate or at a local name.
    fn absolute(&self, path: &[String]) -> Option<Place> {
        let first = path.first()?;
        let (mut place, mut rest) = (self.place.clone(), path);
        match first.as_str() {
            "crate" => (place, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let [word, more @ ..] = rest
                    && word == "super"
                {
                    place.pop()?;
                    rest = more;
                }
            }
            name => {
                if let Some(target) = self.imported.get(name).filter(|_| self.inner == 0) {
                    (place, rest) = (target.clone(), &path[1..]);
                } else {
                    place.push(first.clone());
                    let is_child = self.modules.contains_key(&place);
                    place.pop();
                    if !is_child {
                        return None;
                    }
                }
            }
        }
        place.extend(rest.iter().cloned());
        Some(place)
    }

    fn take(&mut self, prefix: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.take(prefix, &path.tree);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take(prefix, tree);
                }
            }
            UseTree::Name(name) => self.import(prefix, &name.ident, &name.ident),
            UseTree::Rename(rename) => self.import(prefix, &rename.ident, &rename.rename),
            // What a glob takes is not seen.
            UseTree::Glob(_) => {}
        }
    }

    fn import(&mut self, prefix: &[String], name: &syn::Ident, known_as: &syn::Ident) {
        let mut path = prefix.to_vec();
        if name == "self" {
            // `use a::{self}` brings `a`.
            let Some(last) = path.last().cloned() else {
                return;
            };
            if let Some(target) = self.absolute(&path) {
                let known_as = if known_as == "self" {
                    last
                } else {
                    known_as.to_string()
                };
                self.imported.insert(known_as, target);
            }
            return;
        }
        path.push(name.to_string());
        if let Some(target) = self.absolute(&path) {
            self.found.push(target.clone());
            if self.inner == 0 {
                self.imported.insert(known_as.to_string(), target);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        // Imports first: a path may stand above the `use` that explains it.
        for item in &file.items {
            if let Item::Use(item) = item
                && !is_for_tests(&item.attrs)
            {
                self.take(&mut Vec::new(), &item.tree);
            }
        }
        visit::visit_file(self, file);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if self.inner > 0 {
            self.take(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_for_tests(&item.attrs) || item.content.is_none() {
            return;
        }
        self.place.push(item.ident.to_string());
        self.inner += 1;
        visit::visit_item_mod(self, item);
        self.inner -= 1;
        self.place.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1
            && let Some(target) = self.absolute(&names)
        {
            self.found.push(target);
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: Path::new("crates/a/src").join(path),
            text: (*text).to_owned(),
            syntax: syn::parse_file(text).expect("Rust"),
        };
        let sources: Vec<_> = files.iter().map(source).collect();
        let mut faults = Vec::new();
        judge_but(&[], &sources, &mut faults);
        faults
    }

    #[test]
    fn circles_are_found_through_re_exports_and_paths() {
        let lib = ("lib.rs", "pub mod a;\npub mod b;\nuse a::A;");
        let good = [
            lib,
            ("a.rs", "pub struct A;"),
            ("b.rs", "use crate::a::A;\nfn f() -> A { A }"),
        ];
        assert_eq!(faults_of(&good), [""; 0]);
        let bad = [
            lib,
            ("a.rs", "pub struct A;\nfn f() { crate::b::g(); }"),
            ("b.rs", "use super::a;\npub fn g() -> a::A { a::A }"),
        ];
        assert_eq!(
            faults_of(&bad),
            ["crates/a/src: 2 files import one another:\n  a -> b: g\n  b -> a: A"]
        );
        // `m` only passes on what `m::c` defines, and `m::d` takes it by that name.
        let through = [
            ("lib.rs", "mod m;"),
            (
                "m/mod.rs",
                "mod c;\nmod d;\npub use c::C;\nfn f() { d::g() }",
            ),
            ("m/c.rs", "pub struct C;"),
            ("m/d.rs", "use super::C;\npub fn g() -> C { C }"),
        ];
        assert_eq!(faults_of(&through), [""; 0]);
        let tests = [
            ("lib.rs", "mod a;\nmod b;"),
            (
                "a.rs",
                "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A;\npub struct B(A);"),
        ];
        assert_eq!(faults_of(&tests), [""; 0]);
    }
}
