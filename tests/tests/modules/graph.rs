//! Which modules of a crate use which: names are followed through re-exports to the module that defines them. What is
//! used without being named, as a method of a value, is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as File, PathBuf};

use super::source::{Import, Source};

/// A module by its path in its crate; the root's is empty.
pub type Module = Vec<String>;

/// Imports that lead to imports, at most; longer ones lead back to where they began.
const STEPS_MAX: usize = 24;

/// That one module uses another, and where it says so.
#[derive(Clone)]
pub struct Use {
    pub to: Module,
    pub line: usize,
    /// It only hands the name on.
    pub public: bool,
}

/// The modules of a crate.
pub struct Graph {
    sources: BTreeMap<Module, Source>,
}

impl Graph {
    /// Reads all files of a directory `src`.
    pub fn read(root: &File) -> Self {
        let mut sources = BTreeMap::<Module, Source>::new();
        for file in files(root) {
            let text = fs::read_to_string(&file).unwrap();
            let source = Source::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            // A library and a program of one crate have the same root.
            sources.entry(module(file.strip_prefix(root).unwrap())).or_default().add(source);
        }
        let below = |module: &Module, name: &String| [module.as_slice(), std::slice::from_ref(name)].concat();
        let tests: Vec<Module> = sources
            .iter()
            .flat_map(|(module, source)| source.test_modules.iter().map(move |name| below(module, name)))
            .collect();
        sources.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { sources }
    }

    /// What each module uses, without itself.
    pub fn uses(&self) -> BTreeMap<&Module, Vec<Use>> {
        self.sources.iter().map(|(module, source)| (module, self.uses_of(module, source))).collect()
    }

    fn uses_of(&self, module: &Module, source: &Source) -> Vec<Use> {
        let imports = source.imports.iter().filter_map(|Import { path, line, public, .. }| {
            Some(Use { to: self.resolve(module, path, STEPS_MAX)?, line: *line, public: *public })
        });
        let paths = source.paths.iter().filter_map(|(path, line)| {
            // A name alone is one that an import has brought, which is counted there, unless it is a re-export.
            let handed_on = || source.imports.iter().any(|one| one.public && one.name == path[0]);
            if path.len() == 1 && !handed_on() {
                return None;
            }
            Some(Use { to: self.resolve(module, path, STEPS_MAX)?, line: *line, public: false })
        });
        imports.chain(paths).filter(|one| one.to != *module).collect()
    }

    /// The module that defines what a path names in a module; `None`: another crate's.
    fn resolve(&self, module: &Module, path: &[String], steps: usize) -> Option<Module> {
        let Some((first, rest)) = path.split_first() else { return Some(module.clone()) };
        match first.as_str() {
            "crate" => self.member(&Vec::new(), rest, steps),
            "self" => self.member(module, rest, steps),
            "super" => self.member(&module[..module.len().checked_sub(1)?].to_vec(), rest, steps),
            _ if self.child(module, first).is_some() || self.imports(module, first).next().is_some() => {
                self.member(module, path, steps)
            }
            _ => None,
        }
    }

    /// The same of a path that begins in a module.
    fn member(&self, module: &Module, path: &[String], steps: usize) -> Option<Module> {
        let Some((first, rest)) = path.split_first() else { return Some(module.clone()) };
        if first == "super" {
            return self.member(&module[..module.len().checked_sub(1)?].to_vec(), rest, steps);
        }
        if let Some(child) = self.child(module, first) {
            return self.member(&child, rest, steps);
        }
        let steps = steps.checked_sub(1)?;
        let mut named = self.imports(module, first).peekable();
        if named.peek().is_some() {
            return named.find_map(|import| self.resolve(module, &[&import.path, rest].concat(), steps));
        }
        let all = self.imports(module, "*").filter_map(|import| self.resolve(module, &import.path, steps));
        let from = all.filter(|from| from != module).find(|from| self.has(from, first));
        from.map_or_else(|| Some(module.clone()), |from| self.member(&from, path, steps))
    }

    fn child(&self, module: &Module, name: &str) -> Option<Module> {
        let child = [module.as_slice(), &[name.to_owned()]].concat();
        self.sources.contains_key(&child).then_some(child)
    }

    fn imports<'a>(&'a self, module: &Module, name: &'a str) -> impl Iterator<Item = &'a Import> {
        let imports = self.sources.get(module).map(|source| &source.imports);
        imports.into_iter().flatten().filter(move |import| import.name == name)
    }

    fn has(&self, module: &Module, name: &str) -> bool {
        self.sources.get(module).is_some_and(|source| source.items.contains(name))
            || self.child(module, name).is_some()
            || self.imports(module, name).next().is_some()
    }

    /// Sets of modules each of which depends, by way of others of the set, on all others of it. `counts` says which uses make
    /// a dependency; a re-export makes none.
    pub fn cycles(&self, counts: impl Fn(&Module, &Module) -> bool) -> Vec<BTreeSet<&Module>> {
        let uses = self.uses();
        let reached = |from: &Module| {
            let mut reached = BTreeSet::new();
            let mut next = vec![from.clone()];
            while let Some(module) = next.pop() {
                let used = uses.get(&module).into_iter().flatten();
                for one in used.filter(|one| !one.public && counts(&module, &one.to)) {
                    if reached.insert(one.to.clone()) {
                        next.push(one.to.clone());
                    }
                }
            }
            reached
        };
        let reach: BTreeMap<&Module, BTreeSet<Module>> =
            self.sources.keys().map(|module| (module, reached(module))).collect();
        let both = |one: &Module, other: &Module| reach[one].contains(other) && reach[other].contains(one);
        let cycles: BTreeSet<BTreeSet<&Module>> = reach
            .keys()
            .map(|module| reach.keys().copied().filter(|other| both(module, other)).collect())
            .filter(|with: &BTreeSet<_>| with.len() > 1)
            .collect();
        cycles.into_iter().collect()
    }
}

fn files(directory: &File) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn module(file: &File) -> Module {
    let path = file.with_extension("");
    let mut module: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] || module == ["main"] {
        module.pop();
    }
    module
}
