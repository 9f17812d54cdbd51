// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The time that hosts take: that of one processor at 4 GHz, which a guest has for both hosts, the link between them and the
//! applications. Nanoseconds.
//!
//! The link's thread comes before the applications: while packets are due, neither does the sink read nor the source write.
//! So of packets that arrive together, all but the first acknowledgments wait until the sink has read all of them, and
//! what one read acknowledges is more than two segments.
//!
//! Derived: with these times packets are handed over as late as in guests with Linux 6.12 (99 % within 130 µs over `lte`, 40
//! over `wifi`, 400 over `5g`), and a round trip over `leo-handover` takes the 37 µs above 30 ms that it takes there.

use crate::link::Nanos;

/// Until the link's thread runs after it slept.
pub const WAKE: Nanos = 1_500;
/// The link reads a burst, for each segment of it, and an acknowledgment.
pub const BURST: Nanos = 1_000;
/// See [`BURST`].
pub const SEGMENT: Nanos = 100;
/// See [`BURST`].
pub const ACK: Nanos = 800;
/// From when a packet is handed over to when TCP looks at it.
pub const HAND_OVER: Nanos = 500;
/// TCP takes data, and acknowledges them.
pub const TAKE_DATA: Nanos = 1_200;
/// TCP takes an acknowledgment, and sends what it allows.
pub const TAKE_ACK: Nanos = 1_500;
/// The sink reads, however much there is.
pub const READ: Nanos = 3_000;
/// The source writes a segment.
pub const WRITE: Nanos = 1_200;
/// TCP takes a packet that opens a connection, or the word that data follow.
pub const TAKE_OPENING: Nanos = 4_000;
/// From when the sink's first connection stands to when it has asked for the second, for the data: 29.4 to 31.2 µs in guests
/// (`lte`, `geo`). Where a link sends in aggregates, the second packet so waits for the next.
pub const CONNECT: Nanos = 29_000;
