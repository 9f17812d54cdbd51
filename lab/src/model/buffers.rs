// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Socket buffers in the plane of capacity and round-trip time (Ataei Kachooei et al. 2022, figure 1; Peters et al. 2021).
//!
//! A connection can fill a path only if its buffers hold the path's bandwidth-delay product. Figure 1 compares the
//! product with the whole buffer. The kernel lets half of it carry data (Peters et al. 2021: "TCP only advertises up to half of the
//! buffer size"), so [`Limit::usable_bytes`] is the limit that a connection meets.

use serde::Serialize;

use super::{RATES_BPS, RTTS_SECONDS};
use crate::figure::{Axis, Corner, Dash, Figure, Line, Mark, Panel, Region};
use crate::link::RangeError;
use crate::link::spec::within;

/// Linux's default: the smaller of the maxima of `tcp_wmem` (4194304) and `tcp_rmem` (6291456).
pub const DEFAULT_BYTES: u64 = 4_194_304;
/// What Ataei Kachooei et al. 2022 and Peters et al. 2021 recommend for both.
pub const RECOMMENDED_BYTES: u64 = 26_214_400;
/// Buffer bytes per byte of data.
const BYTES_PER_DATA_BYTE: u64 = 2;

/// A maximum for socket buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes of buffer.
    pub bytes: u64,
}

impl Limit {
    /// Bytes of it that carry data.
    pub fn usable_bytes(self) -> u64 {
        self.bytes / BYTES_PER_DATA_BYTE
    }
}

/// A path's capacity and round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Capacity, bit/s.
    pub rate_bps: u64,
    /// Round-trip time, microseconds.
    pub rtt_us: u64,
}

impl Path {
    /// Checks both against [`RATES_BPS`] and [`RTTS_SECONDS`].
    ///
    /// # Errors
    /// [`RangeError`] naming the one that is out of range.
    pub fn new(rate_bps: u64, rtt_us: u64) -> Result<Self, RangeError> {
        within("rate_bps".into(), rate_bps, RATES_BPS)?;
        within("rtt_seconds".into(), rtt_us as f64 / 1e6, RTTS_SECONDS)?;
        Ok(Self { rate_bps, rtt_us })
    }

    /// Bandwidth-delay product, bytes, rounded up.
    pub fn bdp_bytes(self) -> u64 {
        (u128::from(self.rate_bps) * u128::from(self.rtt_us)).div_ceil(8_000_000) as u64
    }

    /// The smallest buffer whose usable part holds the product, bytes.
    pub fn required_bytes(self) -> u64 {
        self.bdp_bytes() * BYTES_PER_DATA_BYTE
    }
}

/// Paths of one access technology: a rectangle of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Technology {
    /// Its name.
    pub name: &'static str,
    /// Where its capacities and times come from.
    pub source: &'static str,
    /// The path with the smallest product.
    pub smallest: Path,
    /// The path with the largest product.
    pub largest: Path,
    /// Whether Ataei Kachooei et al. 2022 shows it inside the default limit. All are inside the recommended one.
    pub inside_default: bool,
}

/// The technologies that Ataei Kachooei et al. 2022 name. It gives no figures for 4G and 5G.
pub const TECHNOLOGIES: [Technology; 4] = [
    Technology {
        name: "4G",
        source: "chosen: 10 to 100 Mb/s, 30 to 70 ms",
        smallest: Path { rate_bps: 10_000_000, rtt_us: 30_000 },
        largest: Path { rate_bps: 100_000_000, rtt_us: 70_000 },
        inside_default: true,
    },
    Technology {
        name: "LEO",
        source: "Ataei Kachooei et al. 2022: 100 Mb/s at 20 ms to 350 Mb/s at 60 ms (figure 6)",
        smallest: Path { rate_bps: 100_000_000, rtt_us: 20_000 },
        largest: Path { rate_bps: 350_000_000, rtt_us: 60_000 },
        inside_default: true,
    },
    Technology {
        name: "5G",
        source: "chosen: 0.2 to 1 Gb/s, 20 to 60 ms",
        smallest: Path { rate_bps: 200_000_000, rtt_us: 20_000 },
        largest: Path { rate_bps: 1_000_000_000, rtt_us: 60_000 },
        inside_default: false,
    },
    Technology {
        name: "GEO",
        source: "Chung et al. 2024: 144 Mb/s; Ataei Kachooei et al. 2022: 150 Mb/s; both 600 ms",
        smallest: Path { rate_bps: 144_000_000, rtt_us: 600_000 },
        largest: Path { rate_bps: 150_000_000, rtt_us: 600_000 },
        inside_default: false,
    },
];

/// Where a technology lies against a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// All of its paths can be filled.
    Inside,
    /// Its fastest and longest paths cannot.
    Across,
    /// None can.
    Outside,
}

impl Technology {
    /// Where it lies if `bytes` may be in flight.
    pub fn place(&self, bytes: u64) -> Place {
        if self.largest.bdp_bytes() <= bytes {
            Place::Inside
        } else if self.smallest.bdp_bytes() <= bytes {
            Place::Across
        } else {
            Place::Outside
        }
    }
}

/// Figure 1 with these limits, and a path of the caller's.
pub fn figure(default: Limit, recommended: Limit, path: Option<Path>) -> Figure {
    let mut rates: (f64, f64) = (1e6, 1e10);
    let mut times: (f64, f64) = (1.0, 2_000.0);
    let marks = path.map(|path| {
        let (rate, time) = (path.rate_bps as f64, path.rtt_us as f64 / 1e3);
        rates = (rates.0.min(rate / 2.0), rates.1.max(rate * 2.0));
        times = (times.0.min(time / 2.0), times.1.max(time * 2.0));
        Mark { name: "this path".into(), at: (rate / 1e6, time), colour: 6 }
    });
    // Capacity times round-trip time is constant along a limit.
    let line = |name: &str, bytes: u64, colour, dash| {
        let millibits = bytes as f64 * 8e3;
        let from = rates.0.max(millibits / times.1);
        let to = rates.1.min(millibits / times.0);
        let points = if from < to { vec![from, to] } else { Vec::new() };
        Line {
            name: format!("{name}: {bytes} bytes"),
            points: points.into_iter().map(|rate| (rate / 1e6, millibits / rate)).collect(),
            colour,
            dash,
        }
    };
    let both = |name: &str, limit: Limit, colour| {
        [
            line(&format!("{name}, whole buffer"), limit.bytes, colour, Dash::Long),
            line(&format!("{name}, usable half"), limit.usable_bytes(), colour, Dash::Short),
        ]
    };
    let regions = TECHNOLOGIES.iter().zip(2..).map(|(technology, colour)| Region {
        name: technology.name.into(),
        x: (technology.smallest.rate_bps as f64 / 1e6, technology.largest.rate_bps as f64 / 1e6),
        y: (technology.smallest.rtt_us as f64 / 1e3, technology.largest.rtt_us as f64 / 1e3),
        colour,
    });
    Figure {
        title: "What socket buffers can fill (Ataei Kachooei et al. 2022, figure 1)".into(),
        panels: vec![Panel {
            title: String::new(),
            x: Axis { label: "capacity, Mb/s".into(), from: rates.0 / 1e6, to: rates.1 / 1e6, log: true },
            y: Axis { label: "round-trip time, ms".into(), from: times.0, to: times.1, log: true },
            lines: both("default", default, 0)
                .into_iter()
                .chain(both("recommended", recommended, 1))
                .collect(),
            regions: regions.collect(),
            marks: marks.into_iter().collect(),
            intervals: Vec::new(),
            legend: Corner::LowerLeft,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_technology_lies_where_000_shows_it() {
        for technology in TECHNOLOGIES {
            let inside = technology.place(DEFAULT_BYTES) == Place::Inside;
            assert_eq!(inside, technology.inside_default, "{}", technology.name);
            assert_eq!(technology.place(RECOMMENDED_BYTES), Place::Inside, "{}", technology.name);
        }
    }

    #[test]
    fn a_larger_default_makes_a_claim_fail() {
        let geo = TECHNOLOGIES[3];
        assert_eq!(geo.place(geo.largest.bdp_bytes()), Place::Inside);
        assert_eq!(geo.place(geo.largest.bdp_bytes() - 1), Place::Across);
        assert_eq!(geo.place(geo.smallest.bdp_bytes() - 1), Place::Outside);
    }

    #[test]
    fn the_geo_path_of_000_needs_what_it_says_and_the_recommendation_is_enough_in_its_usable_half() {
        let path = Path::new(150_000_000, 600_000).unwrap();
        assert_eq!(path.bdp_bytes(), 11_250_000);
        assert_eq!(path.required_bytes(), 22_500_000);
        assert!(Limit { bytes: RECOMMENDED_BYTES }.usable_bytes() >= path.bdp_bytes());
        assert!(DEFAULT_BYTES < path.bdp_bytes());
    }

    #[test]
    fn the_fastest_leo_paths_are_beyond_the_usable_half_of_the_default() {
        let usable = Limit { bytes: DEFAULT_BYTES }.usable_bytes();
        assert_eq!(TECHNOLOGIES[1].place(usable), Place::Across);
        assert_eq!(TECHNOLOGIES[0].place(usable), Place::Inside);
    }

    #[test]
    fn products_are_rounded_up_and_paths_have_limits() {
        assert_eq!(Path::new(1_000, 1).unwrap().bdp_bytes(), 1);
        assert_eq!(Path::new(100_000_000_000, 20_000_000).unwrap().bdp_bytes(), 250_000_000_000);
        for (rate, time, key) in [
            (999, 1, "rate_bps = 999"),
            (100_000_000_001, 1, "rate_bps"),
            (1_000, 0, "rtt_seconds = 0"),
            (1_000, 20_000_001, "rtt_seconds = 20.000001"),
        ] {
            assert!(Path::new(rate, time).unwrap_err().to_string().starts_with(key));
        }
    }

    #[test]
    fn limits_are_drawn_along_a_constant_product_within_the_plane() {
        for path in [None, Some(Path::new(1_000, 20_000_000).unwrap())] {
            let figure = figure(Limit { bytes: DEFAULT_BYTES }, Limit { bytes: RECOMMENDED_BYTES }, path);
            let panel = &figure.panels[0];
            let bytes = [4_194_304.0, 2_097_152.0, 26_214_400.0, 13_107_200.0];
            for (line, bytes) in panel.lines.iter().zip(bytes) {
                assert_eq!(line.points.len(), 2);
                for (rate, time) in &line.points {
                    assert!((rate * time * 125.0 / bytes - 1.0).abs() < 1e-9, "{rate} {time}");
                    assert!(*rate >= panel.x.from * (1.0 - 1e-9) && *rate <= panel.x.to * (1.0 + 1e-9));
                    assert!(*time >= panel.y.from * (1.0 - 1e-9) && *time <= panel.y.to * (1.0 + 1e-9));
                }
            }
            for mark in &panel.marks {
                assert!(mark.at.0 > panel.x.from && mark.at.1 < panel.y.to);
            }
        }
    }
}
