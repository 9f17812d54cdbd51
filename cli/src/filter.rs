//! Filters in the syntax of ss(8): `src|dst PREFIX[:PORT]`, `sport|dport = :PORT`, `and`.

use std::net::{IpAddr, SocketAddr};

use onramp_loader::telemetry;
use onramp_net::Prefix;

/// Conditions that all must hold; none: everything passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter(Vec<Condition>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    side: Side,
    prefix: Option<Prefix>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Local,
    Remote,
}

impl Filter {
    /// Reads the words of a filter; how they were split over arguments does not matter.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let text = words.join(" ").replace('=', " = ");
        let mut words = text.split_whitespace().peekable();
        let mut conditions = Vec::new();
        while let Some(word) = words.next() {
            let missing = || format!("{word:?} at the end of the filter needs a value");
            let (side, port_only) = match word {
                "src" => (Side::Local, false),
                "dst" => (Side::Remote, false),
                "sport" => (Side::Local, true),
                "dport" => (Side::Remote, true),
                "and" if !conditions.is_empty() && words.peek().is_some() => continue,
                "and" => return Err("\"and\" stands between two conditions".into()),
                _ => return Err(unknown(word)),
            };
            // `=`, `==` and `eq` may stand before the value, as in ss.
            while words.next_if(|word| *word == "=" || *word == "eq").is_some() {}
            let value = words.next().ok_or_else(missing)?;
            let condition = if port_only {
                let digits = value.strip_prefix(':').unwrap_or(value);
                Condition { side, prefix: None, port: Some(port(digits)?) }
            } else {
                host(side, value)?
            };
            conditions.push(condition);
        }
        Ok(Self(conditions))
    }

    /// Whether a connection between these passes.
    pub fn matches(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.0.iter().all(|condition| {
            let end = if condition.side == Side::Local { local } else { remote };
            condition.port.is_none_or(|port| port == end.port())
                && condition.prefix.is_none_or(|prefix| prefix.contains(end.ip()))
        })
    }

    /// The part of it that the kernel can check: what passes here passes there too.
    pub fn in_kernel(&self) -> telemetry::Filter {
        let remote = || self.0.iter().filter(|condition| condition.side == Side::Remote);
        let local = || self.0.iter().filter(|condition| condition.side == Side::Local);
        telemetry::Filter {
            remote: remote().find_map(|condition| condition.prefix).map(in_kernel),
            remote_port: remote().find_map(|condition| condition.port),
            local_port: local().find_map(|condition| condition.port),
        }
    }
}

fn in_kernel(prefix: Prefix) -> (IpAddr, u8) {
    (prefix.address(), prefix.length() as u8)
}

/// `PREFIX`, `PREFIX:PORT`, `:PORT`; IPv6 with a port in brackets, `*` for any host.
fn host(side: Side, text: &str) -> Result<Condition, String> {
    let (host, port_text) = split_port(text)?;
    let prefix = match host {
        "" | "*" => None,
        host => Some(host.parse()?),
    };
    let port = port_text.filter(|text| *text != "*").map(port).transpose()?;
    if prefix.is_none() && host.is_empty() && port.is_none() {
        return Err(format!("{text:?} names neither a host nor a port"));
    }
    Ok(Condition { side, prefix, port })
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = rest.strip_prefix(':');
        return if port.is_some() || rest.is_empty() {
            Ok((host, port))
        } else {
            Err(format!("{text:?} has {rest:?} behind the bracket: write [PREFIX]:PORT"))
        };
    }
    Ok(match text.split_once(':') {
        // More than one colon without brackets: IPv6 without a port.
        Some((_, rest)) if rest.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    })
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is not a port: write a number from 0 to 65535, such as :443"))
}

fn unknown(word: &str) -> String {
    format!(
        "{word:?} is not understood in a filter: write src or dst with a prefix, sport or dport with = :PORT, and \"and\" between them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Filter, String> {
        Filter::parse(&[text.to_owned()])
    }

    fn passes(filter: &str, local: &str, remote: &str) -> bool {
        parse(filter).unwrap().matches(local.parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn prefixes_and_ports_are_compared_on_their_side() {
        let (local, remote) = ("10.1.2.3:5000", "192.0.2.9:443");
        for filter in [
            "",
            "dst 192.0.2.0/24",
            "dst 192.0.2.9",
            "dst 192.0.2.9:443",
            "dst = 192.0.2.9",
            "dst 0.0.0.0/0",
            "dst :443",
            "dst *:443",
            "dport = :443",
            "dport=:443",
            "dport == 443",
            "dport eq :443",
            "src 10.0.0.0/8 and dst 192.0.2.8/31 and sport = :5000",
            "src 10.0.0.0/8 dport :443",
        ] {
            assert!(passes(filter, local, remote), "{filter}");
        }
        for filter in ["dst 192.0.3.0/24", "src 192.0.2.9", "dport = :80", "dst 192.0.2.8/32"] {
            assert!(!passes(filter, local, remote), "{filter}");
        }
        assert!(!passes("src 10.0.0.0/8 and dport = :80", local, remote));
        assert!(!passes("dst ::/0", local, remote));
    }

    #[test]
    fn version_six_needs_brackets_only_with_a_port() {
        let (local, remote) = ("[2001:db8::1]:5000", "[2001:db8:1::2]:443");
        assert!(passes("dst 2001:db8::/32", local, remote));
        assert!(passes("dst [2001:db8::/32]:443", local, remote));
        assert!(passes("dst 2001:db8:1::2 and src [2001:db8::1]:5000", local, remote));
        assert!(!passes("dst 2001:db8:2::/48", local, remote));
        assert!(!passes("dst 0.0.0.0/0", local, remote));
    }

    #[test]
    fn mapped_addresses_are_version_four() {
        assert!(passes("dst 192.0.2.0/24", "[::ffff:10.0.0.1]:1", "[::ffff:192.0.2.9]:443"));
    }

    #[test]
    fn the_kernel_checks_the_first_remote_prefix_and_the_ports() {
        let filter =
            parse("src 10.0.0.0/8:5000 and dst 192.0.2.0/24 and dst 192.0.2.9 and dport = :443").unwrap();
        let wanted = telemetry::Filter {
            remote: Some(("192.0.2.0".parse().unwrap(), 24)),
            remote_port: Some(443),
            local_port: Some(5000),
        };
        assert_eq!(filter.in_kernel(), wanted);
        assert_eq!(parse("src 10.0.0.0/8").unwrap().in_kernel(), telemetry::Filter::default());
    }

    #[test]
    fn words_changed_anywhere_are_a_filter_or_refused_with_the_word() {
        let valid = [
            "src 10.0.0.0/8:5000 and dst 192.0.2.0/24 and dport = :443",
            "dst [2001:db8::/32]:443 sport == 22",
            "src *:80 and dst 2001:db8::1",
        ];
        let accepted = std::cell::Cell::new(0);
        let (local, remote) = ("10.1.2.3:5000".parse().unwrap(), "192.0.2.9:443".parse().unwrap());
        onramp_mutation::check(1, 20_000, onramp_mutation::text(&valid), |text| {
            match parse(&text) {
                Ok(filter) => {
                    accepted.set(accepted.get() + 1);
                    // What passes, passes the kernel's part.
                    let kernel = filter.in_kernel();
                    if filter.matches(local, remote) {
                        assert!(kernel.remote_port.is_none_or(|port| port == 443), "{text:?}");
                        assert!(kernel.local_port.is_none_or(|port| port == 5000), "{text:?}");
                    }
                }
                Err(error) => assert!(error.contains('"'), "{text:?}: {error}"),
            }
            Ok(())
        });
        assert!(accepted.get() > 1_000, "{}", accepted.get());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (filter, said) in [
            ("dst", "needs a value"),
            ("dst 10.0.0.0/33", "0 to 32"),
            ("dst ::/129", "0 to 128"),
            ("dst example.org", "not an address"),
            ("dport = :http", "not a port"),
            ("dport = :65536", "not a port"),
            ("dst 10.0.0.1:x", "not a port"),
            ("and dst 10.0.0.1", "between two"),
            ("dst 10.0.0.1 and", "between two"),
            ("cwnd 10", "\"cwnd\" is not understood"),
            ("dst 10.0.0.1 or dst 10.0.0.2", "\"or\" is not understood"),
            ("dst :", "not a port"),
            ("dst [2001:db8::1]443", "has \"443\" behind the bracket: write [PREFIX]:PORT"),
        ] {
            let error = parse(filter).unwrap_err();
            assert!(error.contains(said), "{filter}: {error}");
        }
    }
}
