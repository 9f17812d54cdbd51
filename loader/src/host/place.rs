//! Where a setting is: sysctls are a network namespace's, parameters of the kernel's modules are the host's.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use onramp_net::namespace::{Namespace, NamespaceError};

use crate::system::error::Error;

/// The kernel's HyStart, as the kernel's command line names it: 0 off, 1 on, for every CUBIC flow of the host.
pub(crate) const HYSTART: &str = "tcp_cubic.hystart";

/// The queueing discipline of interfaces that are made without one, of every network namespace.
pub(crate) const QDISC: &str = "net.core.default_qdisc";

/// What the records know the host by, in place of a network namespace's cookie.
pub(super) const HOST_COOKIE: u64 = 0;

/// Where a setting is.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// Once, whatever the network namespace.
    Host,
    Namespace(&'a Namespace),
}

impl<'a> Place<'a> {
    /// Of a setting that is seen from a network namespace.
    pub fn new(name: &str, namespace: &'a Namespace) -> Self {
        if is_parameter(name) { Self::Host } else { Self::Namespace(namespace) }
    }

    /// What the records know it by.
    pub fn cookie(self) -> Result<u64, Error> {
        match self {
            Self::Host => Ok(HOST_COOKIE),
            Self::Namespace(namespace) => Ok(namespace.cookie()?),
        }
    }

    /// The value, its words separated by single spaces.
    pub fn get(self, name: &str) -> Result<String, Error> {
        let value = match self {
            Self::Host => fs::read_to_string(parameter(name)).map_err(Error::io("read", parameter(name)))?,
            Self::Namespace(namespace) => match namespace.sysctl_get(name) {
                Err(NamespaceError::Sysctl { source, .. })
                    if name == QDISC && source.kind() == ErrorKind::NotFound =>
                {
                    return Err(Error::OfTheHost { name: name.into() });
                }
                value => value?,
            },
        };
        // The kernel shows tabs.
        Ok(value.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub fn set(self, name: &str, value: &str) -> Result<(), Error> {
        match self {
            Self::Host => fs::write(parameter(name), value).map_err(Error::io("write", parameter(name))),
            Self::Namespace(namespace) => Ok(namespace.sysctl_set(name, value)?),
        }
    }
}

/// Whether all network namespaces of the host have a setting.
pub(crate) fn is_of_host(name: &str) -> bool {
    is_parameter(name) || name == QDISC
}

/// Whether a name is that of a module's parameter; else it is a sysctl's.
pub(super) fn is_parameter(name: &str) -> bool {
    name == HYSTART
}

/// File of a module's parameter, `MODULE.PARAMETER`.
pub(crate) fn parameter(name: &str) -> PathBuf {
    let (module, parameter) = name.split_once('.').unwrap_or((name, ""));
    PathBuf::from(format!("/sys/module/{module}/parameters/{parameter}"))
}
