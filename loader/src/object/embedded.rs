//! The BPF objects inside this library.

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The object made of `bpf/<name>.bpf.c`; `<name>_bbr`: for base BBR. Empty: there is none.
pub(crate) fn object(name: &str) -> &'static [u8] {
    OBJECTS.iter().find(|(have, _)| *have == name).map_or(&[], |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn objects_are_the_same_whatever_directory_they_are_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_str().unwrap();
        for directory in [root, env!("OUT_DIR")] {
            for (name, object) in OBJECTS {
                let named = object.windows(directory.len()).any(|bytes| bytes == directory.as_bytes());
                assert!(!named, "{name} has {directory} in it");
            }
        }
    }

    #[test]
    fn every_algorithm_has_its_object() {
        for algorithm in onramp_algorithm::all() {
            let name = algorithm.name();
            assert!(!object(name).is_empty(), "bpf/{name}.bpf.c is missing");
            assert!(!object(&format!("{name}_bbr")).is_empty(), "bpf/{name}.bpf.c is not a shell");
        }
    }
}
