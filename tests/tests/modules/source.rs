//! What a module's text names: its imports, and paths in its code. Comments, strings and what `cfg(test)` hides are left out.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// A path as it is written: `["crate", "pins", "Pins"]`.
pub type Path = Vec<String>;

/// An import, with all braces resolved.
pub struct Import {
    pub path: Path,
    /// The name that it has here; `*`: all names of the module.
    pub name: String,
    /// It is a re-export.
    pub public: bool,
    pub line: usize,
}

/// What one file says.
#[derive(Default)]
pub struct Source {
    pub imports: Vec<Import>,
    /// Paths in code, with their lines.
    pub paths: Vec<(Path, usize)>,
    /// Names of what it defines.
    pub items: BTreeSet<String>,
    /// Modules in other files that only tests have.
    pub test_modules: BTreeSet<String>,
}

impl Source {
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
        let mut source = Self::default();
        source.read(tokens, 0);
        Ok(source)
    }

    /// What another file of the same module says, too.
    pub fn add(&mut self, other: Self) {
        self.imports.extend(other.imports);
        self.paths.extend(other.paths);
        self.items.extend(other.items);
        self.test_modules.extend(other.test_modules);
    }

    /// `depth`: how many modules of this file are around these tokens.
    fn read(&mut self, tokens: TokenStream, depth: usize) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at] {
                TokenTree::Punct(sign) if sign.as_char() == '#' && is_test(&tokens[at + 1..]) => {
                    self.skip(&tokens, at + 2)
                }
                TokenTree::Ident(word) if word == "use" && begins_item(&tokens, at) => {
                    let public = is_public(&tokens[..at]);
                    let end = end_of_item(&tokens, at);
                    self.import(&tokens[at + 1..end], &mut Vec::new(), public, depth);
                    end + 1
                }
                TokenTree::Ident(word) if word == "mod" => {
                    let inside = tokens.get(at + 2).and_then(group);
                    if let Some(inside) = inside {
                        self.read(inside, depth + 1);
                    }
                    at + 3
                }
                TokenTree::Ident(word) => self.word(&tokens, at, word, depth),
                TokenTree::Group(inside) => {
                    self.read(inside.stream(), depth);
                    at + 1
                }
                _ => at + 1,
            };
        }
    }

    /// Reads the path that begins at a word; says where it ends.
    fn word(&mut self, tokens: &[TokenTree], at: usize, word: &Ident, depth: usize) -> usize {
        const DEFINING: [&str; 9] =
            ["fn", "struct", "enum", "const", "static", "type", "trait", "union", "macro_rules"];
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        if let Some(TokenTree::Ident(before)) = before
            && DEFINING.iter().any(|one| before == one)
        {
            self.items.insert(word.to_string());
            return at + 1;
        }
        let mut path = vec![word.to_string()];
        let mut next = at + 1;
        while let Some(TokenTree::Ident(word)) = tokens.get(next + 2)
            && is_sign(tokens.get(next), ':')
            && is_sign(tokens.get(next + 1), ':')
        {
            path.push(word.to_string());
            next += 3;
        }
        let before_that = at.checked_sub(2).and_then(|at| tokens.get(at));
        let of_a_value = is_sign(before, '.') && !is_sign(before_that, '.');
        let of_a_type = is_sign(before, ':') && is_sign(before_that, ':');
        if !of_a_value && !of_a_type && !is_sign(before, '\'') {
            self.paths.push((outside(path, depth), word.span().start().line));
        }
        next
    }

    fn import(&mut self, tokens: &[TokenTree], prefix: &mut Path, public: bool, depth: usize) {
        for tree in tokens.split(|token| is_sign(Some(token), ',')) {
            let length = prefix.len();
            let mut name = None;
            let mut line = 0;
            for token in tree {
                match token {
                    TokenTree::Ident(word) if word == "as" => name = Some(String::new()),
                    TokenTree::Ident(word) if name.as_ref().is_some_and(String::is_empty) => {
                        name = Some(word.to_string());
                    }
                    TokenTree::Ident(word) => {
                        line = word.span().start().line;
                        prefix.push(word.to_string());
                    }
                    TokenTree::Punct(sign) if sign.as_char() == '*' => {
                        line = sign.span().start().line;
                        name = Some("*".into());
                    }
                    TokenTree::Group(inside) => {
                        let inside: Vec<_> = inside.stream().into_iter().collect();
                        self.import(&inside, prefix, public, depth);
                        line = 0;
                    }
                    _ => {}
                }
            }
            if line > 0 {
                let mut path = prefix.clone();
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
                self.imports.push(Import { path: outside(path, depth), name, public, line });
            }
            prefix.truncate(length);
        }
    }

    /// Passes over an item that only tests have.
    fn skip(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let end = end_of_item(tokens, at);
        if let [.., TokenTree::Ident(word), TokenTree::Ident(name)] = &tokens[at..end]
            && word == "mod"
        {
            self.test_modules.insert(name.to_string());
        }
        end + 1
    }
}

/// A path as it would be written outside of the modules of its file: `super` of those is the file's own module.
fn outside(mut path: Path, depth: usize) -> Path {
    let supers = path.iter().take_while(|part| *part == "super").count().min(depth);
    path.drain(..supers);
    if supers > 0 && supers == depth {
        path.insert(0, "self".into());
    }
    path
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(one)) if one.as_char() == sign)
}

fn group(token: &TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(inside) if inside.delimiter() == Delimiter::Brace => Some(inside.stream()),
        _ => None,
    }
}

/// Whether `[cfg(test)]` comes.
fn is_test(tokens: &[TokenTree]) -> bool {
    matches!(tokens.first(), Some(TokenTree::Group(inside)) if inside.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Where an item ends: at its semicolon or its braces.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let mut is_import = false;
    let end = tokens[at..].iter().position(|token| {
        is_import |= matches!(token, TokenTree::Ident(word) if word == "use");
        is_sign(Some(token), ';') || !is_import && group(token).is_some()
    });
    end.map_or(tokens.len(), |end| at + end)
}

/// Whether a `use` is a declaration, and not the `use<'a>` of an opaque type.
fn begins_item(tokens: &[TokenTree], at: usize) -> bool {
    !is_sign(tokens.get(at + 1), '<')
}

fn is_public(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Ident(word)] => word == "pub",
        [.., TokenTree::Ident(word), TokenTree::Group(_)] => word == "pub",
        _ => false,
    }
}
