//! What comes of the rows of a record.

use onramp_records::Records;

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
        "reason: ExitReason::from_name(&self.reason)? as u8,",
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

#[test]
fn a_table_is_a_schema_where_a_document_names_it() {
    let records = Records::parse(EXPANDED).unwrap();
    let document = r#"{"Exit": {"x-record": "exits"}, "Other": {"type": "object"}}"#;
    let expected = concat!(
        r#"{"Exit": {"type": "object", "description": "Exits.", "required": ["flow", "since_start_us", "reason"], "properties": {"#,
        r#""flow": {"type": "integer", "minimum": 0, "description": "number"}, "#,
        r#""since_start_us": {"type": ["integer", "null"], "minimum": 0, "description": "since it began, or (not) \"yet\""}, "#,
        r#""reason": {"type": "string", "enum": ["loss"], "description": "why"}}}, "Other": {"type": "object"}}"#
    );
    assert_eq!(records.complete(document).unwrap(), expected);
    let refused = records.complete(r#"{"Exit": {"x-record": "leaves"}}"#).unwrap_err();
    assert!(refused.contains("\"leaves\""), "{refused}");
}
