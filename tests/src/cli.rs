//! The `onramp` binary: built, run, looked at.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use onramp_net::{Namespace, mounts};
use serde_json::Value;
use tempfile::TempDir;

/// Path of the binary: `ONRAMP_BIN`, else built once into the directory that this test was built into.
///
/// # Panics
/// If it cannot be built.
pub fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| env::var_os("ONRAMP_BIN").map_or_else(build, PathBuf::from))
}

/// Path of the laboratory's program, which lies next to the binary.
pub fn laboratory() -> PathBuf {
    binary().with_file_name("onramp-lab")
}

/// A test lies in `<target>/<profile>/deps`; cargo has let go of its lock by the time it runs.
fn build() -> PathBuf {
    let test = env::current_exe().expect("path of the test");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("directory of the profile");
    let target = profile.parent().expect("target directory");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "onramp",
        "--package",
        "onramp-lab-program",
        "--bins",
        "--target-dir",
    ]);
    cargo.arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
    assert!(built.success(), "building onramp failed");
    profile.join("onramp")
}

/// A copy of the binary, and of the laboratory next to it, where every user may run it: the build directory may be root's own.
///
/// # Panics
/// If they cannot be copied.
pub fn public_copy() -> &'static PathBuf {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let directory = env::temp_dir().join("onramp-test-public");
        fs::create_dir_all(&directory).expect("directory");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("permissions");
        for (from, name) in [(binary().clone(), "onramp"), (laboratory(), "onramp-lab")] {
            // Another test may be running it: replaced, not written over.
            let new = directory.join(format!("{name}.{}", std::process::id()));
            fs::copy(from, &new).expect("copy");
            fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("permissions");
            fs::rename(&new, directory.join(name)).expect("rename");
        }
        directory.join("onramp")
    })
}

/// A command of the binary.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    command
}

/// What a run of the binary printed, and its exit code.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None`: ended by a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Standard output of a run that must have succeeded.
    ///
    /// # Panics
    /// If it failed.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// What a run printed as JSON, also where it then says by its code that something is amiss.
    ///
    /// # Panics
    /// If that is no JSON.
    pub fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard error of a run that must have failed with this code: one sentence, and nothing on stdout.
    ///
    /// # Panics
    /// If it did not.
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        self.stderr
    }
}

/// What a text names.
pub trait Names {
    /// Whether each of these values is in it.
    fn names(&self, values: &[&str]) -> bool;
}

impl Names for str {
    fn names(&self, values: &[&str]) -> bool {
        values.iter().all(|value| self.contains(value))
    }
}

/// Runs the binary; the arguments are split at spaces.
///
/// # Panics
/// If it cannot be started.
pub fn onramp(arguments: &str) -> Ran {
    command(arguments.split_whitespace()).output().expect("onramp runs").into()
}

/// [`onramp`] in a network namespace.
///
/// # Panics
/// If it cannot be started.
pub fn inside(namespace: &Namespace, arguments: &str) -> Ran {
    namespace.command(binary()).args(arguments.split_whitespace()).output().expect("onramp runs").into()
}

/// What runs a command as root that may open what is pinned, and load nothing of onramp's.
pub const WITHOUT_LOADING: [&str; 2] = ["setpriv", "--bounding-set=-sys_admin,-perfmon"];

/// The report of `onramp doctor` with these options in a network namespace, but for what it tries to load: that takes a hundred
/// times as long as all other rows, and a row says so.
///
/// # Panics
/// If it prints no report.
pub fn doctor(namespace: &Namespace, options: &str) -> Value {
    let mut command = namespace.command(WITHOUT_LOADING[0]);
    command.args(&WITHOUT_LOADING[1..]).arg(binary()).args(["--json", "doctor"]);
    Ran::from(command.args(options.split_whitespace()).output().expect("onramp runs")).report()
}

/// The same with every privilege, where the kernel's types are hidden, without which nothing is loaded either.
///
/// # Panics
/// If it prints no report.
pub fn doctor_of_root() -> Value {
    let script = format!("mount -t tmpfs none /sys/kernel/btf && exec {} --json doctor", binary().display());
    Ran::from(Command::new("unshare").args(["-m", "sh", "-c", &script]).output().expect("unshare runs"))
        .report()
}

/// The row of doctor's report with this name.
///
/// # Panics
/// If there is none.
pub fn row(doctor: &Value, name: &str) -> Value {
    let rows = doctor["checks"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {doctor}")).clone()
}

/// A command of the binary as the user nobody, with these capabilities, such as `+bpf,+perfmon`, if any.
pub fn as_nobody(capabilities: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    if !capabilities.is_empty() {
        command.args(["--inh-caps", capabilities, "--ambient-caps", capabilities]);
    }
    command.arg(public_copy());
    command
}

/// A directory that other users may read.
///
/// # Panics
/// If it cannot be made.
pub fn public_directory() -> TempDir {
    let open = fs::Permissions::from_mode(0o755);
    tempfile::Builder::new().permissions(open).tempdir().expect("directory")
}

/// Runs the binary with `--json`; it must succeed.
///
/// # Panics
/// If it fails, or prints anything but one JSON object with `"schema":1`.
pub fn json(arguments: &str) -> Value {
    let text = onramp(&format!("--json {arguments}")).ok();
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(value["schema"], 1, "{text}");
    value
}

/// What `status` says of an algorithm's state; `None`: nothing.
///
/// # Panics
/// If `status` fails.
pub fn state(algorithm: &str) -> Option<String> {
    Some(status(algorithm)?["state"].as_str().expect("state").to_owned())
}

/// Verdicts of an algorithm by outcome, on all its flows since it was attached.
///
/// # Panics
/// If it is not attached.
pub fn verdicts(algorithm: &str) -> BTreeMap<String, u64> {
    let outcomes = status(algorithm).expect("attached")["outcomes"].take();
    serde_json::from_value(outcomes).expect("numbers by outcome")
}

/// The row of an algorithm in `onramp status`, if it has one.
///
/// # Panics
/// If `status` fails.
pub fn status(algorithm: &str) -> Option<Value> {
    let mut status = json("status");
    let rows = status["algorithms"].as_array_mut().expect("algorithms");
    rows.iter_mut().find(|row| row["algorithm"] == algorithm).map(Value::take)
}

/// Everything that onramp may change on this host: pins, registered congestion controls, cgroups of runs, and the
/// default of this network namespace, of those given, and of all that have one of onramp's.
///
/// # Panics
/// If it cannot be read.
pub fn host_state(namespaces: &[&Namespace]) -> Vec<String> {
    let mut state = Vec::new();
    let mut directories = vec![PathBuf::from(onramp_loader::ROOT)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.expect("entry").path();
            state.push(path.display().to_string());
            if path.is_dir() {
                directories.push(path);
            }
        }
    }
    state.extend(onramp_loader::kernel::registered().expect("registered controls"));
    let default = |namespace: &Namespace| namespace.sysctl_get(DEFAULT).unwrap_or_default();
    let here = Namespace::current().expect("this namespace");
    let watched = namespaces.iter().copied().chain([&here]).map(|one| (one.inode(), default(one)));
    let others = Namespace::all().expect("namespaces").into_iter().map(|one| (one.inode(), default(&one)));
    let others = others.filter(|(_, name)| name.starts_with("onramp_"));
    state.extend(watched.chain(others).map(|(inode, name)| format!("{inode} {name}")));
    state.extend(run_cgroups().iter().map(|path| path.display().to_string()));
    state.sort();
    state.dedup();
    state
}

/// Every map, program and link of BPF that the kernel has, by its id.
pub fn bpf_objects() -> Vec<String> {
    let maps = MapInfoIter::default().map(|one| format!("map {} {}", one.id, one.name.to_string_lossy()));
    let programs =
        ProgInfoIter::default().map(|one| format!("program {} {}", one.id, one.name.to_string_lossy()));
    let links = LinkInfoIter::default().map(|one| format!("link {}", one.id));
    maps.chain(programs).chain(links).collect()
}

/// The processes of onramp's own, by name and number: commands, lease processes and watches of time limits.
pub fn processes() -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            // A lease process has only a name of its own, a watch only arguments.
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let arguments = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
            let ours = name.starts_with("onramp") || arguments.starts_with("onramp ");
            ours.then(|| format!("process {} {name} {arguments}", entry.file_name().display()))
        })
        .collect()
}

/// Sysctl with a namespace's default congestion control.
pub const DEFAULT: &str = "net.ipv4.tcp_congestion_control";

/// Cgroups of `onramp run` that exist now.
pub fn run_cgroups() -> Vec<PathBuf> {
    mounts::of_process(None)
        .unwrap_or_default()
        .into_iter()
        .filter(|mount| mount.kind == "cgroup2")
        .flat_map(|mount| fs::read_dir(mount.point).into_iter().flatten())
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("onramp-run-")))
        .collect()
}
