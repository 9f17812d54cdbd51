//! Rust for the rows of `bpf/record.h`.

use std::fmt::Write as _;

use crate::{Enumeration, Field, Part, Records, Table, camel};

impl Records {
    /// The enumerations, over the constants that the structures' bindings have: names, numbers, help.
    pub fn enumerations(&self) -> String {
        self.enumerations.iter().map(enumeration).collect()
    }

    /// Addition of structures whose fields all count.
    pub fn sums(&self, structures: &[&str]) -> String {
        let sum = |name: &&str| {
            let fields = self.structure(name).iter().map(|field| &field.name);
            let lines: String = fields.map(|name| format!("self.{name} += other.{name};\n")).collect();
            let kind = camel(name);
            format!(
                "impl std::ops::AddAssign<&{kind}> for {kind} {{\n\
                 fn add_assign(&mut self, other: &{kind}) {{\n{lines}}}\n}}\n"
            )
        };
        structures.iter().map(sum).collect()
    }

    /// The text of bindings with what rows say of their fields as documentation.
    pub fn document(&self, bindings: &str) -> String {
        let mut text = bindings.to_owned();
        for structure in &self.structures {
            let head = format!("pub struct {} {{", camel(&structure.name));
            let Some((before, rest)) = text.split_once(&head) else { continue };
            let Some((body, after)) = rest.split_once('}') else { continue };
            let mut body = body.to_owned();
            for field in structure.fields.iter().filter(|field| !field.help.is_empty()) {
                let (name, help) = (format!("pub {} :", field.name), sentence(field));
                body = body.replace(&name, &format!("#[doc = {help:?}] {name}"));
            }
            text = format!("{before}{head}{body}}}{after}");
        }
        text
    }

    /// The rows of tables, and what they have in common with the structures. Those of `by_columns` are also read column by
    /// column, and from text.
    pub fn rows(&self, by_columns: &[&str]) -> String {
        self.tables.iter().map(|table| self.row(table, by_columns)).collect()
    }

    fn row(&self, table: &Table, by_columns: &[&str]) -> String {
        let name = row_name(&table.name);
        let mut methods = String::new();
        for part in &table.parts {
            if let Part::Fields(structure) = part {
                methods += &self.methods(&name, structure, by_columns.contains(&structure.as_str()));
            }
        }
        let lines: String = self.columns(table).iter().map(|field| self.column(field)).collect();
        let (table, about) = (&table.name, &table.about);
        format!(
            "crate::table! {{\n#[doc = {about:?}]\n#[derive(serde::Deserialize)]\n{name} = {table:?} {{\n{lines}}} }}\n\
             impl serde::Serialize for {name} {{\n\
             fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {{\n\
             table::serialize(self, serializer)\n}}\n}}\n\
             impl {name} {{\n{methods}}}\n"
        )
    }

    fn column(&self, field: &Field) -> String {
        let Field { column, unit, help, side, .. } = field;
        let side = side.to_lowercase();
        let sense = match field.values.as_str() {
            "PLAIN" => "Plain".to_owned(),
            "BITS" => "Bits(&ACK_FLAGS)".to_owned(),
            values if self.enumeration(values).is_some() => "Empty".to_owned(),
            values => camel(&values.to_lowercase()),
        };
        let most = field.kind.strip_prefix("text_").map(|most| format!("most {most} ")).unwrap_or_default();
        let kind = match field.kind.as_str() {
            "u64" => "u64",
            "s32" => "i32",
            kind if kind.starts_with("text") || self.enumeration(&field.values).is_some() => "Text",
            _ => "u32",
        };
        format!("#[doc = {help:?}]\n{column}: {kind} => read {sense} {most}unit {unit:?} side {side:?},\n")
    }

    fn methods(&self, row: &str, structure: &str, by_columns: bool) -> String {
        let kind = camel(structure);
        let (mut to, mut from, mut fill, mut parse) =
            (String::new(), String::new(), String::new(), String::new());
        for field in self.structure(structure).iter().filter(|field| !field.column.is_empty()) {
            let Field { name, column, kind, values, .. } = field;
            let enumeration = camel(values);
            let (into_row, out_of_row) = match kind.as_str() {
                _ if self.enumeration(values).is_some() => (
                    format!(
                        "{enumeration}::from_number(payload.{name}.into()).map_or(\"\", {enumeration}::name).into()"
                    ),
                    // Where 0 is none of them, an empty name stands for none.
                    format!(
                        "match &*self.{column} {{ \"\" if {enumeration}::from_number(0).is_none() => 0, \
                         name => {enumeration}::from_name(name)? as {kind} }}"
                    ),
                ),
                "u8" | "u16" => (
                    format!("payload.{name}.into()"),
                    format!("self.{column}.try_into().unwrap_or({kind}::MAX)"),
                ),
                _ => (format!("payload.{name}"), format!("self.{column}")),
            };
            let (values, rust) = match kind.as_str() {
                "u64" => ("longs", "u64"),
                "s32" => ("words", "i32"),
                _ => ("words", "u32"),
            };
            let _ = writeln!(to, "self.{column} = {into_row};");
            let _ = writeln!(from, "{name}: {out_of_row},");
            let _ = writeln!(
                fill,
                "rows.iter_mut().zip(batch.{values}({column:?})).for_each(|(row, value)| of(row).{name} = *value as {rust});"
            );
            let _ = writeln!(parse, "{column:?} => into.{name} = crate::csv::number(column, text)?,");
        }
        let mut text = format!(
            "/// Sets the columns that a [`{kind}`] has.\npub fn set_{structure}(&mut self, payload: &{kind}) {{\n{to}}}\n"
        );
        if by_columns {
            let _ = write!(
                text,
                "/// Sets the fields of a [`{kind}`] in each row, column by column.\n\
                 pub(crate) fn fill_{structure}<R>(batch: &Batch<{row}>, rows: &mut [R], of: impl Fn(&mut R) -> &mut {kind}) {{\n{fill}}}\n"
            );
        }
        if by_columns && structure == "ack" {
            let _ = write!(
                text,
                "/// Sets the field that a column is; `false`: it is none.\n\
                 pub(crate) fn parse_{structure}(into: &mut {kind}, column: &str, text: &str) -> Result<bool, String> {{\n\
                 match column {{\n{parse}_ => return Ok(false),\n}}\nOk(true)\n}}\n"
            );
        }
        let _ = write!(
            text,
            "/// What [`Self::set_{structure}`] was given, as far as columns keep it; `None`: a name is unknown.\n\
             pub fn {structure}(&self) -> Option<{kind}> {{\nSome({kind} {{\n{from}..{kind}::default()\n}})\n}}\n"
        );
        text
    }
}

/// `acks` as `AckRow`.
pub(crate) fn row_name(table: &str) -> String {
    camel(table.strip_suffix('s').unwrap_or(table)) + "Row"
}

fn sentence(field: &Field) -> String {
    let Field { help, unit, .. } = field;
    if unit.is_empty() { help.clone() } else { format!("{help} ({unit})") }
}

fn enumeration(one: &Enumeration) -> String {
    let Enumeration { name, about, values } = one;
    let (kind, count) = (camel(name), values.len());
    let (mut variants, mut all, mut names, mut helps) =
        (String::new(), String::new(), String::new(), String::new());
    for [constant, value, help] in values {
        let constant = constant.split_once('_').map_or("", |(_, rest)| rest);
        let variant = camel(value);
        let _ = writeln!(variants, "#[doc = {help:?}]\n{variant} = {name}::{constant},");
        let _ = write!(all, "Self::{variant}, ");
        let _ = writeln!(names, "Self::{variant} => {value:?},");
        let _ = writeln!(helps, "Self::{variant} => {help:?},");
    }
    let what = name.replace('_', " ");
    format!(
        r#"
#[doc = {about:?}]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
#[repr(u32)]
pub enum {kind} {{
{variants}}}

impl {kind} {{
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; {count}] = [{all}];

    /// From its number; `None`: it is none of them.
    pub fn from_number(number: u32) -> Option<Self> {{
        Self::ALL.into_iter().find(|one| *one as u32 == number)
    }}

    /// From its name; `None`: there is none of this name.
    pub fn from_name(name: &str) -> Option<Self> {{
        Self::ALL.into_iter().find(|one| one.name() == name)
    }}

    /// Name in listings, JSON and files.
    pub fn name(self) -> &'static str {{
        match self {{
{names}        }}
    }}

    /// What it means.
    pub fn help(self) -> &'static str {{
        match self {{
{helps}        }}
    }}
}}

impl From<{kind}> for &'static str {{
    fn from(one: {kind}) -> Self {{
        one.name()
    }}
}}

impl TryFrom<String> for {kind} {{
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {{
        Self::from_name(&name).ok_or_else(|| {{
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{what} {{name:?}} is unknown: expected one of {{names}}")
        }})
    }}
}}
"#
    )
}
