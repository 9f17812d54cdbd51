//! `onramp serve`: two processes. The broker reads and tunes, by BPF; it hears nothing of the network. The web part
//! talks to browsers; it has no capability, no BPF object and no token, only a socket to the broker.

mod broker;
mod channel;
mod confine;
mod evidence;
mod listen;
mod others;
mod privileges;
mod row;
mod setup;
mod socket_file;
mod status;
mod token;
mod users;
mod web;
mod wire;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use onramp_loader::cost::Meter;
use onramp_recording::replay::candidates;
use serde::Serialize;

use crate::consumer::{self, Signals};
use crate::failure::Usage;
use crate::live::Shadows;
use crate::output::Output;
use crate::settings::AlgorithmName;
use broker::Broker;
use channel::Channel;
use listen::{Bound, Place, SocketFile};
use others::Watch;
pub(super) use row::shown;
use setup::{Setup, Tls};
use token::Token;
pub(crate) use web::ServeWeb;

/// How long the web part may take to end, and between two looks whether it has.
const TIMEOUT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Serve a web page with all flows live, a JSON API and metrics
///
/// The page shows every flow with its window, RTT and exit, the flows as a population, and what is attached with its
/// parameters. Flows of all network namespaces, as `onramp top`; where nothing is attached those of all controls in this
/// one. Only this host can connect; to look from
/// elsewhere forward the port by ssh, put a web server with TLS in front of a UNIX socket and name it with
/// --allow-host, or listen at an address of the network with --tls-cert, --tls-key and --read-token-file. Without a
/// token everybody who can connect may read: on a host with other users take a UNIX socket, which only its owner and
/// group can open, --read-token-file or --mask-addresses.
///
/// Nothing can be changed over the web, unless --write-token-file names a file with a secret; requests with that secret may tune
/// what is attached, with the checks of `onramp tune`.
///
/// What talks to browsers is a process of its own without any capability. Ends at Ctrl-C and SIGTERM. The API is in
/// docs/serve.md.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp serve
  ssh -L 8090:127.0.0.1:8090 HOST   # then open http://127.0.0.1:8090/ here
  onramp serve --listen unix:/run/onramp.sock --socket-group www-data --allow-host example.net
  (umask 077; openssl rand -hex 32 > /root/token); onramp serve --write-token-file /root/token
  onramp serve --listen 192.0.2.1:8443 --tls-cert c.pem --tls-key k.pem --read-token-file token
  onramp serve --offline   # then drop a recording on the page
  curl -s 'http://127.0.0.1:8090/api/flows?filter=dport%20=%20:443&sort=rate&limit=10'
  curl -s http://127.0.0.1:8090/metrics")]
pub(crate) struct Serve {
    /// An address with a port (0: any that is free), or unix:PATH
    #[arg(long, value_name = "PLACE", default_value = "127.0.0.1:8090", value_parser = listen::place)]
    listen: Place,
    /// Group that may open the UNIX socket, next to its owner: a name, or a number, which is not looked up
    #[arg(long, value_name = "GROUP")]
    socket_group: Option<String>,
    /// Name under which browsers may ask, in addition to localhost and the address itself: the certificate's, or that of the web
    /// server in front
    #[arg(long, value_name = "NAME", value_parser = web::host_name)]
    allow_host: Vec<String>,
    /// Speak TLS with the certificate in this PEM file, which those follow that certify it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// File with the secret that reading requires; without it every client that can connect may read
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,
    /// File with the secret that tuning over the web takes; without it nothing can be changed
    #[arg(long, value_name = "FILE")]
    write_token_file: Option<PathBuf>,
    /// Show networks (24 bits of IPv4, 48 of IPv6) in place of addresses
    #[arg(long)]
    mask_addresses: bool,
    /// Also ask these algorithms about the slow start of every TCP flow, as `onramp shadow`: the page shows when
    /// each would have left
    #[arg(long, value_name = "ALG,…", value_parser = AlgorithmName, hide_possible_values = true, value_delimiter = ',')]
    shadow: Vec<String>,
    /// Also measure what acknowledgments cost, of what is attached now: the kernel times every BPF program meanwhile, which
    /// takes some nanoseconds of each call
    #[arg(long)]
    cost: bool,
    /// Show nothing live: only recordings, results and reports that are opened in the page. Takes no privilege
    #[arg(long, conflicts_with_all = ["shadow", "cost", "write_token_file"])]
    offline: bool,
    /// User that both parts run as, if started by root: a name, or a number, which is not looked up. Without :GID the
    /// group of a number has the same number
    #[arg(long, value_name = "USER|UID[:GID]", default_value = "nobody")]
    user: String,
}

/// Its address.
#[derive(Serialize)]
struct Listening {
    listening: String,
    writable: bool,
}

impl Serve {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let (tls, read) = (self.tls_cert.is_some(), self.read_token_file.is_some());
        self.listen.require_protection(tls, read)?;
        let token = self.write_token_file.as_deref().map(Token::read).transpose()?;
        let setup = Setup {
            read: self.read_token_file.as_deref().map(Token::read).transpose()?,
            tls: self.tls_cert.zip(self.tls_key).map(|(cert, key)| Tls::read(&cert, &key)).transpose()?,
        };
        let user = users::user(&self.user)?;
        // Before anything is started: what is missing is said at once.
        let candidates =
            candidates(&self.shadow, &[], &[]).map_err(|error| Usage::error(error.to_string()))?;
        let signals = Signals::take()?;
        let mut source = match self.offline {
            true => None,
            false => match consumer::open(&signals, broker::open)? {
                None => return Ok(0),
                opened => opened,
            },
        };
        let shadows = (!candidates.is_empty()).then(|| Shadows::open(candidates)).transpose()?;
        let others = (!self.offline).then(|| Watch::open(self.mask_addresses)).transpose()?;
        let meter = self.cost.then(|| Meter::open("serve")).transpose()?;
        let bound = listen::bound(&self.listen, self.socket_group.as_deref())?;
        let place = bound.place.clone();
        let (ours, theirs) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let mut command = web_command(&self.allow_host, token.is_some())?;
        if self.offline {
            command.arg("--offline");
        }
        if let Some(user) = user {
            command.arg("--uid").arg(user.uid.to_string()).arg("--gid").arg(user.gid.to_string());
        }
        let Bound { socket, file, .. } = bound;
        let web = start(command, socket, theirs.into())?;
        setup.send(&ours)?;
        drop(setup);
        privileges::restrict_broker(user, !self.offline, file.as_ref().and_then(SocketFile::directory))?;
        if let Some(source) = &mut source {
            source.restricted()?;
        }
        let listening = Listening { listening: place.url(tls), writable: token.is_some() };
        let mut broker =
            Broker::new(source, shadows, Channel::new(ours, &signals)?, token, self.mask_addresses);
        broker.meter = meter;
        broker.others = others;
        broker.until_ready(&signals)?;
        output.data(&listening, || format!("{}\n", listening.listening))?;
        let ended = broker.run(&signals);
        drop((broker, file));
        end(web, ended)
    }
}

fn web_command(hosts: &[String], writable: bool) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find the program onramp")?);
    command.arg("serve-web");
    for host in hosts {
        command.arg("--allow-host").arg(host);
    }
    if writable {
        command.arg("--writable");
    }
    Ok(command)
}

/// The web part: what it is to listen on as its standard input, the broker as its standard output.
fn start(mut command: Command, socket: OwnedFd, broker: OwnedFd) -> anyhow::Result<Child> {
    command.env_clear().stdin(Stdio::from(socket)).stdout(Stdio::from(broker));
    command.spawn().context("cannot start the web part")
}

/// The web part ends with the broker's socket, and is killed if it does not.
fn end(mut web: Child, ended: anyhow::Result<()>) -> anyhow::Result<u8> {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = web.try_wait().context("cannot wait for the web part")? {
            break status;
        }
        if begin.elapsed() > TIMEOUT {
            tracing::warn!("the web part does not end, and is killed");
            web.kill().context("cannot kill the web part")?;
            break web.wait().context("cannot wait for the web part")?;
        }
        thread::sleep(LOOK);
    };
    ended.with_context(|| format!("the web part ended with {status}"))?;
    Ok(0)
}
