//! An object not loaded yet, and the kernel that will load it: which of its types the object asks for, and which
//! operations of its struct_ops map are left out.

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfKind, BtfType};
use libbpf_rs::{AsRawLibbpf, MapType, OpenObject, Result};

use crate::system::kernel::Kernel;

/// The kernel's struct, and ours of the same name.
const STRUCT: &str = "tcp_congestion_ops";

/// Clears the operations that the kernel does not have (`cwnd_event_tx_start` before 7.1, see `bpf/kernel/compat.bpf.h`)
/// and those `without` which the object has to do, and asks for registration by the map itself where there are no links
/// (before 6.4).
pub(crate) fn fit(open: &mut OpenObject, kernel: &Kernel, without: &[&str]) -> Result<()> {
    let surplus = surplus(open, kernel, without)?;
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

/// Byte offsets of the members of our struct that the kernel's does not have, or that are to be left out.
fn surplus(open: &OpenObject, kernel: &Kernel, without: &[&str]) -> Result<Vec<usize>> {
    let Some(btf) = types(open)? else { return Ok(Vec::new()) };
    let Some(ours) = btf.type_by_name::<Struct<'_>>(STRUCT) else { return Ok(Vec::new()) };
    let theirs = kernel.members(STRUCT);
    let missing = |name: &str| without.contains(&name) || theirs.iter().all(|known| known != name);
    Ok(ours
        .iter()
        .filter(|member| member.name.and_then(|name| name.to_str()).is_some_and(missing))
        .map(|member| match member.attr {
            MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => offset as usize / 8,
        })
        .collect())
}

/// Names of all types of an object, as the kernel has them: without what follows three underscores.
pub(crate) fn names(open: &OpenObject) -> Result<Vec<String>> {
    let Some(btf) = types(open)? else { return Ok(Vec::new()) };
    let types = (1..btf.len() as u32).filter_map(|id| btf.type_by_id::<BtfType<'_>>(id.into()));
    Ok(types
        .filter(|found| !matches!(found.kind(), BtfKind::Func | BtfKind::Var | BtfKind::DataSec))
        .filter_map(|found| Some(found.name()?.to_str()?.split("___").next()?.to_owned()))
        .collect())
}

fn types(open: &OpenObject) -> Result<Option<Btf<'_>>> {
    // SAFETY: the object lives as long as it is borrowed.
    let object = unsafe { open.as_libbpf_object().as_ref() };
    Btf::from_bpf_object(object)
}
