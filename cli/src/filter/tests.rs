use super::*;

fn parse(text: &str) -> Result<Filter, String> {
    Filter::parse(&[text.to_owned()])
}

fn passes(filter: &str, local: &str, remote: &str) -> bool {
    let parsed = parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    parsed.matches(local.parse().unwrap(), remote.parse().unwrap())
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
        "dst 192.0.2.9:https",
        "dst 0.0.0.0/0",
        "dst 192.0.2/24",
        "src 10/8",
        "dst :443",
        "dst *:443",
        "dst *",
        "dst any",
        "dst all:443",
        "src default",
        "dst :*",
        "dst 192.0.2.9:*",
        "dst inet:192.0.2.9:443",
        "dport = :443",
        "dport=:443",
        "dport == 443",
        "dport eq :443",
        "dport = :https",
        "dport https",
        "dport = inet::443",
        "dport = :*",
        "dport = *",
        "src 10.0.0.0/8 and dst 192.0.2.8/31 and sport = :5000",
        "src 10.0.0.0/8 dport :443",
    ] {
        assert!(passes(filter, local, remote), "{filter}");
    }
    for filter in ["dst 192.0.3.0/24", "src 192.0.2.9", "dport = :80", "dst 192.0.2.8/32", "dst 192.0.2.8"] {
        assert!(!passes(filter, local, remote), "{filter}");
    }
    assert!(!passes("src 10.0.0.0/8 and dport = :80", local, remote));
    assert!(!passes("dst ::/0", local, remote));
}

#[test]
fn operators_and_their_other_names_are_those_of_ss() {
    let (local, remote) = ("10.1.2.3:5000", "192.0.2.9:443");
    for (operators, holds) in [
        (&["=", "==", "eq"][..], [true, false, false]),
        (&["!=", "ne", "neq"], [false, true, true]),
        (&["<", "lt"], [false, true, false]),
        (&["<=", "le", "leq"], [true, true, false]),
        (&[">", "gt"], [false, false, true]),
        (&[">=", "ge", "geq"], [true, false, true]),
    ] {
        for operator in operators {
            for (port, holds) in [443, 444, 442].into_iter().zip(holds) {
                let filter = format!("dport {operator} :{port}");
                assert_eq!(passes(&filter, local, remote), holds, "{filter}");
                assert_eq!(passes(&format!("not {filter}"), local, remote), !holds, "not {filter}");
                assert_eq!(passes(&format!("!({filter})"), local, remote), !holds, "!({filter})");
                assert_eq!(passes(&format!("! ! {filter}"), local, remote), holds, "! ! {filter}");
            }
        }
    }
    for or in ["or", "|", "||"] {
        assert!(passes(&format!("dport = :80 {or} sport = :5000"), local, remote));
        assert!(!passes(&format!("dport = :80 {or} sport = :5001"), local, remote));
    }
    for and in ["and", "&", "&&", ""] {
        assert!(passes(&format!("dport = :443 {and} sport = :5000"), local, remote));
        assert!(!passes(&format!("dport = :443 {and} sport = :5001"), local, remote));
    }
    assert!(passes("dst != 10.0.0.1", local, remote) && !passes("dst != 192.0.2.9", local, remote));
    assert!(passes("dport>=:443 sport<:5001", local, remote));
}

#[test]
fn and_and_or_are_read_from_left_to_right_as_ss_reads_them() {
    let (local, remote) = ("10.1.2.3:5000", "192.0.2.9:443");
    // iproute2 6.1 lists no socket for the first and one for the second.
    assert!(!passes("sport = :5000 or sport = :5000 and sport = :9", local, remote));
    assert!(passes("sport = :9 and sport = :9 or sport = :5000", local, remote));
    assert!(passes("sport = :5000 or ( sport = :5000 and sport = :9 )", local, remote));
    assert!(!passes("not sport = :5000 or sport = :9", local, remote));
    assert!(passes("not ( sport = :9 or sport = :8 ) dst 192.0.2.9", local, remote));
    assert!(passes("( dport = :ssh or sport = :ssh or dport = :https )", local, remote));
}

#[test]
fn every_example_of_the_manual_of_ss_is_a_filter_or_refused_with_its_word() {
    let (local, remote) = ("10.1.2.3:22", "193.233.7.9:443");
    assert!(passes("( dport = :ssh or sport = :ssh )", local, remote));
    assert!(!passes("( sport = :http or sport = :https ) dst 193.233.7/24", local, remote));
    assert!(passes("( sport = :http or dport = :https ) dst 193.233.7/24", local, remote));
    for (filter, word) in [
        ("state established ( dport = :ssh or sport = :ssh )", "\"state\""),
        ("state fin-wait-1 ( sport = :http or sport = :https ) dst 193.233.7/24", "\"state\""),
        ("exclude listening", "\"exclude\""),
        ("src unix:/tmp/.X11-unix/*", "\"unix\""),
        ("dev eth0", "\"dev\""),
        ("dport = :443 and fwmark = 0x01/0x03", "\"fwmark\""),
        ("cgroup /sys/fs/cgroup/unified/a", "\"cgroup\""),
        ("autobound", "\"autobound\""),
        ("src vsock:2:5", "\"vsock\""),
    ] {
        let error = parse(filter).unwrap_err();
        assert!(error.contains(word), "{filter}: {error}");
    }
}

#[test]
fn version_six_needs_brackets_only_with_a_port() {
    let (local, remote) = ("[2001:db8::1]:5000", "[2001:db8:1::2]:443");
    assert!(passes("dst 2001:db8::/32", local, remote));
    assert!(passes("dst [2001:db8::/32]:443", local, remote));
    assert!(passes("dst inet6:[2001:db8::/32]:443", local, remote));
    assert!(passes("dst 2001:db8:1::2 and src [2001:db8::1]:5000", local, remote));
    assert!(!passes("dst 2001:db8:2::/48", local, remote));
    assert!(!passes("dst 0.0.0.0/0", local, remote));
}

#[test]
fn a_zone_belongs_to_a_link_local_address() {
    let (local, remote) = ("[fe80::2]:5000", "[fe80::1]:443");
    for filter in [
        "dst fe80::1%lo",
        "dst [fe80::1%lo]:443",
        "dst [fe80::1]%lo:443",
        "dst [fe80::1]%lo",
        "dst fe80::1%1",
    ] {
        assert!(passes(filter, local, remote), "{filter}");
    }
    for filter in ["dst fe80::1%", "dst 10.0.0.1%lo", "dst 2001:db8::1%lo", "dst fe80::1%lo:443"] {
        assert!(parse(filter).unwrap_err().contains('%'), "{filter}");
    }
}

#[test]
fn a_zone_that_is_no_interface_is_refused_by_its_name() {
    for zone in ["nosuch", "4294967295", "a-name-longer-than-any-interface"] {
        for filter in [format!("dst fe80::1%{zone}"), format!("not src [fe80::1]%{zone}:443")] {
            assert!(parse(&filter).unwrap_err().contains(&format!("{zone:?}")), "{filter}");
        }
    }
}

#[test]
fn a_family_holds_for_the_whole_filter_as_in_ss() {
    let four = ("10.1.2.3:5000", "192.0.2.9:443");
    let six = ("[2001:db8::1]:5000", "[2001:db8:1::2]:443");
    // An IPv4-mapped address is one of IPv4.
    let mapped = ("[::ffff:10.1.2.3]:5000", "[::ffff:192.0.2.9]:443");
    for (filter, of_four, of_six) in [
        ("dst inet:*", true, false),
        ("dst inet6:*", false, true),
        ("dst inet:", true, false),
        ("src inet6:any", false, true),
        ("dst inet::443", true, false),
        ("dst inet6:*:443", false, true),
        ("dport = inet::443", true, false),
        ("dport = inet6::443", false, true),
        ("dport != inet6::443", false, false),
        ("dport != inet6::80", false, true),
        // Whatever stands before it, and behind it.
        ("not dport = inet6::80", false, true),
        ("not dst inet:10.0.0.1", true, false),
        ("dport = inet6::80 or dport = :443", false, true),
        ("dport = :443 or dst inet:10.0.0.1", true, false),
        ("dst 0.0.0.0/0", true, false),
        ("dst ::/0", false, true),
        ("dst ::ffff:0:0/96", true, false),
        ("dst [::ffff:192.0.2.9]:443", true, false),
        ("not dst ::/0", true, false),
    ] {
        for ((local, remote), wanted) in [(four, of_four), (mapped, of_four), (six, of_six)] {
            assert_eq!(passes(filter, local, remote), wanted, "{filter} {remote}");
        }
    }
    let kernel = |text: &str| parse(text).unwrap().in_kernel().remote;
    assert_eq!(kernel("dport > inet6::80"), Some(("::".parse().unwrap(), 0)));
    for (filter, word) in [
        ("dst inet:10.0.0.1 or dst inet6:[::1]", "\"inet6:[::1]\""),
        ("dport = inet::80 or sport = inet6::80", "\"inet6::80\""),
        ("dst inet6:[::1] or dst 127.0.0.1", "\"127.0.0.1\""),
    ] {
        let error = parse(filter).unwrap_err();
        assert!(error.contains(word), "{filter}: {error}");
    }
}

#[test]
fn mapped_addresses_are_version_four() {
    assert!(passes("dst 192.0.2.0/24", "[::ffff:10.0.0.1]:1", "[::ffff:192.0.2.9]:443"));
}

#[test]
fn the_kernel_checks_what_must_hold_and_no_more() {
    let kernel = |text: &str| parse(text).unwrap().in_kernel();
    let wanted = telemetry::Filter {
        remote: Some(("192.0.2.0".parse().unwrap(), 24)),
        remote_port: Some(443),
        local_port: Some(5000),
    };
    for filter in [
        "src 10.0.0.0/8:5000 and dst 192.0.2.0/24 and dst 192.0.2.9 and dport = :443",
        "sport = 5000 ( dst 192.0.2.0/24 and ( dst :443 ) ) dport != :80",
        "dst :80 or src :8080 and dport = :443 and dst 192.0.2.0/24 and sport = :5000",
    ] {
        assert_eq!(kernel(filter), wanted, "{filter}");
    }
    let nothing = telemetry::Filter::default();
    for filter in
        ["src 10.0.0.0/8", "not dport = :443", "dport = :443 or sport = :443", "dport >= :443", "dport *"]
    {
        assert_eq!(kernel(filter), nothing, "{filter}");
    }
}

#[test]
fn words_changed_anywhere_are_a_filter_or_refused_with_the_word() {
    let valid = [
        "src 10.0.0.0/8:5000 and dst 192.0.2.0/24 and dport = :443",
        "dst [2001:db8::/32]:443 sport == 22",
        "src *:80 and dst 2001:db8::1",
        "not ( dport >= :443 or sport lt 22 ) && ! dst fe80::1%lo",
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
        ("dst 10.0.0.0.0/8", "not an address"),
        ("dst inet:::1", "not an address of inet"),
        ("dst inet6:10.0.0.1", "not an address of inet6"),
        ("dport = :no-such-service", "not a port"),
        ("dport = :65536", "not a port"),
        ("dport = :+443", "\"+443\" is not a port"),
        ("dport = :0x1bb", "\"0x1bb\" is not a port"),
        ("dport = :-1", "\"-1\" is not a port"),
        ("dport = :", "\"\" is not a port"),
        ("dport >= *", "\"dport\""),
        ("dport = = :443", "\"=\" stands where"),
        ("dst 10.0.0.1:x", "not a port"),
        ("dst >= 10.0.0.1", "\">=\" compares ports"),
        ("and dst 10.0.0.1", "between two"),
        ("dst 10.0.0.1 and", "\"and\" at the end"),
        ("dst 10.0.0.1 or or dst 10.0.0.2", "\"or\" stands between two"),
        ("not", "\"not\" at the end"),
        ("dst not", "\"dst\" needs a value before \"not\""),
        ("( dst 10.0.0.1", "\"(\" is not closed"),
        ("dst 10.0.0.1 )", "\")\" closes"),
        ("( )", "\")\" needs a condition"),
        ("cwnd 10", "\"cwnd\" is not understood"),
        ("dst :", "not a port"),
        ("dst [2001:db8::1]443", "has \"443\" behind the bracket: write [PREFIX]:PORT"),
        (&"! ".repeat(100_000), "deep"),
        (&"(".repeat(100_000), "deep"),
    ] {
        let error = parse(filter).unwrap_err();
        assert!(error.contains(said), "{}: {error}", &filter[..filter.len().min(80)]);
    }
    assert!(parse(&"dst 10.0.0.1 or ".repeat(20_000)).is_err());
    assert!(passes(&"dst 10.0.0.1 ".repeat(20_000), "10.0.0.2:1", "10.0.0.1:1"));
}
