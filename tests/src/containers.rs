//! Containers of an OCI runtime (crun), each with its own namespaces, cgroup and default congestion control, in which
//! nginx serves.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use crate::cli::{DEFAULT, public_directory};
use crate::servers::{NGINX, object};
use crate::traffic::eventually;

/// The cgroup of all of them, from the root of cgroup v2.
pub const CGROUP: &str = "/onramp-test-containers";

/// Directories of this machine that a container has, too.
const SHARED: [&str; 5] = ["/bin", "/etc", "/lib", "/lib64", "/usr"];

/// What nginx as root needs to become another user.
const CAPABILITIES: [&str; 5] =
    ["CAP_CHOWN", "CAP_NET_BIND_SERVICE", "CAP_SETUID", "CAP_SETGID", "CAP_DAC_OVERRIDE"];

/// A running container; ended and removed when dropped.
pub struct Container {
    name: &'static str,
    directory: TempDir,
}

impl Container {
    /// Starts one in the cgroup of its name below [`CGROUP`]. `default`: congestion control of its network namespace.
    ///
    /// # Panics
    /// If crun cannot.
    pub fn start(name: &'static str, default: &str) -> Self {
        let directory = public_directory();
        let served = directory.path().join("served");
        for path in [&served, &directory.path().join("rootfs")] {
            fs::create_dir(path).expect("directory");
        }
        object(&served);
        fs::write(served.join("nginx.conf"), NGINX.replace("ROOT", "/served")).expect("written");
        let shared = SHARED.map(
            |path| json!({"destination": path, "type": "none", "source": path, "options": ["rbind", "ro"]}),
        );
        let own = [
            json!({"destination": "/proc", "type": "proc", "source": "proc"}),
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}),
            json!({"destination": "/served", "type": "none", "source": served, "options": ["rbind"]}),
        ];
        let mounts: Vec<_> = shared.into_iter().chain(own).collect();
        let namespaces = ["cgroup", "ipc", "mount", "network", "pid", "uts"];
        let bundle = json!({
            "ociVersion": "1.0.0",
            "root": {"path": "rootfs", "readonly": true},
            "hostname": name,
            "process": {
                "args": ["/usr/sbin/nginx", "-c", "/served/nginx.conf"],
                "cwd": "/",
                "env": ["PATH=/bin"],
                "user": {"uid": 0, "gid": 0},
                "noNewPrivileges": true,
                "capabilities": {
                    "bounding": CAPABILITIES, "effective": CAPABILITIES, "permitted": CAPABILITIES,
                },
            },
            "mounts": mounts,
            "linux": {
                "cgroupsPath": format!("{CGROUP}/{name}"),
                "namespaces": namespaces.map(|kind| json!({"type": kind})),
                "sysctl": {DEFAULT: default},
            },
        });
        fs::write(directory.path().join("config.json"), bundle.to_string()).expect("written");
        let container = Self { name, directory };
        let mut run = container.crun("run");
        // A root file system in memory cannot be exchanged for another.
        run.args(["--no-pivot", "--detach", "--bundle"]).arg(container.directory.path()).arg(name);
        assert!(run.status().expect("crun runs").success());
        let up = || {
            let mut head =
                container.inside("curl --silent --head --output /dev/null http://127.0.0.1/object");
            head.status().expect("crun runs").success()
        };
        assert!(eventually(up), "nginx does not answer in container {name}");
        container
    }

    fn crun(&self, verb: &str) -> Command {
        let mut command = Command::new("crun");
        command
            .args(["--cgroup-manager=cgroupfs", "--root"])
            .arg(self.directory.path().join("crun"))
            .arg(verb);
        command.stdout(Stdio::null());
        command
    }

    /// A command in it, split at spaces.
    fn inside(&self, command: &str) -> Command {
        let mut exec = self.crun("exec");
        exec.arg(self.name).args(command.split(' '));
        exec
    }

    /// curl in it, which takes a quarter of a minute over what nginx in it serves.
    ///
    /// # Panics
    /// If crun cannot.
    pub fn download(&self) -> Download<'_> {
        let curl = "curl --silent --output /dev/null http://127.0.0.1/slow";
        Download { exec: self.inside(curl).spawn().expect("crun runs"), container: self }
    }

    /// What ss(8) lists in its network namespace, options and filter split at spaces.
    ///
    /// # Panics
    /// If it cannot be run.
    pub fn ss(&self, arguments: &str) -> String {
        let (nginx, _) = self.processes().into_iter().find(|(_, name)| name == "nginx").expect("nginx runs");
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{nginx}/ns/net")).arg("ss").args(arguments.split(' '));
        String::from_utf8(command.output().expect("ss runs").stdout).expect("text")
    }

    /// Its processes, by their numbers outside of it, with their names.
    fn processes(&self) -> Vec<(i32, String)> {
        let list = fs::read_to_string(self.cgroup().join("cgroup.procs")).unwrap_or_default();
        let numbers = list.lines().filter_map(|line| line.parse().ok());
        let name = |number: i32| fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        numbers.map(|number| (number, name(number).trim().to_owned())).collect()
    }

    /// Where its cgroup is.
    pub fn cgroup(&self) -> PathBuf {
        PathBuf::from(format!("/sys/fs/cgroup{CGROUP}/{}", self.name))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.crun("delete").args(["--force", self.name]).status();
        // Goes with the last of them.
        let _ = fs::remove_dir(format!("/sys/fs/cgroup{CGROUP}"));
    }
}

/// A download that goes on in a container; curl is ended when it is dropped, and with it what waits for it.
pub struct Download<'a> {
    exec: Child,
    container: &'a Container,
}

impl Drop for Download<'_> {
    fn drop(&mut self) {
        for (number, name) in self.container.processes() {
            if name == "curl" {
                let _ = kill(Pid::from_raw(number), Signal::SIGKILL);
            }
        }
        let _ = self.exec.wait();
    }
}
