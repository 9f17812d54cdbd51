//! Servers of other projects, set up as operators do.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_net::Namespace;
use tempfile::TempDir;

use crate::cli::{Ran, public_directory};
use crate::traffic::eventually;

/// Bytes of what nginx serves as `/object`.
pub const OBJECT: u64 = 750_000;

/// A running server with its directory; ended by its own process number, its children with it.
pub struct Server {
    child: Child,
    /// Configuration, and what it serves.
    _directory: TempDir,
}

impl Server {
    /// Starts one from a configuration, in which `ROOT` stands for the directory of what it needs; the command's last
    /// argument is the path of the configuration. Its workers may run as another user.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(directory: TempDir, mut command: Command, configuration: &str) -> Self {
        let path = directory.path().join("configuration");
        fs::write(&path, configuration.replace("ROOT", &directory.path().to_string_lossy()))
            .expect("written");
        let child = command.arg(&path).stdout(Stdio::null()).spawn().expect("the server starts");
        Self { child, _directory: directory }
    }

    /// nginx that serves `/object` at port 80 of all addresses, from two workers with a socket each.
    ///
    /// # Panics
    /// If it does not start.
    pub fn nginx(namespace: &Namespace) -> Self {
        let mut command = namespace.command("/usr/sbin/nginx");
        command.arg("-c");
        let directory = public_directory();
        object(directory.path());
        Self::start(directory, command, NGINX)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// What `nginx -c` reads, with `ROOT` for the directory of [`object`]. `/slow` is the same, and takes a quarter of a minute.
pub const NGINX: &str = "
daemon off;
user www-data;
worker_processes 2;
pid ROOT/pid;
error_log stderr crit;
events {
    worker_connections 4096;
    multi_accept on;
}
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 65s;
    client_body_temp_path ROOT/client;
    proxy_temp_path ROOT/proxy;
    fastcgi_temp_path ROOT/fastcgi;
    uwsgi_temp_path ROOT/uwsgi;
    scgi_temp_path ROOT/scgi;
    server {
        listen 80 reuseport backlog=4096;
        listen [::]:80 reuseport backlog=4096 ipv6only=on;
        root ROOT;
        location /slow {
            alias ROOT/object;
            limit_rate 50k;
        }
    }
}
";

/// Writes what nginx serves.
///
/// # Panics
/// If it cannot be written.
pub fn object(directory: &Path) {
    let path = directory.join("object");
    fs::write(&path, vec![7; OBJECT as usize]).expect("written");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("permissions");
}

/// Waits until a server answers.
///
/// # Panics
/// If it does not.
pub fn answers(namespace: &Namespace, url: &str) {
    let up = eventually(|| {
        let mut command = namespace.command("curl");
        command.args(["--silent", "--head", "--output", "/dev/null", url]);
        Ran::from(command.output().expect("curl runs")).code == Some(0)
    });
    assert!(up, "{url} does not answer");
}
