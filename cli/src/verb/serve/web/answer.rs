//! Answers of the server: JSON, or why there is none.

use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::output::Output;
use crate::verb::serve::wire::Refusal;

/// Why there is no other answer.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    text: String,
}

#[derive(Serialize)]
struct Said<'a> {
    error: &'a str,
}

impl Problem {
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = json(&Said { error: &self.text });
        *response.status_mut() = self.status;
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ReadOnly => Self::new(
                StatusCode::FORBIDDEN,
                "this server changes nothing: start it with --write-token-file FILE",
            ),
            Refusal::Token => Self::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong: send `Authorization: Bearer TOKEN` with what is in the file of --write-token-file",
            ),
            Refusal::Usage(text) => Self::new(StatusCode::BAD_REQUEST, text),
            Refusal::Failure(text) => Self::new(StatusCode::CONFLICT, text),
        }
    }
}

/// An answer with a schema number.
pub(super) fn json(body: &impl Serialize) -> Response {
    match Output::document_text(body) {
        Ok(text) => raw_json(text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// An answer that is JSON already.
pub(super) fn raw_json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
