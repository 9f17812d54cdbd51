//! Metrics as text: OpenMetrics 1.0, and what Prometheus had before, which knows fewer kinds.

use std::fmt::Write;

use super::family::{Family, Kind, Labels, Sample, Unit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Plain,
}

/// OpenMetrics in a header `Accept`, and those of its versions that this text is valid in.
pub(super) const OPEN_METRICS: &str = "application/openmetrics-text";
pub(super) const VERSIONS: [&str; 2] = ["1.0.0", "0.0.1"];

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

pub(super) fn encode(families: &[Family], format: Format) -> String {
    let mut text = String::new();
    for family in families {
        let (name, kind) = match format {
            Format::OpenMetrics => (family.name(), kind(family.kind)),
            Format::Plain if family.kind == Kind::Info => (family.sample_name(), "gauge"),
            Format::Plain => (family.sample_name(), kind(family.kind)),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
        if family.unit != Unit::None && format == Format::OpenMetrics {
            let _ = writeln!(text, "# UNIT {name} {}", family.unit.name());
        }
        let name = family.sample_name();
        for (labels, value) in &family.samples {
            let said = said(labels);
            let Sample::Histogram(histogram) = value else {
                let Sample::Number(number) = value else { continue };
                let _ = writeln!(text, "{name}{} {number}", braces(&said));
                continue;
            };
            let comma = if said.is_empty() { "" } else { "," };
            for (bound, count) in histogram.cumulative() {
                let _ = writeln!(text, "{name}_bucket{{le=\"{bound:?}\"{comma}{said}}} {count}");
            }
            let (count, sum, said) = (histogram.count, histogram.sum, braces(&said));
            let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"{comma}{}}} {count}", self::said(labels));
            let _ = writeln!(text, "{name}_sum{said} {sum}\n{name}_count{said} {count}");
        }
    }
    match format {
        Format::OpenMetrics => text + "# EOF\n",
        Format::Plain => text,
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Info => "info",
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
    }
}

/// `cc="onramp_search",reason="loss"`
fn said(labels: &Labels) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect::<Vec<_>>().join(",")
}

fn braces(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("{{{said}}}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_break_its_line() {
        let labels = vec![("version", "1\"} 7\n# EOF \\".to_owned())];
        let family = Family::new("build", Unit::None, Kind::Info, "This").with(labels, 1.0);
        assert_eq!(
            encode(&[family], Format::OpenMetrics),
            "# HELP onramp_build This\n# TYPE onramp_build info\nonramp_build_info{version=\"1\\\"} 7\\n# EOF \\\\\"} 1\n# EOF\n"
        );
    }
}
