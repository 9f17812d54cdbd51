// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Text in pages.

/// A text as it stands in an element or in an attribute between double quotes.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
