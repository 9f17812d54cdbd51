//! What the shells believe of the kernel's structures, compared with the running kernel's through BTF.

use libbpf_rs::btf::types::{Composite, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType};

use crate::object::embedded::object;

fn btf_of(name: &str) -> (tempfile::NamedTempFile, Btf<'static>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object(name)).unwrap();
    let btf = Btf::from_path(file.path()).unwrap();
    (file, btf)
}

/// Size in bytes of what a member's type comes down to.
fn size(of: BtfType<'_>) -> Option<usize> {
    let of = of.skip_mods_and_typedefs();
    libbpf_rs::btf_type_match!(match of {
        BtfKind::Int(t) => Some((t.bits as usize).div_ceil(8)),
        BtfKind::Array(t) => Some(t.capacity() * size(t.contained_type())?),
        _ => None,
    })
}

/// A kernel member by name, also inside anonymous structs, unions and cacheline groups: (size, bits of a bit field).
fn find<'a>(btf: &'a Btf<'a>, of: BtfType<'a>, name: &str) -> Option<(Option<usize>, u8)> {
    let composite = Composite::try_from(of.skip_mods_and_typedefs()).ok()?;
    for member in composite.iter() {
        let inner: BtfType<'_> = btf.type_by_id(member.ty)?;
        match member.name.and_then(|name| name.to_str()).filter(|name| !name.is_empty()) {
            Some(have) if have == name => {
                let bits = match member.attr {
                    MemberAttr::BitField { size, .. } => size,
                    MemberAttr::Normal { .. } => 0,
                };
                return Some((size(inner), bits));
            }
            Some(_) => {}
            None => {
                if let Some(found) = find(btf, inner, name) {
                    return Some(found);
                }
            }
        }
    }
    None
}

/// `only`: the state of a base, which is in the kernel's own types unless the base is a module.
fn compare_with_the_running_kernel(object: &str, only: &str) {
    let kernel = Btf::from_path("/sys/kernel/btf/vmlinux").unwrap();
    let (_file, ours) = btf_of(object);
    let mut compared = 0;
    let names = [
        "tcp_sock",
        "inet_connection_sock",
        "sock",
        "sock_common",
        "net",
        "ns_common",
        "minmax_sample",
        "ack_sample",
        only,
    ];
    for name in names {
        let structure: Struct<'_> = ours.type_by_name(name).unwrap_or_else(|| panic!("no struct {name}"));
        let Some(theirs) = kernel.type_by_name::<BtfType<'_>>(name) else {
            assert_eq!(name, only, "the kernel has no struct {name}");
            continue;
        };
        for member in structure.iter() {
            let field = member.name.unwrap().to_str().unwrap();
            let bits = match member.attr {
                MemberAttr::BitField { size, .. } => size,
                MemberAttr::Normal { .. } => 0,
            };
            let found = find(&kernel, theirs, field).unwrap_or_else(|| panic!("no field {name}.{field}"));
            let size = size(ours.type_by_id(member.ty).unwrap());
            // A bit field that has become a whole one: the width that is read is relocated, too.
            let widened = bits > 0 && found == (size, 0);
            assert!(widened || found == (size, bits), "{name}.{field}: {found:?}, not {:?}", (size, bits));
            compared += 1;
        }
    }
    assert!(compared > 25, "only {compared} fields were compared");
}

#[test]
#[ignore = "in a guest: make test"]
fn every_field_that_the_shells_read_is_the_running_kernels() {
    compare_with_the_running_kernel("search", "bictcp");
    compare_with_the_running_kernel("search_bbr", "bbr");
}
