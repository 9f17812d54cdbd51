//! The rows of `bpf/record.h`, as the preprocessor expands them.

use std::fs;
use std::path::Path;

/// Has every row come out as a call of a function that is none.
const EXPANSION: &str = r#"#include "record.h"
#define ENUMERATION(name, ROWS, about) onramp_enumeration(name, about) ROWS(onramp_value)
RECORD_ENUMERATIONS(ENUMERATION)
#define STRUCTURE(name, FIELDS) onramp_structure(name) FIELDS(onramp_field)
RECORD_STRUCTURES(STRUCTURE)
#define TABLE(name, ROWS, about) onramp_table(name, about) ROWS(onramp_column, onramp_fields)
RECORD_TABLES(TABLE)
"#;

/// Everything that `record.h` describes.
#[derive(Debug, Default)]
pub struct Records {
    pub(crate) enumerations: Vec<Enumeration>,
    pub(crate) structures: Vec<Structure>,
    pub(crate) tables: Vec<Table>,
}

#[derive(Debug)]
pub(crate) struct Enumeration {
    pub name: String,
    pub about: String,
    /// Constant, name outside, help.
    pub values: Vec<[String; 3]>,
}

#[derive(Debug)]
pub(crate) struct Structure {
    pub name: String,
    pub fields: Vec<Field>,
}

/// A field of a structure, or a column of a table that no structure has.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// In C; empty for a column of its own.
    pub name: String,
    /// Outside; empty: it does not go out.
    pub column: String,
    /// C's type, or `text`.
    pub kind: String,
    pub unit: String,
    pub values: String,
    pub side: String,
    pub help: String,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub name: String,
    pub about: String,
    pub parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    Column(Field),
    /// The fields of the structure of this name.
    Fields(String),
}

impl Records {
    /// Those of `record.h` in the directory `bpf`; `out` is for a file on the way.
    ///
    /// # Errors
    /// A sentence saying what the preprocessor or the header lacks.
    pub fn read(bpf: &Path, out: &Path) -> Result<Self, String> {
        let source = out.join("records.c");
        fs::write(&source, EXPANSION)
            .map_err(|error| format!("cannot write {}: {error}", source.display()))?;
        let expanded = cc::Build::new()
            .file(&source)
            .include(bpf)
            .std("gnu11")
            .flag("-P")
            .cargo_metadata(false)
            .try_expand()
            .map_err(|error| format!("cannot preprocess record.h: {error}"))?;
        Self::parse(&String::from_utf8_lossy(&expanded))
    }

    /// From the text that the preprocessor makes.
    ///
    /// # Errors
    /// A sentence naming the row that is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut records = Self::default();
        for call in text.split("onramp_").skip(1) {
            let Some((kind, rest)) = call.split_once('(') else { continue };
            let arguments = arguments(rest).ok_or_else(|| format!("record.h: {call:?} is not closed"))?;
            records
                .add(kind.trim(), &arguments)
                .ok_or_else(|| format!("record.h: {kind} has {arguments:?}"))?;
        }
        let named = |name: &str| records.structures.iter().any(|one| one.name == name);
        let used = records.tables.iter().flat_map(|table| &table.parts);
        for part in used {
            if let Part::Fields(name) = part
                && !named(name)
            {
                return Err(format!("record.h: a table has fields of {name}, which is no structure"));
            }
        }
        Ok(records)
    }

    fn add(&mut self, kind: &str, arguments: &[String]) -> Option<()> {
        let text = |at: usize| arguments[at].clone();
        let field = |name: String, side: String, at: usize| Field {
            name,
            column: Some(text(at)).filter(|column| column != "_").unwrap_or_default(),
            kind: text(at + 1),
            unit: text(at + 2),
            values: text(at + 3),
            side,
            help: arguments.last().cloned().unwrap_or_default(),
        };
        match (kind, arguments.len()) {
            ("enumeration", 2) => {
                let values = Vec::new();
                self.enumerations.push(Enumeration { name: text(0), about: text(1), values });
            }
            ("value", 3) => self.enumerations.last_mut()?.values.push([text(0), text(1), text(2)]),
            ("structure", 1) => {
                self.structures.push(Structure { name: text(0), fields: Vec::new() });
            }
            ("field", 7) => self.structures.last_mut()?.fields.push(field(text(0), text(5), 1)),
            ("table", 2) => {
                self.tables.push(Table { name: text(0), about: text(1), parts: Vec::new() });
            }
            ("column", 5) => {
                let column = field(String::new(), String::new(), 0);
                self.tables.last_mut()?.parts.push(Part::Column(column));
            }
            ("fields", 1) => self.tables.last_mut()?.parts.push(Part::Fields(text(0))),
            _ => return None,
        }
        Some(())
    }

    pub(crate) fn structure(&self, name: &str) -> &[Field] {
        let found = self.structures.iter().find(|one| one.name == name);
        found.map_or(&[], |structure| &structure.fields)
    }
}

/// What stands between here and the closing parenthesis; neighbouring strings are one.
fn arguments(text: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let mut signs = text.chars();
    let (mut quoted, mut depth) = (false, 0);
    while let Some(sign) = signs.next() {
        let last = all.last_mut()?;
        match sign {
            '\\' if quoted => last.push(signs.next()?),
            '"' => quoted = !quoted,
            _ if quoted => last.push(sign),
            ',' if depth == 0 => all.push(String::new()),
            ')' if depth == 0 => return Some(all),
            sign if sign.is_whitespace() => {}
            sign => {
                depth += i32::from(sign == '(') - i32::from(sign == ')');
                last.push(sign);
            }
        }
    }
    None
}
