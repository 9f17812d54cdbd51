//! What fits into a line: numbers are shown whole, or not at all.

/// These parts in their order, with `between` them; where that is too long, without the parts of these numbers, as many as
/// it takes.
pub(super) fn parts(parts: &[String], between: &str, dropped: &[usize], width: u16) -> String {
    let line = |without: &[usize]| {
        let kept = parts.iter().enumerate().filter(|(at, part)| !without.contains(at) && !part.is_empty());
        kept.map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(between)
    };
    let mut lines = (0..=dropped.len()).map(|without| line(&dropped[..without]));
    lines.find(|line| line.chars().count() <= usize::from(width)).unwrap_or_default()
}

/// A text up to the last word that fits, with a sign that it goes on.
pub(super) fn text(text: &str, width: u16) -> String {
    let width = usize::from(width);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let begin: String = text.chars().take(width.saturating_sub(1)).collect();
    let words = if begin.chars().count() < text.chars().count() && !text[begin.len()..].starts_with(' ') {
        begin.rfind(' ').map_or("", |end| &begin[..end])
    } else {
        &begin
    };
    format!("{}…", words.trim_end())
}

/// An address with its port, whose middle is left out if it is longer than the room for it; the port is whole, or not there.
pub(super) fn address(address: &str, width: u16) -> String {
    let (length, width) = (address.chars().count(), usize::from(width));
    if length <= width {
        return address.to_owned();
    }
    let port = address.rfind(':').map_or(0, |at| address.len() - at);
    let Some(room) = width.checked_sub(1 + port) else { return "…".repeat(width.min(1)) };
    let end = port.max((port + room) / 2);
    let letters: Vec<char> = address.chars().collect();
    letters[..port + room - end].iter().chain(&['…']).chain(&letters[length - end..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_whole_is_left_out_and_that_is_seen() {
        let all = ["cwnd 640", "RTT 59.0 ms", "", "4 B"].map(str::to_owned);
        let of = |width| parts(&all, "  ", &[1, 3, 0], width);
        assert_eq!(of(99), "cwnd 640  RTT 59.0 ms  4 B");
        assert_eq!((of(20), of(12), of(7)), ("cwnd 640  4 B".into(), "cwnd 640".into(), String::new()));
        assert_eq!(text("set 0 -> 300; undo", 18), "set 0 -> 300; undo");
        assert_eq!(text("set 0 -> 300; undo", 12), "set 0 ->…");
        assert_eq!(text("set 0 -> 300; undo", 14), "set 0 -> 300;…");
        assert_eq!(text("12345", 3), "…");
        let narrow = |width| address("[2001:db8::7]:8443", width);
        assert_eq!(
            (narrow(11), narrow(8), narrow(7)),
            ("[2001…:8443".into(), "[2…:8443".into(), "[…:8443".into())
        );
        assert_eq!((narrow(6), narrow(5), narrow(0)), ("…:8443".into(), "…".into(), String::new()));
        assert_eq!(address("192.0.2.1:80", 12), "192.0.2.1:80");
    }
}
