//! Schemas of OpenAPI for tables of `bpf/record.h`.

use crate::{Field, Records};

/// How a document says that a schema is the one of a table.
const PLACE: &str = r#"{"x-record": ""#;

impl Records {
    /// A document of OpenAPI, with the schemas of tables in place of `{"x-record": "TABLE"}`.
    ///
    /// # Errors
    /// A sentence naming a table that there is not, or a column that JSON has in another form.
    pub fn complete(&self, document: &str) -> Result<String, String> {
        let mut pieces = document.split(PLACE);
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (table, rest) = piece.split_once("\"}").unwrap_or((piece, ""));
            text += &self.schema(table)?;
            text += rest;
        }
        Ok(text)
    }

    fn schema(&self, name: &str) -> Result<String, String> {
        let table = self.tables.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| format!("record.h has no table {name:?}"))?;
        let columns = self.columns(table);
        let names: Vec<_> = columns.iter().map(|field| format!("{:?}", field.column)).collect();
        let properties: Vec<_> =
            columns.iter().map(|field| self.property(field)).collect::<Result<_, _>>()?;
        Ok(format!(
            r#"{{"type": "object", "description": {:?}, "required": [{}], "properties": {{{}}}}}"#,
            table.about,
            names.join(", "),
            properties.join(", ")
        ))
    }

    fn property(&self, field: &Field) -> Result<String, String> {
        let Field { column, kind, values, help, .. } = field;
        let (kind, range) = match (self.enumeration(values), values.as_str(), kind.as_str()) {
            (Some(names), ..) => {
                let names: Vec<_> = names.values.iter().map(|[_, name, _]| format!("{name:?}")).collect();
                ("string", format!(r#", "enum": [{}]"#, names.join(", ")))
            }
            (_, "BITS", _) => return Err(format!("{column} of record.h is several values in JSON")),
            (_, "FLAG", _) => ("boolean", String::new()),
            (_, _, kind) if kind.starts_with("text") => ("string", String::new()),
            (_, "PLAIN", "s32") => ("integer", String::new()),
            _ => ("integer", r#", "minimum": 0"#.to_owned()),
        };
        let has_none = matches!(values.as_str(), "ZERO" | "NEGATIVE" | "THRESHOLD" | "EMPTY");
        let kind = if has_none { format!(r#"["{kind}", "null"]"#) } else { format!("{kind:?}") };
        // What JSON has in place of the number that stands for none.
        let help = if has_none {
            help.replace("0: ", "null: ").replace("negative: ", "null: ")
        } else {
            help.clone()
        };
        Ok(format!(r#"{column:?}: {{"type": {kind}{range}, "description": {help:?}}}"#))
    }
}
