//! Schemas of structures of Rust, as serde writes them as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use syn::{
    Attribute, Expr, ExprLit, Field, GenericArgument, Item, ItemStruct, Lit, PathArguments, PathSegment, Type,
};

/// Structures by the file that has them.
#[derive(Default)]
pub(crate) struct Structures {
    files: BTreeMap<String, Vec<ItemStruct>>,
}

/// What serde makes of a field.
#[derive(Default)]
struct Written {
    skipped: bool,
    flattened: bool,
    /// It may be missing.
    optional: bool,
    /// It is missing instead of being null.
    left_out: bool,
}

/// What a document knows of types.
pub(crate) trait Outside {
    /// A reference to the schema of a type, or one that needs none; `None`: nothing is known of it.
    fn reference(&self, kind: &str) -> Option<Value>;

    /// The schema of a type whose fields another one has as its own; `None`: nothing is known of it.
    fn fields(&self, kind: &str) -> Option<Result<Value, String>>;
}

/// Where a file is that a document names.
pub(crate) fn place(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

impl Structures {
    /// Reads a file, given from the workspace's root, unless it is known.
    pub fn read(&mut self, file: &str) -> Result<(), String> {
        if self.files.contains_key(file) {
            return Ok(());
        }
        let text = fs::read_to_string(place(file)).map_err(|error| format!("cannot read {file}: {error}"))?;
        self.add(file, &text)
    }

    /// The structures of a text.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), String> {
        let parsed = syn::parse_file(text).map_err(|error| format!("{file}: {error}"))?;
        let structures = parsed.items.into_iter().filter_map(|item| match item {
            Item::Struct(one) => Some(one),
            _ => None,
        });
        self.files.insert(file.to_owned(), structures.collect());
        Ok(())
    }

    /// The schema of a structure.
    pub fn schema(&self, file: &str, name: &str, outside: &dyn Outside) -> Result<Value, String> {
        let structures = self.files.get(file).map_or(&[][..], Vec::as_slice);
        let structure = structures.iter().find(|one| one.ident == name);
        let structure = structure.ok_or_else(|| format!("{file} has no structure {name}"))?;
        Reading { all: self, file, outside }.object(structure)
    }

    /// A structure that one of this file uses: of the same file, else the only one of this name.
    fn find(&self, file: &str, name: &str) -> Option<(&str, &ItemStruct)> {
        let named = |(file, all): (&'_ String, &'_ Vec<ItemStruct>)| -> Option<(String, usize)> {
            Some((file.clone(), all.iter().position(|one| one.ident == name)?))
        };
        let own = self.files.get_key_value(file).and_then(named);
        let (file, at) = own.or_else(|| self.files.iter().find_map(named))?;
        let (file, all) = self.files.get_key_value(&file)?;
        Some((file, &all[at]))
    }
}

struct Reading<'a> {
    all: &'a Structures,
    file: &'a str,
    outside: &'a dyn Outside,
}

impl Reading<'_> {
    fn object(&self, structure: &ItemStruct) -> Result<Value, String> {
        let (mut required, mut properties) = (Vec::new(), Map::new());
        for field in &structure.fields {
            let of = |reason: String| format!("{}: {}.{reason}", self.file, structure.ident);
            self.field(field, &mut required, &mut properties).map_err(of)?;
        }
        let mut object = json!({"type": "object", "required": required, "properties": properties});
        describe(&mut object, &structure.attrs);
        if serde_of(&structure.attrs)?.1 {
            object["additionalProperties"] = false.into();
        }
        Ok(object)
    }

    fn field(
        &self,
        field: &Field,
        required: &mut Vec<Value>,
        properties: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        let (written, _) = serde_of(&field.attrs).map_err(|reason| format!("{name}: {reason}"))?;
        if written.skipped {
            return Ok(());
        }
        let schema = match present(&field.ty).filter(|_| written.left_out) {
            Some(kind) => self.of(kind),
            None if written.flattened => self.flattened(&field.ty),
            None => self.of(&field.ty),
        };
        let mut schema = schema.map_err(|reason| format!("{name}: {reason}"))?;
        if written.flattened {
            required.extend(schema["required"].as_array().into_iter().flatten().cloned());
            properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
            return Ok(());
        }
        describe(&mut schema, &field.attrs);
        if !written.optional {
            required.push(name.clone().into());
        }
        properties.insert(name, schema);
        Ok(())
    }

    /// The fields of a structure; of one that may be missing, none is required.
    fn flattened(&self, kind: &Type) -> Result<Value, String> {
        let path = match kind {
            Type::Reference(reference) => return self.flattened(&reference.elem),
            Type::Path(path) => path.path.segments.last(),
            _ => None,
        };
        let path = path.ok_or("it is flattened, and no structure")?;
        let name = path.ident.to_string();
        if name == "Option" {
            let mut fields = self.flattened(argument(path)?)?;
            fields["required"] = json!([]);
            return Ok(fields);
        }
        if let Some(fields) = self.outside.fields(&name) {
            return fields;
        }
        let (file, structure) =
            self.all.find(self.file, &name).ok_or_else(|| format!("no file has {name}"))?;
        Reading { file, ..*self }.object(structure)
    }

    fn of(&self, kind: &Type) -> Result<Value, String> {
        let path = match kind {
            Type::Reference(reference) => return self.of(&reference.elem),
            Type::Slice(slice) => return Ok(json!({"type": "array", "items": self.of(&slice.elem)?})),
            Type::Tuple(tuple) => {
                let (count, first) = (tuple.elems.len(), tuple.elems.first().ok_or("it is empty")?);
                let items = self.of(first)?;
                return Ok(json!({"type": "array", "items": items, "minItems": count, "maxItems": count}));
            }
            Type::Path(path) => path.path.segments.last().ok_or("its type has no name")?,
            _ => return Err("its type has no schema".into()),
        };
        let argument = || self.of(argument(path)?);
        Ok(match path.ident.to_string().as_str() {
            "bool" => json!({"type": "boolean"}),
            "f64" => json!({"type": "number"}),
            "u16" => json!({"type": "integer", "minimum": 0, "maximum": u16::MAX}),
            "u8" | "u32" | "u64" | "usize" => json!({"type": "integer", "minimum": 0}),
            "String" | "str" | "IpAddr" => json!({"type": "string"}),
            "Cow" | "Box" => argument()?,
            "Option" => or_null(argument()?),
            "Vec" => json!({"type": "array", "items": argument()?}),
            // The document says which.
            "RawValue" => json!({}),
            "Named" => json!({"type": "object", "additionalProperties": argument()?}),
            name => match (self.outside.reference(name), self.all.find(self.file, name)) {
                (Some(schema), _) => schema,
                (None, Some((file, structure))) => Reading { file, ..*self }.object(structure)?,
                (None, None) => return Err(format!("there is no schema of {name}")),
            },
        })
    }
}

/// The last type between its angle brackets.
fn argument(path: &PathSegment) -> Result<&Type, String> {
    let PathArguments::AngleBracketed(all) = &path.arguments else {
        return Err("its type has no argument".into());
    };
    let kinds = all.args.iter().filter_map(|one| match one {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    });
    kinds.last().ok_or_else(|| "its type has no argument".into())
}

/// What an `Option` is of.
fn present(kind: &Type) -> Option<&Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    argument(last).ok()
}

fn or_null(mut schema: Value) -> Value {
    match schema["type"].as_str() {
        Some(kind) => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        None => json!({"oneOf": [schema, {"type": "null"}]}),
    }
}

/// Adds what the comment says.
fn describe(schema: &mut Value, attributes: &[Attribute]) {
    let lines = attributes.iter().filter_map(|one| match &one.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    if !text.is_empty() {
        let text = text.replace("`None`: ", "null: ").replace("none: ", "null: ");
        schema["description"] = text.trim_end_matches('.').into();
    }
}

/// What serde makes of a field, and whether a structure refuses fields that it does not know.
fn serde_of(attributes: &[Attribute]) -> Result<(Written, bool), String> {
    let (mut written, mut closed) = (Written::default(), false);
    for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<Lit>()?;
            }
            match name.as_str() {
                "skip" => written.skipped = true,
                "flatten" => written.flattened = true,
                "default" => written.optional = true,
                "skip_serializing_if" => (written.optional, written.left_out) = (true, true),
                "deny_unknown_fields" => closed = true,
                "deserialize_with" => {}
                _ => return Err(meta.error(format!("serde's {name} has no schema"))),
            }
            Ok(())
        });
        parsed.map_err(|error| error.to_string())?;
    }
    Ok((written, closed))
}
