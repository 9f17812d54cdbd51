//! The part that talks to browsers: no capability, no BPF object, no token.

mod answer;
mod api;
mod assets;
mod body;
mod connections;
mod guard;
mod hub;
mod kept;
mod live;
#[cfg(test)]
mod load;
mod metrics;
mod population;
mod query;
mod recordings;
mod server;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::net::UnixStream;

use anyhow::Context;
use clap::Args;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{Backlog, listen};
use nix::unistd::{Gid, Uid, close, dup2_stdin, dup2_stdout};
use tokio_rustls::TlsAcceptor;

use super::privileges;
use super::setup::Setup;
use super::users::Identity;
use guard::Policy;
pub(crate) use guard::host_name;
use hub::Hub;

/// Connections that wait to be taken.
const BACKLOG: i32 = 128;

/// Talk to browsers (started by `serve`)
#[derive(Args, Debug)]
pub(crate) struct ServeWeb {
    #[arg(long, value_parser = host_name)]
    allow_host: Vec<String>,
    #[arg(long)]
    writable: bool,
    #[arg(long)]
    offline: bool,
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    #[arg(long)]
    gid: Option<u32>,
}

impl ServeWeb {
    /// Standard input is the socket to listen on, standard output the broker.
    pub fn run(self) -> anyhow::Result<u8> {
        close_inherited()?;
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        let broker = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        // They go to the whole group: the broker ends, and with its socket this.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGHUP);
        signals.thread_block().context("cannot hold back signals")?;
        let Setup { read, tls } = Setup::receive(&broker)?;
        let tls = tls.map(|tls| tls.config()).transpose()?;
        let user = self.uid.map(Uid::from_raw).zip(self.gid.map(Gid::from_raw));
        let user = user.map(|(uid, gid)| Identity { uid, gid });
        // It makes sockets of its own, for which there is no permission afterwards.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        privileges::restrict_web(user)?;

        listen(&socket, Backlog::new(BACKLOG)?).context("cannot listen")?;
        let address = TcpListener::from(socket.try_clone()?).local_addr().ok();
        let ended = runtime.block_on(async {
            let policy = Policy { allowed: self.allow_host, address, tls: tls.is_some(), read };
            let mut hub = Hub::new(policy, self.writable);
            hub.offline = self.offline;
            let server = tokio::spawn(server::run(socket, tls.map(TlsAcceptor::from), hub.clone()));
            let ended = hub.follow_broker(broker).await;
            server.abort();
            ended
        });
        // What is still decoded is wanted by no one.
        runtime.shutdown_background();
        ended.map(|()| 0)
    }
}

/// Whatever else the starter of `serve` had open is not for this process.
fn close_inherited() -> anyhow::Result<()> {
    let names = fs::read_dir("/proc/self/fd").context("cannot list descriptors")?;
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let inherited: Vec<RawFd> = names.filter_map(|name| name.parse().ok()).filter(|fd| *fd > 2).collect();
    for descriptor in inherited {
        // The list itself was one of them.
        let _ = close(descriptor);
    }
    Ok(())
}
