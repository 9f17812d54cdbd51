//! What comes of the rows of a record.

use onramp_records::Records;
use serde_json::json;

const EXPANDED: &str = r#"
onramp_enumeration(exit_reason, "Why.") onramp_value(EXIT_LOSS, loss, "fast recovery")
onramp_structure(exit_record)
onramp_field(at_us, since_start_us, u64, "us", ZERO, BEFORE, "since " "it began, or (not) \"yet\"")
onramp_field(reason, reason, u8, "", exit_reason, BEFORE, "why") onramp_field(unused, _, u8, "", PLAIN, AFTER, "")
onramp_table(exits, "Exits.") onramp_column(flow, u64, "", PLAIN, "number") onramp_fields(exit_record)
"#;

#[test]
fn a_row_of_a_field_is_a_column_and_its_conversions() {
    let records = Records::parse(EXPANDED).unwrap();
    let rust = records.rows(&[]);
    for expected in [
        "ExitRow = \"exits\" {",
        "flow: u64 => read Plain unit \"\" side \"\",",
        "#[doc = \"since it began, or (not) \\\"yet\\\"\"]\nsince_start_us: u64 => read Zero unit \"us\" side \"before\",",
        "reason: Text => read Empty",
        "self.since_start_us = payload.at_us;",
        "at_us: self.since_start_us,",
        "reason: match &*self.reason { \"\" if ExitReason::from_number(0).is_none() => 0, name => ExitReason::from_name(name)? as u8 },",
    ] {
        assert!(rust.contains(expected), "{expected} is not in {rust}");
    }
    assert!(!rust.contains("unused"), "{rust}");
}

#[test]
fn an_enumeration_has_names_numbers_and_help() {
    let rust = Records::parse(EXPANDED).unwrap().enumerations();
    for expected in ["pub enum ExitReason {", "Loss = exit_reason::LOSS,", "Self::Loss => \"fast recovery\","]
    {
        assert!(rust.contains(expected), "{expected} is not in {rust}");
    }
}

#[test]
fn rows_document_the_fields_that_they_make() {
    let records = Records::parse(EXPANDED).unwrap();
    let text = records.document("pub struct ExitRecord { pub at_us : u64 , pub reason : u8 }");
    assert!(
        text.contains("#[doc = \"since it began, or (not) \\\"yet\\\" (us)\"] pub at_us : u64"),
        "{text}"
    );
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    for (text, expected) in [
        ("onramp_field(one, two, u32)", "field has"),
        ("onramp_table(acks, \"ACKs.\") onramp_fields(ack)", "ack, which is no structure"),
        ("onramp_table(acks", "is not closed"),
    ] {
        let refused = Records::parse(text).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

fn completed(schemas: &str) -> Result<serde_json::Value, String> {
    let document = format!(r#"{{"components": {{"schemas": {schemas}}}}}"#);
    let completed = Records::parse(EXPANDED)?.complete(&document)?;
    let value: serde_json::Value = serde_json::from_str(&completed).map_err(|error| error.to_string())?;
    Ok(value["components"]["schemas"].clone())
}

#[test]
fn a_table_is_a_schema_where_a_document_names_it() {
    let schemas = completed(r#"{"Exit": {"x-record": "exits"}, "Other": {"type": "object"}}"#).unwrap();
    let properties = json!({
        "flow": {"type": "integer", "minimum": 0, "description": "number"},
        "since_start_us": {"type": ["integer", "null"], "minimum": 0, "description": "since it began, or (not) \"yet\""},
        "reason": {"type": "string", "enum": ["loss"], "description": "why"},
    });
    let exit = json!({"type": "object", "description": "Exits.", "required": ["flow", "since_start_us", "reason"],
        "properties": properties});
    assert_eq!(schemas, json!({"Exit": exit, "Other": {"type": "object"}}));
    let refused = completed(r#"{"Exit": {"x-record": "leaves"}}"#).unwrap_err();
    assert!(refused.contains("\"leaves\""), "{refused}");
}

/// Structures as in `data/structures.rs`.
const FILE: &str = "bpf/records/tests/data/structures.rs";

#[test]
fn a_structure_is_a_schema_as_serde_writes_it() {
    let schemas = completed(&format!(
        r#"{{"Flow": {{"x-rust": "{FILE} Row", "required": ["schema"], "properties": {{"schema": {{"const": 1}}, "state": {{"enum": ["on"]}}}}}},
            "Exit": {{"x-record": "exits"}}, "Number": {{"x-type": "Value", "type": "integer"}}}}"#
    ));
    let flow = schemas.unwrap()["Flow"].take();
    let properties = json!({
        "schema": {"const": 1},
        "state": {"type": "string", "enum": ["on"]},
        "rate_bps": {"type": ["integer", "null"], "minimum": 0, "description": "Of the newest round; null: none yet"},
        "note": {"type": "string"},
        "exit": {"oneOf": [{"$ref": "#/components/schemas/Exit"}, {"type": "null"}]},
        "why": {"type": "string", "enum": ["loss"]},
        "cells": {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}},
        "values": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Number"}},
        "lost_events": {"type": "integer", "minimum": 0},
        "within": {"type": "object", "required": ["port"], "properties":
            {"port": {"type": "integer", "minimum": 0, "maximum": 65535}}},
    });
    let required = ["state", "rate_bps", "exit", "why", "cells", "values", "lost_events", "within", "schema"];
    assert_eq!(
        flow,
        json!({"type": "object", "description": "A row", "required": required, "properties": properties})
    );
}

#[test]
fn what_has_no_schema_is_refused_with_file_structure_and_field() {
    for (structure, named) in [
        ("Nowhere", vec![FILE, "Nowhere"]),
        ("Odd", vec![FILE, "Odd.table", "HashMap"]),
        ("Renamed", vec![FILE, "Renamed.name", "rename"]),
    ] {
        let refused = completed(&format!(r#"{{"One": {{"x-rust": "{FILE} {structure}"}}}}"#)).unwrap_err();
        assert!(named.iter().all(|one| refused.contains(one)), "{refused}");
    }
    let refused = completed(r#"{"One": {"x-rust": "bpf/nowhere.rs One"}}"#).unwrap_err();
    assert!(refused.contains("bpf/nowhere.rs"), "{refused}");
}

#[test]
fn structures_that_count_are_added_field_by_field() {
    let rust = Records::parse(EXPANDED).unwrap().sums(&["exit_record"]);
    assert!(rust.contains("AddAssign<&ExitRecord> for ExitRecord"), "{rust}");
    assert_eq!(rust.matches("+= other.").count(), 3, "{rust}");
}
