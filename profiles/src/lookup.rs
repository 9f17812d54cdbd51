// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Finding profiles by name or path.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use onramp_algorithm::{self as algorithm, Algorithm, Parameters, did_you_mean, outside};
use onramp_files::bounded;
use onramp_terminal::failure::Usage;
use serde::{Serialize, Serializer};

use crate::{Params, Profile, ProfileError, Value};

include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// Where names are looked up before the embedded profiles. Not where the caller happens to be: any user may have put a
/// file there.
const DIRECTORIES: [&str; 1] = ["/etc/onramp/profiles"];

/// Where a profile comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// From this program.
    BuiltIn,
    /// From this file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => formatter.write_str("built in"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The profile of this path (with a slash or `.toml`; `-` is standard input) or name.
pub fn load(given: &str) -> anyhow::Result<Profile> {
    load_from(given, &directories())
}

/// Where [`load`] finds it, or would.
pub fn origin(given: &str) -> Origin {
    origin_in(given, &directories())
}

/// Whether there is such a profile, right or wrong.
pub fn exists(given: &str) -> bool {
    match origin(given) {
        Origin::File(path) => path.exists(),
        Origin::BuiltIn => EMBEDDED.iter().any(|(name, _)| *name == given),
    }
}

/// Names of all profiles, in order.
pub fn names() -> Vec<String> {
    let mut names: BTreeSet<String> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect();
    for entry in directories().iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.into_iter().collect()
}

/// Names of those that have parameters for an algorithm.
fn names_for(algorithm: Algorithm) -> Vec<String> {
    let is_for = |name: &String| load(name).is_ok_and(|one| one.algorithms().contains(&algorithm.name()));
    names().into_iter().filter(is_for).collect()
}

/// The profile's algorithm.
pub fn algorithm(profile: &Profile) -> anyhow::Result<Algorithm> {
    find(profile, &profile.algorithm, "algorithm = ")
}

/// The parameters of every algorithm that the profile has some for, its own first: its values, the defaults for the
/// rest.
pub fn parameters(profile: &Profile) -> anyhow::Result<Vec<Parameters>> {
    let named = profile.algorithms();
    let each = named.iter().enumerate().map(|(at, name)| {
        let mut parameters =
            find(profile, name, if at == 0 { "algorithm = " } else { "params." })?.parameters();
        apply(profile, &mut parameters)?;
        Ok(parameters)
    });
    each.collect()
}

/// The algorithm that a key of the profile names.
fn find(profile: &Profile, name: &str, key: &str) -> anyhow::Result<Algorithm> {
    if outside::is_path(name) {
        let read = outside::open(Path::new(name)).map(Algorithm::from);
        return read
            .map_err(|error| Usage::error(format!("profile {}: {key}{name:?}: {error}", profile.name)));
    }
    algorithm::find(name).ok_or_else(|| {
        let known: Vec<_> = algorithm::all().map(|algorithm| algorithm.name()).collect();
        Usage::error(format!(
            "profile {}: {key}{name:?} is not known{}: give one of {}",
            profile.name,
            did_you_mean(name, known.iter().copied()),
            known.join(", ")
        ))
    })
}

fn directories() -> [PathBuf; 1] {
    DIRECTORIES.map(PathBuf::from)
}

fn origin_in(given: &str, directories: &[PathBuf]) -> Origin {
    if given.contains('/') || given.ends_with(".toml") || given == bounded::STANDARD {
        return Origin::File(given.into());
    }
    let file = format!("{given}.toml");
    let found = directories.iter().map(|directory| directory.join(&file)).find(|path| path.exists());
    found.map_or(Origin::BuiltIn, Origin::File)
}

fn load_from(given: &str, directories: &[PathBuf]) -> anyhow::Result<Profile> {
    // What is wrong with a profile is wrong with what was asked for.
    let usage = |error: ProfileError| Usage::error(error.to_string().trim_end());
    let mut profile = match origin_in(given, directories) {
        Origin::File(path) => Profile::load(path).map_err(usage)?,
        Origin::BuiltIn => embedded(given)?,
    };
    name_algorithms(&mut profile)?;
    parameters(&profile)?;
    Ok(profile)
}

/// A profile may name algorithms by their congestion controls.
fn name_algorithms(profile: &mut Profile) -> anyhow::Result<()> {
    if let Some(known) = algorithm::find(&profile.algorithm) {
        known.name().clone_into(&mut profile.algorithm);
    }
    for (key, params) in std::mem::take(&mut profile.params) {
        let table = matches!(params, Params::Of(_)).then(|| algorithm::find(&key)).flatten();
        let name = table.map_or(key, |known| known.name().to_owned());
        if profile.params.insert(name.clone(), params).is_some() {
            let why = format!("[params.{name}] is there twice, once by the congestion control's name");
            return Err(Usage::error(format!("profile {}: {why}", profile.name)));
        }
    }
    Ok(())
}

fn embedded(given: &str) -> anyhow::Result<Profile> {
    let find = |given: &str| EMBEDDED.iter().find(|(name, _)| *name == given).map(|(_, text)| *text);
    let text = find(given).ok_or_else(|| {
        let known = EMBEDDED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let names = names();
        let hint = did_you_mean(given, names.iter().map(String::as_str));
        Usage::error(format!(
            "there is no profile {given:?}{hint}: give the path of a .toml file, a name in /etc/onramp/profiles, or one of {known}"
        ))
    })?;
    Profile::parse_among(text, format!("{given} (built in)"), find)
        .map_err(|error| Usage::error(error.to_string().trim_end()))
}

/// Sets the profile's parameters of their algorithm, for which it must have some.
pub fn apply(profile: &Profile, parameters: &mut Parameters) -> anyhow::Result<()> {
    let algorithm = parameters.algorithm();
    let refuse = |why: String| Usage::error(format!("profile {}: {why}", profile.name));
    let named = profile.algorithms();
    if !named.contains(&algorithm.name()) {
        let own = algorithm.name();
        let others = match names_for(algorithm) {
            names if names.is_empty() => String::new(),
            names => format!(", or take one that is for {own} ({})", names.join(", ")),
        };
        return Err(Usage::error(format!(
            "profile {} is for {}, not for {own}: name {} as the algorithm, leave the profile out{others}",
            profile.name,
            named.join(" and "),
            named.join(" or ")
        )));
    }
    let mut set = BTreeSet::new();
    for (name, value) in profile.parameters_of(algorithm.name()) {
        if !set.insert(name) {
            let own = algorithm.name();
            return Err(refuse(format!("{name} stands in [params] and in [params.{own}]: say it once")));
        }
        parameters.set(name, &word(algorithm, name, value)).map_err(|error| refuse(error.to_string()))?;
    }
    Ok(())
}

/// A parameter's value as it is set: true and false are on and off where that is a choice.
pub fn word(algorithm: Algorithm, name: &str, value: &Value) -> String {
    let declaration = algorithm.declarations().find(|declaration| declaration.name == name);
    let has_choices = declaration.is_some_and(|declaration| !declaration.choices.is_empty());
    match value {
        Value::Bool(true) if has_choices => "on".to_owned(),
        Value::Bool(false) if has_choices => "off".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(name: &str) -> Parameters {
        algorithm::find(name).unwrap().parameters()
    }

    #[test]
    fn every_embedded_profile_sets_parameters_of_its_algorithm() {
        assert!(!EMBEDDED.is_empty());
        for (name, _) in EMBEDDED {
            let profile = load_from(name, &[]).unwrap();
            parameters(&profile).unwrap();
            assert_eq!(profile.name, *name);
        }
    }

    #[test]
    fn a_directory_comes_before_the_embedded_ones() {
        let directory = std::env::temp_dir().join(format!("onramp-profiles-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (name, text) = EMBEDDED[0];
        let about = text.lines().find(|line| line.starts_with("about = ")).unwrap();
        std::fs::write(directory.join(format!("{name}.toml")), text.replace(about, "about = \"mine\""))
            .unwrap();
        let found = load_from(name, std::slice::from_ref(&directory)).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found.about, "mine");
    }

    #[test]
    fn a_name_is_not_looked_up_where_the_caller_is() {
        assert!(directories().iter().all(|directory| directory.is_absolute()));
    }

    #[test]
    fn a_profile_sets_the_parameters_of_each_algorithm_that_it_has_a_table_for() {
        let geo = load_from("geo", &[]).unwrap();
        let written = |profile: &Profile, name: &str| {
            let mut parameters = defaults(name);
            apply(profile, &mut parameters).map(|()| parameters)
        };
        let search = written(&geo, "search").unwrap();
        assert_ne!(search, defaults("search"));
        assert_eq!(written(&geo, "ramp").unwrap(), defaults("ramp"));
        assert_eq!(parameters(&geo).unwrap(), [defaults("ramp"), search.clone()]);
        let error = written(&geo, "plain").unwrap_err().to_string();
        assert!(error.starts_with("profile geo is for ramp and search, not for plain: name ramp or search"));
        // Whichever algorithm it names.
        let named = Profile { algorithm: "search".into(), ..geo };
        assert_eq!(written(&named, "search").unwrap(), search);
        let error = written(&named, "plain").unwrap_err().to_string();
        assert!(error.starts_with("profile geo is for search, not for plain: name search"), "{error}");
        let terrestrial = load_from("terrestrial", &[]).unwrap();
        let error = written(&terrestrial, "search").unwrap_err().to_string();
        assert!(error.contains("search (") && error.contains("geo"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = load_from("nonsense", &[]).unwrap_err().to_string();
        assert!(error.contains("\"nonsense\"") && error.contains("geo"), "{error}");
        let error = load_from("./nonsense.toml", &[]).unwrap_err().to_string();
        assert!(error.contains("./nonsense.toml"), "{error}");
    }
}
