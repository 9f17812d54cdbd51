//! The page, embedded.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::api::Problem;

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
