//! Every network namespace of this host.

use onramp_net::namespace::Namespace;

use crate::system::error::Error;

/// The sysctl of a network namespace that names its default congestion control.
pub const SYSCTL: &str = "net.ipv4.tcp_congestion_control";

/// Does something in every namespace; returns where it could not be done, and why.
pub(crate) fn each(mut work: impl FnMut(&Namespace) -> Result<(), Error>) -> Result<Vec<String>, Error> {
    let survey = Namespace::survey()?;
    let mut unseen = survey.unseen();
    for namespace in survey.namespaces() {
        match namespace {
            Ok(namespace) => {
                if let Err(error) = work(&namespace) {
                    unseen.push(format!("network namespace {namespace}: {error}"));
                }
            }
            Err(error) => unseen.push(error.to_string()),
        }
    }
    Ok(unseen)
}
