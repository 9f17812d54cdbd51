// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The emulated link against its description, with real packets.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod measure;
mod probe;

use measure::calibrate;

/// One test, because links measured side by side disturb each other. No faster ones: the virtual processor of a guest
/// takes longer over a packet than they do.
#[test]
#[ignore = "in a guest: make test"]
fn links_are_as_described() {
    for link in [common::link(10_000_000, 25_000, 50), common::link(20_000_000, 300_000, 300)] {
        let result = calibrate(&link).unwrap();
        println!("{result}");
        assert!(result.holds(), "{result}");
        assert_eq!((result.health.tun_drops, result.health.write_failures), (0, 0));
    }
}
