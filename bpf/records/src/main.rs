//! Writes a document of OpenAPI to stdout, complete with the schemas of records: `onramp-records DOCUMENT`.

use std::process::ExitCode;

use onramp_records::Records;

fn main() -> ExitCode {
    match complete() {
        Ok(document) => {
            print!("{document}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn complete() -> Result<String, String> {
    let path = std::env::args_os().nth(1).ok_or("give the document: onramp-records DOCUMENT")?;
    let document =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Records::read()?.complete(&document)
}
