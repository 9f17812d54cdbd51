//! `onramp-lab sim agree`: the simulator, or another kernel, compared with the kernel.

use std::path::{Path, PathBuf};

use clap::Args;
use onramp_files::bounded;
use onramp_lab::experiment::Comparison;
use onramp_lab::sim::SIMULATED;
use onramp_lab::sim::agreement::{self, Agreement, Runs};

use crate::failure::{FAILURE, Usage};
use crate::output::Output;
use crate::units;
use crate::verb::result;

/// Simulate what results of `onramp lab run` and `compare` measured, and say how far both are apart
///
/// Results are read as the lab writes them: result.json of a directory, or what --json printed. Exit and completion may
/// differ by 3 %, losses by 10 % or 20 segments. Ends with code 1 if fewer than the given percentage of all pairs agree.
/// `--against` shows how far two kernels differ by the same rules.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim agree tests/golden/*.json
  onramp lab compare --arms plain,search --profile leo --json | onramp sim agree -
  onramp sim agree tests/golden/6.1-geo.json --against tests/golden/7.2-geo.json")]
pub(super) struct Agree {
    /// Results of the lab
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Pairs that must agree, percent
    #[arg(long, default_value_t = 95, value_parser = units::number(0..=100_u8))]
    percent: u8,
    /// Compare with the same runs of another kernel, instead of simulating them
    #[arg(long, value_name = "RESULT", num_args = 1..)]
    against: Vec<PathBuf>,
}

impl Agree {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let all = self.compare()?;
        let others = if self.against.is_empty() { "simulated" } else { "other kernel" };
        output.versioned(&all, || agreement::text(&all, others))?;
        let enough = all.agree * 100 >= all.pairs.len() * usize::from(self.percent);
        Ok(if enough { 0 } else { FAILURE })
    }

    fn compare(&self) -> anyhow::Result<Agreement> {
        let mut all = Agreement::default();
        let others = self.against.iter().map(|path| measured(path)).collect::<Result<Vec<_>, _>>()?;
        let runs = Runs::new(&others);
        for path in &self.results {
            let measured = measured(path)?;
            if others.is_empty() {
                all.add(&measured)?;
            } else {
                all.add_others(&measured, &runs);
            }
        }
        if all.pairs.is_empty() {
            let what = if others.is_empty() {
                "arms that are simulated (an algorithm, cubic, reno or bbr)"
            } else {
                "the same transfers over the same paths"
            };
            let left_out = match all.left_out.join(", ") {
                names if names.is_empty() => "no arm has one that was measured in full".into(),
                names => names,
            };
            return Err(Usage::error(format!("no run can be compared ({left_out}): give results of {what}")));
        }
        Ok(all)
    }
}

/// A result of kernel TCP: the simulator agrees with itself.
fn measured(path: &Path) -> anyhow::Result<Comparison> {
    let result = result::read(path)?;
    if result.origin.clock == SIMULATED {
        return Err(Usage::error(format!(
            "{} was simulated: give what `onramp lab run` or `compare` has measured",
            bounded::name(path)
        )));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn compare(result: &str, against: &[&str]) -> anyhow::Result<Agreement> {
        let golden = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
        let against = against.iter().map(|name| golden(name)).collect();
        Agree { results: vec![golden(result)], percent: 95, against }.compare()
    }

    /// Where nothing is the same, nothing agrees, and the error says what to give.
    #[test]
    fn what_has_nothing_in_common_is_refused() {
        assert_eq!(compare("6.1-geo.json", &["7.2-geo.json"]).unwrap().pairs.len(), 12);
        let error = compare("6.12-leo.json", &["7.2-geo.json"]).unwrap_err().to_string();
        assert!(error.starts_with("no run can be compared (cubic on leo, "), "{error}");
        assert!(error.ends_with("give results of the same transfers over the same paths"), "{error}");
    }
}
