// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a file is that is not what it was given for, by its first bytes.

/// So much of a file is looked at, bytes.
pub const HEAD: usize = 4_096;

/// What is done with other people's measurements.
macro_rules! of_acks {
    ($what:literal) => {
        concat!($what, ", which lacks the sender's state at each ACK: record the flows at their sender with `onramp record`")
    };
}

/// What a pcapng file begins with (a section header block).
pub const PCAPNG_HEAD: &[u8] = b"\x0a\x0d\x0d\x0a";

/// First bytes, and what they begin.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "compressed by gzip: unpack it first (gunzip)"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard: unpack it first (unzstd)"),
    (b"\xfd7zXZ\0", "compressed by xz: unpack it first (unxz)"),
    (b"BZh", "compressed by bzip2: unpack it first (bunzip2)"),
    (b"\x04\x22\x4d\x18", "compressed by LZ4: unpack it first (unlz4)"),
    (b"PK\x03\x04", "a ZIP archive, as spreadsheets (.xlsx, .ods) are: save the table as CSV"),
    (b"\xff\xfe\0\0", "saved as UTF-32: save it as UTF-8"),
    (b"\0\0\xfe\xff", "saved as UTF-32: save it as UTF-8"),
    (b"\xff\xfe", "saved as UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "saved as UTF-16: save it as UTF-8"),
    (b"\x7fELF", "a program (ELF)"),
    (b"\xd4\xc3\xb2\xa1", PCAP),
    (b"\xa1\xb2\xc3\xd4", PCAP),
    (b"\x4d\x3c\xb2\xa1", PCAP),
    (b"\xa1\xb2\x3c\x4d", PCAP),
    (PCAPNG_HEAD, PCAPNG),
    (b"snoop\0\0\0", of_acks!("a packet capture (snoop)")),
    (b"\x1e{", QLOG),
    (b"\x1e\n{", QLOG),
    (b"PAR1", "Parquet, not text: `onramp replay` reads recordings"),
    (b"ARROW1", "an Arrow or Feather file: save the table as CSV"),
    (b"FEA1", "an Arrow or Feather file: save the table as CSV"),
    (b"SQLite format 3\0", "an SQLite database: save the table as CSV"),
    (b"\x89HDF", "an HDF5 file: save the table as CSV"),
    (b"\x93NUMPY", "a NumPy array: save it as CSV"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"%PDF-", "a PDF document"),
];
const PCAP: &str =
    "a packet capture (pcap): `onramp explain`, `onramp replay` and `onramp-lab sim path` read it";
const PCAPNG: &str =
    "a packet capture (pcapng): `onramp explain`, `onramp replay` and `onramp-lab sim path` read it";
const QLOG: &str = "qlog, which keeps too little of an acknowledgment: give the recording that it was made from (`onramp explain` reads it)";

/// What a file with these first bytes is, and what can be done; `None`: it may be text of ours. Continues "it is".
pub fn foreign(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(HEAD)];
    if let Some((_, what)) = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)) {
        return Some(what);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("a tar archive: unpack it first");
    }
    match head {
        [one, 0, two, 0, ..] | [0, one, 0, two, ..] if one.is_ascii() && two.is_ascii() && *one != 0 => {
            return Some("saved as UTF-16: save it as UTF-8");
        }
        _ => {}
    }
    let text = String::from_utf8_lossy(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head));
    text_of_others(text.trim_start())
}

/// Whether a file with these first bytes is a packet capture that we read: pcap or pcapng.
pub fn is_capture(head: &[u8]) -> bool {
    foreign(head).is_some_and(|what| what == PCAP || what == PCAPNG)
}

/// Whether a file with these first bytes is qlog.
pub fn is_qlog(head: &[u8]) -> bool {
    foreign(head) == Some(QLOG)
}

fn text_of_others(text: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
    if text.starts_with('{') {
        return if has(&["\"qlog_version\""]) || has(&["\"qlog_format\""]) || has(&["\"file_schema\"", "qlog"])
        {
            Some(QLOG)
        } else if has(&["\"start\"", "\"connected\""]) || has(&["\"start\"", "\"intervals\"", "\"streams\""])
        {
            Some(of_acks!("a result of iperf3"))
        } else if has(&["\"metadata\"", "\"raw_values\""]) || has(&["\"DATA_FILENAME\""]) {
            Some(of_acks!("data of flent"))
        } else {
            None
        };
    }
    let lower = text.get(..20).unwrap_or(text).to_ascii_lowercase();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        return Some("a page (HTML): save the file itself");
    }
    if has(&["Recv-Q", "Send-Q"]) || has(&[" cwnd:", " rtt:"]) {
        return Some(of_acks!("what ss(8) prints"));
    }
    if has(&["tcp_probe:"]) || text.lines().next().is_some_and(is_tcp_probe) {
        return Some(of_acks!("a trace of tcp_probe"));
    }
    if has(&[" Flags [", " > "]) {
        return Some(of_acks!("what tcpdump prints"));
    }
    None
}

/// A line of /proc/net/tcpprobe: time, both ends, length, next and unacknowledged sequence number, window …
fn is_tcp_probe(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() >= 10 && words[1].contains(':') && words[2].contains(':') && words[4].starts_with("0x")
}

/// The same of what should be CSV.
pub fn not_csv(head: &[u8]) -> Option<&'static str> {
    let json = || matches!(head.trim_ascii_start().first(), Some(b'{' | b'[')).then_some("JSON, not CSV");
    match head {
        [] => Some("empty"),
        _ => foreign(head).or_else(json).or_else(|| head.contains(&0).then_some("binary data")),
    }
}

/// The same of what should be Parquet, which it is not.
pub fn not_parquet(head: &[u8]) -> &'static str {
    not_csv(head).unwrap_or("not Parquet; `onramp replay` and the page read acknowledgments as CSV")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_peoples_files_are_named_by_their_first_bytes() {
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (head, what) in [
            (&b"\x1f\x8b\x08\0\0"[..], "gzip"),
            (b"\x28\xb5\x2f\xfd\x04", "Zstandard"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"PK\x03\x04\x14", "ZIP"),
            (b"\xff\xfea\0t\0", "UTF-16"),
            (b"\xfe\xff\0a\0t", "UTF-16"),
            (b"a\0t\0_\0u\0", "UTF-16"),
            (b"\0a\0t\0_\0u", "UTF-16"),
            (b"\x7fELF\x02", "ELF"),
            (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "(pcap)"),
            (b"\x0a\x0d\x0d\x0a\x1c\0\0\0", "(pcapng)"),
            (b"\x1e{\"qlog_version\":\"0.3\"", "qlog"),
            (b"{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\"}", "qlog"),
            (b"{\"file_schema\":\"urn:ietf:params:qlog:file:contained\"}", "qlog"),
            (b"\xef\xbb\xbf{ \"qlog_format\": \"JSON\"}", "qlog"),
            (b"{\"start\":{\"connected\":[{\"socket\":5}]},\"intervals\":[]}", "iperf3"),
            (b"{\"metadata\": {}, \"raw_values\": {}}", "flent"),
            (b"State Recv-Q Send-Q Local Address:Port\nESTAB 0 0", "ss(8)"),
            (b"ESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n\t cubic rto:252 rtt:50.4/0 mss:1448 cwnd:144", "ss(8)"),
            (b"1.000 10.0.0.1:5001 10.0.0.2:80 1484 0x1c 0x1a 10 2147483647 32120 93", "tcp_probe"),
            (b"  iperf3-1 [000] 1.0: tcp_probe: family=AF_INET src=10.0.0.1:1", "tcp_probe"),
            (b"12:00:00.1 IP 10.0.0.1.1 > 10.0.0.2.2: Flags [S], seq 1", "tcpdump"),
            (b"<!DOCTYPE html><html>", "HTML"),
            (b"PAR1\x15\x04", "Parquet"),
            (&tar, "tar"),
        ] {
            assert!(foreign(head).is_some_and(|said| said.contains(what)), "{what}: {:?}", foreign(head));
            assert_eq!(is_capture(head), what.starts_with("(pcap"), "{what}");
        }
    }

    #[test]
    fn what_is_no_csv_is_named() {
        for (head, what) in [
            (&b""[..], "empty"),
            (b" {\"flows\": []}", "JSON"),
            (b"0,1\n\0\0\0", "binary"),
            (b"\x1f\x8b", "gzip"),
        ] {
            assert!(not_csv(head).is_some_and(|said| said.contains(what)), "{what}");
        }
        assert_eq!(not_csv(b"at_us,rtt_us\n"), None);
    }

    #[test]
    fn text_of_ours_is_of_no_other_kind() {
        for text in [
            "",
            "\u{feff}at_us,acknowledged_bytes\r\n1,2\r\n",
            "version = 1\nname = \"geo\"\n",
            "--to 203.0.113.0/24 --use search\n",
            "{\"schema\": 1, \"arms\": [], \"iperf3\": \"3.12\"}",
            "0,1000000\n1000,2000000\n",
            "1\n5\n7\n",
        ] {
            assert_eq!(foreign(text.as_bytes()), None, "{text}");
        }
    }
}
