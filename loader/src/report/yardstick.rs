//! The kernel's own CUBIC as a control whose operations its run-time statistics count: what our controls cost is compared
//! with it.

use std::os::fd::AsFd;

use libbpf_rs::{Link, MapCore, MapType, Object, Program};

use crate::object::open;
use crate::object::programs;
use crate::report::cost::{Callback, OPERATIONS};
use crate::system::error::Error;
use crate::system::kernel::{self, Kernel};

/// Registered until dropped, and not pinned.
pub struct Yardstick {
    object: Object,
    _links: Vec<Link>,
}

impl Yardstick {
    /// Its name as a congestion control.
    pub const CONTROL: &str = "bench_cubic";
    /// The operation that does nothing: it takes what a call and the statistics take.
    pub const EMPTY: &str = "in_ack_event";

    /// `threshold`: segments at which slow start ends; 0: nothing but CUBIC ends it.
    ///
    /// # Errors
    /// [`Error::Privilege`], or a kernel without CUBIC for BPF.
    pub fn register(threshold: u32) -> Result<Self, Error> {
        kernel::require_privilege("bench")?;
        let mut object = open::yardstick(threshold, &Kernel::read()?)?;
        let operations = object.maps_mut().filter(|map| map.map_type() == MapType::StructOps);
        let links: Result<_, _> = operations.map(|mut map| map.attach_struct_ops()).collect();
        let _links = links.map_err(open::failed("register", Self::CONTROL))?;
        Ok(Self { object, _links })
    }

    /// Its operations.
    ///
    /// # Errors
    /// [`Error::Bpf`] if the kernel does not report them.
    pub fn callbacks(&self) -> Result<Vec<Callback>, Error> {
        let mut callbacks = Vec::new();
        for program in self.object.progs().filter(|program| program.autoload()) {
            let id = Program::id_from_fd(program.as_fd()).map_err(open::failed("look at", Self::CONTROL))?;
            let name =
                program.name().to_str().and_then(|name| name.strip_prefix("cubic_")).unwrap_or_default();
            let known = OPERATIONS.into_iter().find(|operation| *operation == name);
            if let (Some(name), Some(info)) = (known, programs::info(id)) {
                let nanoseconds = info.run_time().as_nanos() as u64;
                callbacks.push(Callback { name, calls: info.run_count(), nanoseconds });
            }
        }
        Ok(callbacks)
    }
}
