// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Profiles that say only in what they differ from another one: `like = "geo"`.

use toml::{Table, Value};

use crate::toml_words::toml_error;

/// Key that names the other profile.
const LIKE: &str = "like";
/// Key that lists what is not taken over from it.
const WITHOUT: &str = "without";

/// The text of the profile of a name; the error says why there is none.
pub(super) type Find<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Whether it differs from another profile, or means to.
pub(super) fn is_like(table: &Table) -> bool {
    table.contains_key(LIKE) || table.contains_key(WITHOUT)
}

/// Puts what `table` says over what the profile says that it is like. Tables are joined key by key;
/// whatever else has a key in both is as `table` says, lists as a whole.
///
/// # Errors
/// What is wrong, naming the key.
pub(super) fn resolve(mut table: Table, find: Find) -> Result<Table, String> {
    let without = table.remove(WITHOUT);
    let Some(like) = table.remove(LIKE) else {
        return Err(format!("{WITHOUT} is for a profile that is like another one"));
    };
    let Value::String(name) = like else {
        return Err(format!("{LIKE} = {like} is not the name of a profile"));
    };
    let text = find(&name).map_err(|why| format!("{LIKE} = {name:?}: {why}"))?;
    let mut base: Table =
        toml::from_str(&text).map_err(|error| format!("{LIKE} = {name:?}: {}", toml_error(&text, &error)))?;
    if is_like(&base) {
        return Err(format!("{LIKE} = {name:?}: that profile is itself like another one; name that one"));
    }
    for path in paths(without)? {
        remove(&mut base, &path)
            .ok_or_else(|| format!("{WITHOUT} = [{path:?}]: profile {name} has no {path}"))?;
    }
    join(&mut base, table);
    Ok(base)
}

fn paths(without: Option<Value>) -> Result<Vec<String>, String> {
    let Some(value) = without else { return Ok(Vec::new()) };
    let refuse = || format!("{WITHOUT} = {value} is not a list of keys, such as [\"link.forward.aqm\"]");
    let list = value.as_array().ok_or_else(refuse)?;
    list.iter().map(|path| path.as_str().map(str::to_owned).ok_or_else(refuse)).collect()
}

/// Takes the key of this path, with dots, out of a table.
fn remove(table: &mut Table, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => table.remove(path),
        Some((first, rest)) => remove(table.get_mut(first)?.as_table_mut()?, rest),
    }
}

fn join(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => join(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "name = 'base'\n[link.forward]\nrate = 1\nqueue = 2\n[link.forward.aqm]\nkind = 'red'\n[params]\na = 1\n";

    fn resolved(text: &str) -> Result<String, String> {
        let find = |name: &str| match name {
            "base" => Ok(BASE.to_owned()),
            "derived" => Ok("like = 'base'".to_owned()),
            _ => Err("there is none".to_owned()),
        };
        resolve(text.parse().unwrap(), &find).map(|table| toml::to_string(&table).unwrap())
    }

    #[test]
    fn what_is_said_goes_over_what_the_other_says_and_the_rest_stays() {
        let text =
            resolved("like = 'base'\nname = 'mine'\n[link.forward]\nqueue = 3\n[params]\nb = 2\n").unwrap();
        let expected = BASE
            .replace("'base'", "'mine'")
            .replace("queue = 2", "queue = 3")
            .replace("a = 1", "a = 1\nb = 2");
        assert_eq!(text.parse::<Table>().unwrap(), expected.parse::<Table>().unwrap());
    }

    #[test]
    fn what_is_listed_is_not_taken_over() {
        let text = resolved("like = 'base'\nwithout = ['link.forward.aqm', 'params']\n").unwrap();
        assert_eq!(
            text.parse::<Table>().unwrap(),
            "name = 'base'\n[link.forward]\nrate = 1\nqueue = 2\n".parse::<Table>().unwrap()
        );
    }

    #[test]
    fn what_is_wrong_names_the_key() {
        for (text, said) in [
            ("like = 3", "like = 3 is not the name of a profile"),
            ("like = 'none'", "like = \"none\": there is none"),
            ("like = 'derived'", "itself like another one"),
            ("without = ['params']", "without is for a profile that is like another one"),
            ("like = 'base'\nwithout = 'params'", "is not a list of keys"),
            ("like = 'base'\nwithout = [1]", "is not a list of keys"),
            ("like = 'base'\nwithout = ['link.back']", "profile base has no link.back"),
        ] {
            let error = resolved(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
