//! Constants of an object that are decided before it is loaded.

use libbpf_rs::{Error, OpenObject, Result};

/// Sets the constant that fills the section `section` of an object not loaded yet.
pub(crate) fn set(open: &mut OpenObject, section: &str, value: &[u8]) -> Result<()> {
    let missing =
        || Error::from(std::io::Error::new(std::io::ErrorKind::NotFound, format!("no section {section}")));
    let mut map = open.maps_mut().find(|map| map.name() == section).ok_or_else(missing)?;
    let bytes = map.initial_value_mut().and_then(|bytes| bytes.get_mut(..value.len())).ok_or_else(missing)?;
    bytes.copy_from_slice(value);
    Ok(())
}
