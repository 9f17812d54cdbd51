//! `onramp-lab model buffers`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onramp_files::bounded;
use onramp_lab::model::buffers::{
    self, DEFAULT_BYTES, Limit, Path, Place, RECOMMENDED_BYTES, TECHNOLOGIES, Technology,
};
use serde::Serialize;

use super::usage;
use crate::drawn;
use crate::failure::{FAILURE, Usage};
use crate::output::Output;
use crate::table::Table;
use crate::units;

/// Limits for --default-bytes and --recommended-bytes: the kernel's own least, and the largest value of the sysctls.
const BYTES: std::ops::RangeInclusive<u64> = 4_096..=2_147_483_647;

/// Which paths fit into socket buffers (Ataei Kachooei et al. 2022 and Peters et al. 2021; figure 1 of Ataei Kachooei et al. 2022)
///
/// For each technology it says whether its paths are inside the default and the recommended limit, and whether that is
/// what Ataei Kachooei et al. 2022 shows; exits 1 if it is not. Figure 1 takes the whole buffer; the kernel lets half of it carry data, which
/// the columns USABLE HALF use. With --rate and --rtt also what that path needs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab model buffers -o buffers.svg
  onramp lab model buffers --rate 150mbit --rtt 600ms
  onramp lab model buffers --default-bytes 16777216 --json")]
pub(super) struct Buffers {
    /// Capacity of a path: bit, kbit, mbit or gbit per second
    #[arg(long, value_name = "RATE", value_parser = units::rate, requires = "rtt")]
    rate: Option<u64>,
    /// Round-trip time of that path: us, ms or s
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "rate")]
    rtt: Option<Duration>,
    /// The default: the smaller maximum of net.ipv4.tcp_wmem and net.ipv4.tcp_rmem
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, default_value_t = DEFAULT_BYTES)]
    default_bytes: u64,
    /// The recommended maximum of both
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, default_value_t = RECOMMENDED_BYTES)]
    recommended_bytes: u64,
    /// Draw figure 1 to this file, SVG; - is standard output, in place of the report
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct BuffersReport<'a> {
    default: Bytes,
    recommended: Bytes,
    technologies: Vec<BufferRow>,
    /// Of `claims`, those that do not hold.
    claims_failed: usize,
    claims: Vec<Claim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<&'a PathBuf>,
}

#[derive(Serialize)]
struct Bytes {
    bytes: u64,
    usable_bytes: u64,
}

#[derive(Serialize)]
struct BufferRow {
    #[serde(flatten)]
    technology: Technology,
    largest_bdp_bytes: u64,
    default: Place,
    default_usable: Place,
    recommended: Place,
    recommended_usable: Place,
}

/// Something that Ataei Kachooei et al. 2022 say of figure 1.
#[derive(Serialize)]
struct Claim {
    technology: &'static str,
    limit: &'static str,
    claimed_inside: bool,
    holds: bool,
}

#[derive(Serialize)]
struct PathReport {
    #[serde(flatten)]
    path: Path,
    bdp_bytes: u64,
    /// So that half of it holds the product.
    required_bytes: u64,
    /// What `onramp doctor` recommends.
    recommended_bytes: u64,
    /// With the usable halves.
    fits_default: bool,
    fits_recommended: bool,
}

impl Buffers {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let limit = |name: &str, bytes: u64| match BYTES.contains(&bytes) {
            true => Ok(Limit { bytes }),
            false => Err(Usage::error(format!(
                "--{name} {bytes} is out of range: expected {} to {} bytes, as the sysctls take",
                BYTES.start(),
                BYTES.end()
            ))),
        };
        let default = limit("default-bytes", self.default_bytes)?;
        let recommended = limit("recommended-bytes", self.recommended_bytes)?;
        if default.bytes > recommended.bytes {
            return Err(Usage::error(format!(
                "--default-bytes {} is above --recommended-bytes {}: give the smaller one first",
                default.bytes, recommended.bytes
            )));
        }
        let path = self.path()?;
        if let Some(file) = &self.output {
            drawn::write(file, &buffers::figure(default, recommended, path))?;
        }
        let claims = claims(default, recommended);
        let report = BuffersReport {
            default: Bytes { bytes: default.bytes, usable_bytes: default.usable_bytes() },
            recommended: Bytes { bytes: recommended.bytes, usable_bytes: recommended.usable_bytes() },
            technologies: TECHNOLOGIES.iter().map(|one| row(one, default, recommended)).collect(),
            claims_failed: claims.iter().filter(|claim| !claim.holds).count(),
            claims,
            path: path.map(|path| evaluate(path, default, recommended)),
            figure: self.output.as_ref(),
        };
        if !self.output.as_deref().is_some_and(bounded::is_standard) {
            output.data(&report, || text(&report, output))?;
        }
        Ok(if report.claims_failed == 0 { 0 } else { FAILURE })
    }

    fn path(&self) -> anyhow::Result<Option<Path>> {
        let (Some(rate_bps), Some(rtt)) = (self.rate, self.rtt) else { return Ok(None) };
        let rtt_us = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
        Path::new(rate_bps, rtt_us).map(Some).map_err(|error| usage(&error))
    }
}

fn row(technology: &Technology, default: Limit, recommended: Limit) -> BufferRow {
    BufferRow {
        technology: *technology,
        largest_bdp_bytes: technology.largest.bdp_bytes(),
        default: technology.place(default.bytes),
        default_usable: technology.place(default.usable_bytes()),
        recommended: technology.place(recommended.bytes),
        recommended_usable: technology.place(recommended.usable_bytes()),
    }
}

fn claims(default: Limit, recommended: Limit) -> Vec<Claim> {
    let claim = |technology: &Technology, limit, bytes, claimed_inside| Claim {
        technology: technology.name,
        limit,
        claimed_inside,
        holds: (technology.place(bytes) == Place::Inside) == claimed_inside,
    };
    let both = |one: &Technology| {
        [
            claim(one, "default", default.bytes, one.inside_default),
            claim(one, "recommended", recommended.bytes, true),
        ]
    };
    TECHNOLOGIES.iter().flat_map(both).collect()
}

fn evaluate(path: Path, default: Limit, recommended: Limit) -> PathReport {
    let Path { rate_bps, rtt_us } = path;
    PathReport {
        path,
        bdp_bytes: path.bdp_bytes(),
        required_bytes: path.required_bytes(),
        recommended_bytes: onramp_loader::Path { rate_bps, rtt_us }.recommended_bytes(),
        fits_default: default.usable_bytes() >= path.bdp_bytes(),
        fits_recommended: recommended.usable_bytes() >= path.bdp_bytes(),
    }
}

fn place(place: Place) -> String {
    match place {
        Place::Inside => "inside",
        Place::Across => "across",
        Place::Outside => "outside",
    }
    .to_owned()
}

fn text(report: &BuffersReport<'_>, output: &Output) -> String {
    let mut table = Table::new([
        "",
        ">HOLDS",
        "DEFAULT",
        "USABLE HALF",
        "RECOMMENDED",
        "USABLE HALF",
        "PAPER SAYS",
        "SOURCE",
    ]);
    for row in &report.technologies {
        let failed: Vec<_> = report
            .claims
            .iter()
            .filter(|claim| claim.technology == row.technology.name && !claim.holds)
            .map(|claim| claim.limit)
            .collect();
        table.push([
            row.technology.name.to_owned(),
            units::show_bytes(row.largest_bdp_bytes),
            place(row.default),
            place(row.default_usable),
            place(row.recommended),
            place(row.recommended_usable),
            if failed.is_empty() { "so".to_owned() } else { format!("not so: {}", failed.join(", ")) },
            row.technology.source.to_owned(),
        ]);
    }
    let mut text = format!(
        "default {} bytes, recommended {} bytes; HOLDS: the largest bandwidth-delay product\n",
        report.default.bytes, report.recommended.bytes
    );
    text += &table.render(output);
    text += &format!(
        "{} of {} claims of Ataei Kachooei et al. 2022 hold\n",
        report.claims.len() - report.claims_failed,
        report.claims.len()
    );
    if let Some(path) = &report.path {
        let fits = |fits: bool| if fits { "enough" } else { "too small" };
        text += &format!(
            "the path holds {}; a buffer must have {} bytes for that, recommended {}; the default is {}, the recommended limit {}\n",
            units::show_bytes(path.bdp_bytes),
            path.required_bytes,
            path.recommended_bytes,
            fits(path.fits_default),
            fits(path.fits_recommended)
        );
    }
    if let Some(figure) = report.figure {
        text += &format!("figure: {}\n", figure.display());
    }
    text
}
