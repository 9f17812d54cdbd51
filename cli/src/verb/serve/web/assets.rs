//! The page, embedded.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::answer::Problem;

include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// Shown in place of the page where it was not built.
const NOT_BUILT: &str = "This onramp was built without its page: build it with `make build`, which takes Node.js. The API is here all the same: /api/flows, /metrics.\n";

/// `GET /`
pub(super) async fn index() -> Response {
    answer("index.html").unwrap_or_else(|| (StatusCode::NOT_FOUND, NOT_BUILT).into_response())
}

/// `GET /FILE`
pub(super) async fn file(Path(name): Path<String>) -> Response {
    let none = || Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at /{name}")).into_response();
    answer(&name).unwrap_or_else(none)
}

fn answer(name: &str) -> Option<Response> {
    let (_, bytes) = EMBEDDED.iter().find(|(file, _)| *file == name)?;
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    // Asked for again each time: another build of onramp has other files of the same names.
    Some(([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], *bytes).into_response())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_that_was_built_is_here_and_takes_nothing_from_elsewhere() {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/dist/index.html").exists();
        let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, if built { vec!["app.css", "app.js", "icon.svg", "index.html"] } else { vec![] });
        for (name, bytes) in EMBEDDED {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(text.len() < 400_000, "{name} has {} bytes", text.len());
            // Names of XML's vocabularies look like addresses, and nothing is loaded from them.
            let elsewhere = text.replace("http://www.w3.org/", "");
            assert!(!elsewhere.contains("src=\"http") && !elsewhere.contains("@import"), "{name}");
            // Licences name where their work is from, in comments at the end.
            let code = elsewhere.split("/*! https://").next().unwrap();
            assert!(!code.contains("https://"), "{name}");
        }
        let index = EMBEDDED.iter().find(|(name, _)| *name == "index.html");
        assert!(index.is_none_or(|(_, bytes)| !String::from_utf8_lossy(bytes).contains("<style")));
    }
}
