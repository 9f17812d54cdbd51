//! What may have been meant by a name that is not known.

/// From here on names are alike; as for the options of the command line.
const ALIKE: f64 = 0.7;
/// How like a name is that is one letter, or the order of two, off.
const ONE_SLIP: f64 = 0.8;
/// What congestion controls have before the names of their algorithms.
const CONTROL: &str = "onramp_";

/// The known name that is most like a given one, if one is like it.
pub fn similar<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_ascii_lowercase().trim_start_matches(CONTROL).to_owned();
    let given = plain(given);
    // Of short names one letter less, or two that changed places, are not alike otherwise.
    let slip = |name: &str| {
        let short = given.chars().count().min(name.chars().count());
        (short > 2 && strsim::osa_distance(&given, name) == 1).then_some(ONE_SLIP)
    };
    let likeness = |name: &str| {
        let name = plain(name);
        strsim::jaro(&given, &name).max(slip(&name).unwrap_or_default())
    };
    let alike =
        known.into_iter().map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness > ALIKE);
    alike.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

/// The same as it stands behind a message: ` (did you mean "geo"?)`, or nothing.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    similar(given, known).map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slip_is_recognised_and_another_is_not() {
        let known = ["geo", "leo", "terrestrial", "threshold_pct", "search"];
        for (given, meant) in [
            ("gep", Some("geo")),
            ("GEO", Some("geo")),
            ("goe", Some("geo")),
            ("treshold_pct", Some("threshold_pct")),
            ("onramp_serach", Some("search")),
            ("mars", None),
            ("", None),
        ] {
            assert_eq!(similar(given, known), meant, "{given}");
        }
        assert_eq!(did_you_mean("gep", known), " (did you mean \"geo\"?)");
        assert_eq!(did_you_mean("mars", known), "");
    }
}
