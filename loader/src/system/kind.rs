//! Kinds of failure, and which error is of which.

use std::io;

use libbpf_rs::ErrorKind;
use nix::errno::Errno;

use super::error::Error;

/// What kind of failure an error is; its number is the exit code of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It failed.
    Failure = 1,
    /// Wrong usage.
    Usage = 2,
    /// The kernel cannot.
    Unsupported = 3,
    /// A privilege is missing.
    Privilege = 4,
    /// Partly done.
    Partial = 5,
}

impl Error {
    /// The exit code of a command that fails with this error, by its [`Kind`].
    pub fn exit_code(&self) -> u8 {
        self.kind() as u8
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Privilege { .. } => Kind::Privilege,
            Self::Unsupported { .. }
            | Self::NoTracepoint { .. }
            | Self::NoCubic { .. }
            | Self::NoBbr { .. }
            | Self::NoCgroup { .. }
            | Self::PartOfCgroups { .. } => Kind::Unsupported,
            Self::UnknownAlgorithm { .. }
            | Self::Outside(_)
            | Self::Parameter(_)
            | Self::UnknownProfile { .. }
            | Self::TooManyProfiles { .. }
            | Self::NoProfiles { .. }
            | Self::NoBase { .. }
            | Self::BbrAfterExit { .. }
            | Self::NotOfBase { .. }
            | Self::ObservesWith { .. }
            | Self::NoStartPolicy
            | Self::PathPrefix { .. }
            | Self::CannotStart { .. }
            | Self::UntrustedFile { .. }
            | Self::UnknownControl { .. }
            | Self::Cgroup { .. }
            | Self::TooManyRules { .. }
            | Self::Subscription { .. } => Kind::Usage,
            Self::DoneInPart { .. } | Self::NotAttachedAnew { .. } => Kind::Partial,
            other if denied(other) => Kind::Privilege,
            _ => Kind::Failure,
        }
    }
}

/// Whether the kernel said that this process may not. Of a BPF object it says EACCES where the verifier refuses it.
fn denied(error: &Error) -> bool {
    // libbpf-rs has a kind for both, and distinguishes them in its text only.
    let not_permitted = || io::Error::from_raw_os_error(Errno::EPERM as i32).to_string();
    let said = |cause: &(dyn std::error::Error + 'static)| {
        let by_io = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        by_io.or_else(|| cause.downcast_ref::<Errno>().map(|errno| *errno as i32)).map(Errno::from_raw)
    };
    let mut causes =
        std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |cause| cause.source());
    match error {
        Error::Bpf { source, .. } => {
            source.kind() == ErrorKind::PermissionDenied
                && causes.last().is_some_and(|cause| cause.to_string() == not_permitted())
        }
        _ => causes.any(|cause| matches!(said(cause), Some(Errno::EPERM | Errno::EACCES))),
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ErrorExt;
    use onramp_net::namespace::NamespaceError;

    use super::*;

    #[test]
    fn what_the_kernel_forbids_is_a_missing_privilege_wherever_it_happens() {
        let io = |errno: Errno| io::Error::from_raw_os_error(errno as i32);
        let entering = NamespaceError::Enter { namespace: "pid 1".into(), source: Errno::EPERM };
        let sysctl = NamespaceError::Sysctl {
            action: "write".into(),
            name: "net.x".into(),
            namespace: "pid 1".into(),
            source: io(Errno::EACCES),
        };
        let bpf = |errno| Error::Bpf {
            action: "load",
            object: "select".into(),
            source: io(errno).into(),
            log: String::new(),
        };
        let refused = Error::Bpf {
            action: "pin",
            object: "select".into(),
            source: libbpf_rs::Error::from(io(Errno::EPERM)).context("failed to pin map"),
            log: String::new(),
        };
        for denied in [
            Error::io("open", "/x")(io(Errno::EACCES)),
            Error::Namespace(entering),
            Error::Namespace(sysctl),
            bpf(Errno::EPERM),
            refused,
        ] {
            assert_eq!(denied.kind(), Kind::Privilege, "{denied}");
        }
        // No privilege helps with what the verifier refuses.
        for failed in [bpf(Errno::EACCES), Error::io("open", "/x")(io(Errno::EMFILE)), Error::LeaseLost] {
            assert_eq!(failed.kind(), Kind::Failure, "{failed}");
        }
    }
}
