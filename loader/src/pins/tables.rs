//! What the words of an attachment's parameters mean, pinned next to them by the build that attached it: another build finds each
//! by its name.

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use onramp_algorithm::{Algorithm, Parameters};

use crate::object::abi::{PARAMETER_MAX, text};
use crate::object::open;
use crate::pins::Pins;
use crate::system::error::Error;

/// The pin.
const TABLES: &str = "tables";

/// Pins the tables of an algorithm as this build has them.
pub(crate) fn pin(pins: &Pins) -> Result<(), Error> {
    let failed = |action| open::failed(action, TABLES);
    // With the NUL at its end.
    let mut bytes = pins.algorithm.tables().into_bytes();
    bytes.push(0);
    let options = open::map_options(0);
    let size = bytes.len() as u32;
    let mut map = MapHandle::create(MapType::Array, Some("onramp_tables"), 4, size, 1, &options)
        .map_err(failed("create"))?;
    map.update(&[0; 4], &bytes, MapFlags::ANY).map_err(failed("fill"))?;
    map.pin(pins.path(TABLES)).map_err(failed("pin"))
}

/// The pinned tables, if they are those of a checksum; `None`: they are not there, or others.
pub(crate) fn read(pins: &Pins, crc32: u32) -> Option<String> {
    let map = MapHandle::from_pinned_path(pins.path(TABLES)).ok()?;
    let tables = text(&map.lookup(&[0; 4], MapFlags::ANY).ok()??);
    (crc32fast::hash(tables.as_bytes()) == crc32).then_some(tables)
}

/// Parameters out of another build's words; what they did not have then has its default. Else why not.
pub(crate) fn translate(
    algorithm: Algorithm,
    tables: &str,
    words: &[u64; PARAMETER_MAX],
) -> Result<Parameters, String> {
    let mut parameters = algorithm.parameters();
    let (mut gone, mut refused) = (Vec::new(), Vec::new());
    for (declared, word) in declared(tables).zip(words) {
        let Declared { name, choices } = declared;
        let value = match choices.get(*word as usize) {
            Some(choice) => (*choice).to_owned(),
            None => word.to_string(),
        };
        if parameters.get(name).is_err() {
            gone.push(format!("{name}={value}"));
        } else if let Err(error) = parameters.set(name, &value) {
            refused.push(error.to_string());
        }
    }
    if !gone.is_empty() {
        return Err(format!("this onramp has no parameter for {}", gone.join(", ")));
    }
    if !refused.is_empty() {
        return Err(refused.join("; "));
    }
    Ok(parameters)
}

/// The parameters that tables do not have.
pub(crate) fn unknown_to(tables: &str, algorithm: Algorithm) -> Vec<&'static str> {
    let known: Vec<_> = declared(tables).map(|one| one.name).collect();
    algorithm.declarations().map(|parameter| parameter.name).filter(|name| !known.contains(name)).collect()
}

struct Declared<'a> {
    name: &'a str,
    choices: Vec<&'a str>,
}

/// The parameters of tables, by lines as `parameter exit_action 0 1 drain|hold`.
fn declared(tables: &str) -> impl Iterator<Item = Declared<'_>> {
    tables.lines().filter_map(|line| {
        let mut fields = line.strip_prefix("parameter ")?.splitn(4, ' ');
        let name = fields.next()?;
        let choices = fields.nth(2).unwrap_or_default();
        Some(Declared { name, choices: choices.split('|').filter(|choice| !choice.is_empty()).collect() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search() -> Algorithm {
        onramp_algorithm::find("search").unwrap()
    }

    fn words(first: &[u64]) -> [u64; PARAMETER_MAX] {
        std::array::from_fn(|at| first.get(at).copied().unwrap_or(0))
    }

    #[test]
    fn parameters_are_found_by_name_and_choices_by_theirs() {
        let tables = "state 8\nparameter exit_action 0 2 keep|hold|drain\nparameter threshold_pct 1 100 \n";
        let parameters = translate(search(), tables, &words(&[1, 33])).unwrap();
        let shown: Vec<_> = parameters.shown().collect();
        assert!(shown.contains(&("exit_action", "hold".into())), "{shown:?}");
        assert_eq!(parameters.get("threshold_pct"), Ok(33));
        assert!(unknown_to(tables, search()).contains(&"look_back"));
        assert!(!unknown_to(tables, search()).contains(&"threshold_pct"));
    }

    #[test]
    fn its_own_tables_lead_to_the_same_parameters() {
        for algorithm in onramp_algorithm::all() {
            let parameters = algorithm.parameters();
            let same =
                translate(algorithm, &algorithm.tables(), &crate::pins::parameters::words(&parameters));
            assert_eq!(same, Ok(parameters));
            assert!(unknown_to(&algorithm.tables(), algorithm).is_empty());
        }
    }

    #[test]
    fn what_is_gone_or_not_allowed_any_more_is_named() {
        let error = |tables, values| translate(search(), tables, &words(values)).unwrap_err();
        let gone = error("parameter patience 0 9 \nparameter zeal 0 9 \n", &[3, 4]);
        assert!(gone.contains("patience=3, zeal=4"), "{gone}");
        let refused = error("parameter threshold_pct 1 100000 \n", &[70_000]);
        assert!(refused.contains("threshold_pct=70000"), "{refused}");
        let refused = error("parameter exit_action 0 1 drain|leap\n", &[1]);
        assert!(refused.contains("exit_action=leap"), "{refused}");
    }
}
