//! The rows of `bpf/record.h`, as the preprocessor expands them, and what is made of them; and the schemas of the API, of those
//! rows and of structures of Rust. For build scripts, and for the build of the page of `onramp serve`.
#![forbid(unsafe_code)]

mod rust;
mod schema;
mod structure;

use std::collections::BTreeSet;
use std::process::Command;

pub use schema::sources;

/// The headers that have the rows: where they change, what was made of them is made again.
pub const HEADERS: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../record.h"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../algorithm/algorithm.h"),
];

/// Everything that `record.h` describes.
#[derive(Debug, Default)]
pub struct Records {
    enumerations: Vec<Enumeration>,
    structures: Vec<Structure>,
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Enumeration {
    name: String,
    about: String,
    /// Constant, name outside, help.
    values: Vec<[String; 3]>,
}

#[derive(Debug)]
struct Structure {
    name: String,
    fields: Vec<Field>,
}

/// A field of a structure, or a column of a table that no structure has.
#[derive(Clone, Debug)]
struct Field {
    /// In C; empty for a column of its own.
    name: String,
    /// Outside; empty: it does not go out.
    column: String,
    /// C's type, or `text`.
    kind: String,
    unit: String,
    values: String,
    side: String,
    help: String,
}

#[derive(Debug)]
struct Table {
    name: String,
    about: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Column(Field),
    /// The fields of the structure of this name.
    Fields(String),
}

impl Records {
    /// Those of `record.h`.
    ///
    /// # Errors
    /// A sentence saying what the preprocessor or the header lacks.
    pub fn read() -> Result<Self, String> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/records.c");
        let expanded = Command::new("cc")
            .args(["-E", "-P", "-std=gnu11", source])
            .output()
            .map_err(|error| format!("cannot run cc, the C compiler: {error}"))?;
        if !expanded.status.success() {
            return Err(format!(
                "cc cannot preprocess record.h: {}",
                String::from_utf8_lossy(&expanded.stderr)
            ));
        }
        Self::parse(&String::from_utf8_lossy(&expanded.stdout))
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

    fn structure(&self, name: &str) -> &[Field] {
        let found = self.structures.iter().find(|one| one.name == name);
        found.map_or(&[], |structure| &structure.fields)
    }

    /// The enumeration of this name; `None`: it is another word for what values say.
    fn enumeration(&self, values: &str) -> Option<&Enumeration> {
        self.enumerations.iter().find(|one| one.name == values)
    }

    /// The columns of a table, each once.
    fn columns<'a>(&'a self, table: &'a Table) -> Vec<&'a Field> {
        let mut seen = BTreeSet::new();
        let fields = table.parts.iter().flat_map(|part| match part {
            Part::Column(field) => std::slice::from_ref(field),
            Part::Fields(structure) => self.structure(structure),
        });
        fields.filter(|field| !field.column.is_empty() && seen.insert(&field.column)).collect()
    }
}

impl Enumeration {
    /// Names outside.
    fn names(&self) -> Vec<&str> {
        self.values.iter().map(|[_, name, _]| name.as_str()).collect()
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

/// `exit_record` as `ExitRecord`.
pub fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_uppercase() + rest
    });
    words.collect()
}
