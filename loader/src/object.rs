//! The BPF objects inside this library.

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The object made of `bpf/<name>.bpf.c`.
pub(crate) fn object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(have, _)| *have == name).map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_its_object() {
        for algorithm in onramp_algorithm::all() {
            assert!(object(algorithm.name()).is_some(), "bpf/{}.bpf.c is missing", algorithm.name());
        }
    }
}
