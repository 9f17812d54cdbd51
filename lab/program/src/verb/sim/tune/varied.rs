//! What is varied, as it is written: `threshold_pct`, `threshold_pct=10..60`.

use onramp_lab::sim::tune::Varied;
use onramp_loader::algorithm::{Algorithm, Parameter, did_you_mean};

use crate::failure::Usage;

/// Of `--vary`; nothing given is all.
pub(super) fn parse(algorithm: Algorithm, given: &[String]) -> anyhow::Result<Vec<Varied>> {
    let all = Varied::all(algorithm);
    if all.is_empty() {
        return Err(Usage::error(format!("{} has no parameters to vary", algorithm.name())));
    }
    if given.is_empty() {
        return Ok(all);
    }
    let mut varied: Vec<Varied> = Vec::new();
    for text in given {
        let (name, range) =
            text.split_once('=').map_or((text.as_str(), None), |(name, range)| (name, Some(range)));
        let Some(whole) = all.iter().find(|whole| whole.parameter.name == name) else {
            let known: Vec<_> = all.iter().map(|whole| whole.parameter.name).collect();
            return Err(Usage::error(format!(
                "--vary {text}: {} has no parameter {name:?}{}; it has {}",
                algorithm.name(),
                did_you_mean(name, known.iter().copied()),
                known.join(", ")
            )));
        };
        if varied.iter().any(|other| other.parameter.name == name) {
            return Err(Usage::error(format!("--vary {text}: {name} is given twice")));
        }
        let one = match range {
            None => whole.clone(),
            Some(range) => {
                let (from, to) = between(&whole.parameter, range).ok_or_else(|| {
                    let allowed = whole.parameter.allowed();
                    Usage::error(format!("--vary {text}: give {name}=FROM..TO, numbers within {allowed}"))
                })?;
                Varied { from, to, ..whole.clone() }
            }
        };
        varied.push(one);
    }
    Ok(varied)
}

/// A range of a number, within what is allowed.
fn between(parameter: &Parameter, range: &str) -> Option<(u64, u64)> {
    let (from, to) = range.split_once("..")?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    let within = parameter.minimum <= from && from < to && to <= parameter.maximum;
    (parameter.choices.is_empty() && within).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str]) -> anyhow::Result<Vec<Varied>> {
        let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
        parse(onramp_loader::find("search")?, &given)
    }

    #[test]
    fn nothing_is_everything_and_a_range_narrows() {
        assert_eq!(of(&[]).unwrap().len(), onramp_loader::find("search").unwrap().declarations().len());
        let varied = of(&["threshold_pct=10..60", "look_back"]).unwrap();
        let all: Vec<_> = varied.iter().map(|one| (one.parameter.name, one.from, one.to)).collect();
        assert_eq!(all, [("threshold_pct", 10, 60), ("look_back", 0, 2)]);
    }

    #[test]
    fn what_cannot_be_varied_is_refused_with_what_can() {
        let says = |given: &str| of(&[given]).unwrap_err().to_string();
        assert!(says("treshold").contains("\"treshold\""), "{}", says("treshold"));
        for wrong in ["threshold_pct=60..10", "threshold_pct=10", "threshold_pct=10..101", "look_back=0..1"] {
            assert!(says(wrong).contains("=FROM..TO, numbers within"), "{}", says(wrong));
        }
        assert!(of(&["look_back", "look_back"]).unwrap_err().to_string().contains("twice"));
        let none = parse(onramp_loader::find("plain").unwrap(), &[]).unwrap_err().to_string();
        assert_eq!(none, "plain has no parameters to vary");
    }
}
