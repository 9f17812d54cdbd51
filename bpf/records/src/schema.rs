//! A document of OpenAPI, with schemas of tables of `bpf/record.h` and of structures of Rust.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::rust::row_name;
use crate::structure::{Outside, Structures, place};
use crate::{Field, Records, Table, camel};

/// Of which table a schema is.
const TABLE: &str = "x-record";
/// Of which structure a schema is: file, from the workspace's root, and name.
const STRUCTURE: &str = "x-rust";
/// Of which type of Rust the schema is that the document has itself.
const TYPE: &str = "x-type";

/// The files that a document takes structures of: where they change, it is to be completed again.
///
/// # Errors
/// A sentence saying what is wrong with the document.
pub fn sources(document: &str) -> Result<Vec<PathBuf>, String> {
    let document = parse(document)?;
    Ok(schemas(&document)?.values().filter_map(structure_of).map(|(file, _)| place(file)).collect())
}

fn parse(document: &str) -> Result<Value, String> {
    serde_json::from_str(document).map_err(|error| format!("the document of the API: {error}"))
}

fn schemas(document: &Value) -> Result<&Map<String, Value>, String> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    schemas.ok_or_else(|| "the document of the API has no schemas".to_owned())
}

impl Records {
    /// A document of OpenAPI. A schema `{"x-record": "TABLE"}` becomes that of a table, and `{"x-rust": "FILE NAME"}` that of a
    /// structure, to which what else stands there is added. `{"x-type": "NAME"}` in one says that it describes this type.
    ///
    /// # Errors
    /// A sentence naming what there is not, or what has no schema.
    pub fn complete(&self, document: &str) -> Result<String, String> {
        let mut document = parse(document)?;
        let given = schemas(&document)?.clone();
        let mut structures = Structures::default();
        for schema in given.values() {
            if let Some((file, _)) = structure_of(schema) {
                structures.read(file)?;
            }
        }
        let completion = Completion { records: self, given: &given, structures };
        let made: Map<_, _> = given
            .iter()
            .map(|(name, schema)| Ok((name.clone(), completion.schema(schema)?)))
            .collect::<Result<_, String>>()?;
        document["components"]["schemas"] = made.into();
        serde_json::to_string_pretty(&document).map_err(|error| error.to_string())
    }

    fn table(&self, table: &Table) -> Result<Value, String> {
        let columns = self.columns(table);
        let names: Vec<_> = columns.iter().map(|field| field.column.as_str()).collect();
        let properties: Map<_, _> =
            columns.iter().map(|field| self.property(field)).collect::<Result<_, String>>()?;
        Ok(json!({"type": "object", "description": table.about, "required": names, "properties": properties}))
    }

    fn property(&self, field: &Field) -> Result<(String, Value), String> {
        let Field { column, kind, values, help, .. } = field;
        let mut schema = match (self.enumeration(values), values.as_str(), kind.as_str()) {
            (Some(names), ..) => {
                json!({"type": "string", "enum": names.names()})
            }
            (_, "BITS", _) => return Err(format!("{column} of record.h is several values in JSON")),
            (_, "FLAG", _) => json!({"type": "boolean"}),
            (_, _, kind) if kind.starts_with("text") => json!({"type": "string"}),
            (_, "PLAIN", "s32") => json!({"type": "integer"}),
            _ => json!({"type": "integer", "minimum": 0}),
        };
        let mut help = help.clone();
        if matches!(values.as_str(), "ZERO" | "NEGATIVE" | "THRESHOLD" | "EMPTY") {
            schema["type"] = json!([schema["type"], "null"]);
            // What JSON has in place of the number that stands for none.
            help = help.replace("0: ", "null: ").replace("negative: ", "null: ");
        }
        schema["description"] = help.into();
        Ok((column.clone(), schema))
    }
}

/// A document's schemas, and what they are made of.
struct Completion<'a> {
    records: &'a Records,
    given: &'a Map<String, Value>,
    structures: Structures,
}

impl Completion<'_> {
    fn schema(&self, given: &Value) -> Result<Value, String> {
        if let Some(name) = given[TABLE].as_str() {
            let table = self.records.tables.iter().find(|one| one.name == name);
            return self.records.table(table.ok_or_else(|| format!("record.h has no table {name:?}"))?);
        }
        let Some((file, name)) = structure_of(given) else { return Ok(without_marks(given.clone())) };
        let mut made = self.structures.schema(file, name, self)?;
        add(&mut made, given.clone());
        Ok(made)
    }

    /// The schema of the document that describes a type.
    fn place(&self, kind: &str) -> Option<(&String, &Value)> {
        self.given.iter().find(|(_, schema)| {
            structure_of(schema).is_some_and(|(_, name)| name == kind)
                || schema[TYPE] == kind
                || schema[TABLE].as_str().is_some_and(|table| row_name(table) == kind)
        })
    }
}

impl Outside for Completion<'_> {
    fn reference(&self, kind: &str) -> Option<Value> {
        let place = self.place(kind).map(|(name, _)| json!({"$ref": format!("#/components/schemas/{name}")}));
        place.or_else(|| {
            let one = self.records.enumerations.iter().find(|one| camel(&one.name) == kind)?;
            Some(json!({"type": "string", "enum": one.names()}))
        })
    }

    fn fields(&self, kind: &str) -> Option<Result<Value, String>> {
        let table = || self.records.tables.iter().find(|table| row_name(&table.name) == kind);
        let place = self.place(kind).map(|(_, schema)| self.schema(schema));
        place.or_else(|| table().map(|table| self.records.table(table)))
    }
}

/// File and name of the structure that a schema is made of.
fn structure_of(schema: &Value) -> Option<(&str, &str)> {
    schema[STRUCTURE].as_str()?.split_once(' ')
}

fn without_marks(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|name, _| ![TABLE, STRUCTURE, TYPE].contains(&name.as_str()));
    }
    schema
}

/// What the document adds to a schema: to its properties, and to what it requires.
fn add(made: &mut Value, given: Value) {
    let Value::Object(given) = without_marks(given) else { return };
    for (key, value) in given {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, own) in properties {
                    let property = &mut made["properties"][&name];
                    match own {
                        Value::Object(own) if property.is_object() && !own.contains_key("$ref") => {
                            own.into_iter().for_each(|(key, value)| property[key] = value);
                        }
                        own => *property = own,
                    }
                }
            }
            ("required", Value::Array(more)) => {
                if let Some(required) = made["required"].as_array_mut() {
                    required.extend(more);
                }
            }
            (_, value) => made[key] = value,
        }
    }
}
