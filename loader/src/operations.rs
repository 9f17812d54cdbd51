//! The struct_ops map of an object not loaded yet, fitted to the kernel that will load it.

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{AsRawLibbpf, MapType, OpenObject, Result};

use crate::kernel::Kernel;

/// The kernel's struct, and ours of the same name.
const STRUCT: &str = "tcp_congestion_ops";

/// Clears the operations that the kernel does not have (`cwnd_event_tx_start` before 7.1), and asks for registration
/// by the map itself where there are no links (before 6.4).
pub(crate) fn fit(open: &mut OpenObject, kernel: &Kernel) -> Result<()> {
    let surplus = surplus(open, kernel)?;
    for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        if !kernel.has_link() {
            map.set_map_flags(0)?;
        }
        for offset in &surplus {
            let value = map
                .initial_value_mut()
                .and_then(|value| value.get_mut(*offset..*offset + size_of::<usize>()));
            if let Some(pointer) = value {
                pointer.fill(0);
            }
        }
    }
    Ok(())
}

/// Byte offsets of the members of our struct that the kernel's does not have.
fn surplus(open: &OpenObject, kernel: &Kernel) -> Result<Vec<usize>> {
    // SAFETY: the object outlives the borrow, which ends with this function.
    let object = unsafe { open.as_libbpf_object().as_ref() };
    let Some(btf) = Btf::from_bpf_object(object)? else { return Ok(Vec::new()) };
    let Some(ours) = btf.type_by_name::<Struct<'_>>(STRUCT) else { return Ok(Vec::new()) };
    // Once: each look-up goes through all of the kernel's types.
    let theirs = kernel.members(STRUCT);
    let missing = |name: &str| theirs.iter().all(|known| known != name);
    Ok(ours
        .iter()
        .filter(|member| member.name.and_then(|name| name.to_str()).is_some_and(missing))
        .map(|member| match member.attr {
            MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => offset as usize / 8,
        })
        .collect())
}

/// Names of a struct's members.
pub(crate) fn members(btf: &Btf<'_>, name: &str) -> Vec<String> {
    let found = btf.type_by_name::<BtfType<'_>>(name).and_then(|found| Struct::try_from(found).ok());
    let names = |found: Struct<'_>| {
        found.iter().filter_map(|member| Some(member.name?.to_string_lossy().into_owned())).collect()
    };
    found.map_or_else(Vec::new, names)
}
