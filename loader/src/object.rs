//! The BPF objects inside this library.

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The object made of `bpf/<name>.bpf.c`; `<name>_bbr`: for base BBR.
pub(crate) fn object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(have, _)| *have == name).map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_its_object() {
        for algorithm in onramp_algorithm::all() {
            let name = algorithm.name();
            assert!(object(name).is_some(), "bpf/{name}.bpf.c is missing");
            assert!(object(&format!("{name}_bbr")).is_some(), "bpf/{name}.bpf.c is not a shell");
        }
    }
}
