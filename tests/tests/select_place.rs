//! Where `onramp select` and `onramp run` attach: at the root of the cgroup hierarchy, wherever and however that is mounted,
//! and nowhere else; next to what others have attached, or not at all.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use libbpf_rs::Link;
use nix::sys::socket::{getsockopt, sockopt::TcpCongestion};
use onramp_loader::ROOT;
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cgroups::cgroups;
use onramp_tests::cli::{self, DEFAULT, Ran, host_state, json, onramp};
use onramp_tests::traffic::{eventually, namespace};
use serde_json::Value;

/// Namespaces of a process of their own, in which commands run.
struct Apart {
    holder: Child,
    /// As options of nsenter(1).
    which: &'static [&'static str],
}

impl Apart {
    /// Begins with a script of its own.
    fn new(which: &'static [&'static str], script: &str) -> Self {
        let mut holder = Command::new("sh");
        holder.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        let holder = holder.spawn().unwrap();
        let own = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let name = format!("/proc/{}/comm", holder.id());
        let there = || fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n");
        assert!(eventually(there), "{script}");
        assert_ne!(own(&holder.id().to_string()), own("self"));
        Self { holder, which }
    }

    /// With mounts of its own.
    fn mounts() -> Self {
        Self::new(&["--mount"], "exec unshare --mount sleep 600")
    }

    fn run<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Ran {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string()]).args(self.which).arg("--").args(words);
        command.output().unwrap().into()
    }

    fn sh(&self, script: &str) -> Ran {
        self.run(["sh", "-c", script])
    }

    fn onramp(&self, words: &str) -> Ran {
        self.run([cli::binary().to_str().unwrap()].into_iter().chain(words.split(' ')))
    }

    /// The row of `onramp doctor` there about the hierarchy, which asks for no privilege.
    fn hierarchy(&self) -> Value {
        let binary = cli::binary().to_str().unwrap();
        let words = cli::WITHOUT_LOADING.into_iter().chain([binary, "--json", "doctor"]);
        cli::row(&self.run(words).report(), "cgroup v2")
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A cgroup below the root; removed on drop.
struct Pod(PathBuf);

impl Pod {
    fn new() -> Self {
        let pod = cgroups().join("onramp-test-pod");
        fs::create_dir_all(&pod).unwrap();
        Self(pod)
    }

    /// Namespaces of a container in it, with the hierarchy mounted as it is seen there.
    fn container(&self) -> Apart {
        let script = format!(
            "echo $$ >{}/cgroup.procs; exec unshare --cgroup --mount sh -c \
             'umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec sleep 600'",
            self.0.display()
        );
        Apart::new(&["--mount", "--cgroup"], &script)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        assert!(eventually(|| fs::remove_dir(&self.0).is_ok()));
    }
}

/// The program of `onramp select`, held as another tool would.
struct Program {
    fd: OwnedFd,
    id: u32,
}

impl Program {
    fn of_select() -> Self {
        let id = Link::open(Path::new(ROOT).join("select/link")).unwrap().info().unwrap().prog_id;
        // SAFETY: the call takes a number.
        let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
        assert!(fd >= 0);
        // SAFETY: the descriptor is new, and owned here from now on.
        Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, id }
    }

    /// Attaches it so that it allows no other.
    fn attach_alone(&self, cgroup: &Path) {
        let directory = fs::File::open(cgroup).unwrap();
        let (program, kind) = (self.fd.as_raw_fd(), libbpf_sys::BPF_CGROUP_SOCK_OPS);
        // SAFETY: both descriptors are open.
        let failed = unsafe { libbpf_sys::bpf_prog_attach(program, directory.as_raw_fd(), kind, 0) };
        assert_eq!(failed, 0, "{}", cgroup.display());
    }

    fn detach(&self, cgroup: &Path) {
        let directory = fs::File::open(cgroup).unwrap();
        let (program, kind) = (self.fd.as_raw_fd(), libbpf_sys::BPF_CGROUP_SOCK_OPS);
        // SAFETY: both descriptors are open.
        let failed = unsafe { libbpf_sys::bpf_prog_detach2(program, directory.as_raw_fd(), kind) };
        assert_eq!(failed, 0, "{}", cgroup.display());
    }

    /// Has it be where an onramp put it that took what it saw for the root.
    fn move_to(&self, cgroup: &Path) {
        let pin = Path::new(ROOT).join("select/link");
        let directory = fs::File::open(cgroup).unwrap();
        let (program, kind) = (self.fd.as_raw_fd(), libbpf_sys::BPF_CGROUP_SOCK_OPS);
        // SAFETY: both descriptors are open; there are no options.
        let link =
            unsafe { libbpf_sys::bpf_link_create(program, directory.as_raw_fd(), kind, std::ptr::null()) };
        assert!(link >= 0);
        fs::remove_file(&pin).unwrap();
        let path = std::ffi::CString::new(pin.to_str().unwrap()).unwrap();
        // SAFETY: the link is open, and the path ends with a NUL.
        assert_eq!(unsafe { libbpf_sys::bpf_obj_pin(link, path.as_ptr()) }, 0);
        // SAFETY: nothing else owns it.
        drop(unsafe { OwnedFd::from_raw_fd(link) });
    }
}

/// A namespace whose default is reno, and the listening sockets there.
struct Place {
    namespace: Namespace,
    to: TcpListener,
}

impl Place {
    fn new() -> Self {
        let namespace = namespace();
        namespace.sysctl_set(DEFAULT, "reno").unwrap();
        let to = namespace.run(|| TcpListener::bind("127.0.0.1:7001").unwrap()).unwrap();
        Self { namespace, to }
    }

    /// What a new connection has that is made in a cgroup.
    fn control(&self, cgroup: &Path) -> String {
        let enter = |cgroup: &Path| fs::write(cgroup.join("cgroup.procs"), "0").unwrap();
        enter(cgroup);
        let address: SocketAddr = self.to.local_addr().unwrap();
        let stream = self.namespace.run(|| TcpStream::connect(address).unwrap()).unwrap();
        enter(&cgroups());
        let name = getsockopt(&stream, TcpCongestion).unwrap();
        name.to_string_lossy().trim_end_matches('\0').to_owned()
    }

    /// What `select test` answers for it.
    fn said(&self, cgroup: &str) -> (String, Value) {
        let arguments = format!("--json select test 127.0.0.1:7001 --connect{cgroup}");
        let said: Value = serde_json::from_str(&cli::inside(&self.namespace, &arguments).ok()).unwrap();
        let control = said["answers"][0]["congestion_control"].as_str().unwrap().to_owned();
        (control, said["rules_hold_in"].clone())
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn the_hierarchy_is_found_at_a_mount_point_of_any_name_and_not_where_it_is_covered() {
    let _attachments = Attachments::lock();
    let apart = Apart::mounts();
    apart.run(["umount", "/sys/fs/cgroup"]).ok();
    for point in ["/run/my cg", "/run/a\nb\tc\\d", "/run/\u{fc}ber #1 (deleted)", "/run/\\040"] {
        apart.run(["mkdir", "-p", point]).ok();
        apart.run(["mount", "-t", "cgroup2", "none", point]).ok();
        let row = apart.hierarchy();
        assert_eq!((&row["verdict"], &row["found"]), (&"ok".into(), &point.into()));
        apart.onramp("run plain -- true").ok();
        apart.onramp("select add --port 80 --use cubic").ok();
        assert_eq!(json("status")["selection"]["active"], true, "{point}");
        // A path of a cgroup may be written with that of its mount point.
        apart.run(["mkdir", &format!("{point}/onramp-test-pod")]).ok();
        let binary = cli::binary().to_str().unwrap();
        let cgroup = format!("{point}/onramp-test-pod");
        apart.run([binary, "select", "add", "--cgroup", &cgroup, "--use", "cubic"]).ok();
        assert!(onramp("select list").ok().contains("--cgroup /onramp-test-pod "), "{point}");
        apart.onramp("select del --all").ok();
        apart.run(["rmdir", &cgroup]).ok();
        apart.run(["umount", point]).ok();
    }
    apart.sh("mkdir /run/one /run/two; mount -t cgroup2 none /run/one; mount -t tmpfs none /run/one").ok();
    assert_eq!(apart.hierarchy()["verdict"], "missing");
    apart.onramp("run plain -- true").refused(3);
    apart.sh("mount -t cgroup2 none /run/two").ok();
    assert_eq!(apart.hierarchy()["found"], "/run/two");
    apart.onramp("run plain -- true").ok();
    fs::remove_dir("/run/one").unwrap();
    fs::remove_dir("/run/two").unwrap();
}

#[test]
#[ignore = "in a guest: make test"]
fn what_doctor_says_where_there_is_no_hierarchy_mounts_it_and_covers_nothing() {
    let _attachments = Attachments::lock();
    let version_1 = "umount /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup; mkdir /sys/fs/cgroup/named; \
        mount -t cgroup -o none,name=onramp none /sys/fs/cgroup/named";
    for before in [
        "umount /sys/fs/cgroup".to_owned(),
        version_1.into(),
        format!("{version_1}; mount -o remount,ro /sys/fs/cgroup"),
        format!("{version_1}; mkdir /sys/fs/cgroup/unified"),
        format!("{version_1}; mkdir /sys/fs/cgroup/unified; touch /sys/fs/cgroup/unified/other"),
        "umount /sys/fs/cgroup; mount -t cgroup -o none,name=onramp none /sys/fs/cgroup".into(),
        "umount -l /sys".into(),
    ] {
        let apart = Apart::mounts();
        apart.sh(&before).ok();
        let list = || apart.sh("ls -d /sys/fs/cgroup/* /sys/fs/cgroup/named/*").stdout;
        let there = list();
        // Without /sys there is no BPF file system either, but that of the process above.
        let row = apart.hierarchy();
        if before.contains("-l /sys") {
            assert_eq!(row["verdict"], "ok", "{before}");
            continue;
        }
        let remedy = row["advice"].as_str().unwrap();
        assert_eq!(row["verdict"], "missing", "{before}");
        assert!(apart.onramp("run plain -- true").refused(3).contains(remedy), "{before}");
        assert!(apart.onramp("select add --port 80 --use cubic").refused(3).contains(remedy), "{before}");
        apart.sh(remedy).ok();
        let now = list();
        for one in there.lines() {
            assert!(now.lines().any(|line| line == one), "{before}; {remedy}: {one} is gone from {now}");
        }
        assert_eq!(apart.hierarchy()["verdict"], "ok", "{before}; {remedy}");
        apart.onramp("run plain -- true").ok();
        apart.onramp("select add --port 80 --use cubic").ok();
        apart.onramp("select del --all").ok();
        drop(apart);
        let _ = fs::remove_dir("/run/cgroup2");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn where_the_root_is_out_of_sight_no_rule_is_made_that_holds_in_a_part_alone() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let (pod, place) = (Pod::new(), Place::new());
    let container = pod.container();
    let before = host_state(&[&place.namespace]);
    for dry_run in ["", " --dry-run"] {
        let said = container.onramp(&format!("select add --port 7001 --use cubic{dry_run}")).refused(3);
        assert!(said.contains("/sys/fs/cgroup") && said.contains("nsenter"), "{said}");
    }
    assert_eq!(host_state(&[&place.namespace]), before);
    assert_eq!(place.control(&cgroups()), "reno");
    let row = container.hierarchy();
    assert_eq!(row["verdict"], "warning", "{row}");
    assert!(row["advice"].as_str().unwrap().contains("nsenter --target 1 --mount --cgroup"), "{row}");
    // A run takes a cgroup of its own, below what is seen.
    let run = format!("{} run plain -- sh -c 'exec cat /proc/self/cgroup'", cli::binary().display());
    let said = container.sh(&format!("echo $$ >/sys/fs/cgroup/cgroup.procs; {run}")).ok();
    assert!(said.contains("0::/onramp-run-"), "{said}");
    // What the remedy says.
    container
        .run(
            ["nsenter", "--target", "1", "--mount", "--cgroup", cli::binary().to_str().unwrap()]
                .into_iter()
                .chain(["select", "add", "--port", "7001", "--use", "cubic"]),
        )
        .ok();
    assert_eq!(place.control(&cgroups()), "cubic");
    // The program is at the root by now, so rules that are made there hold everywhere.
    container.onramp("select add --port 7001 --connect --use plain").ok();
    assert_eq!(place.control(&cgroups()), "onramp_plain");
    assert_eq!(json("select list")["active"], true);
    // Names of cgroups outside are not known there, and are not said to be gone.
    onramp("select add --cgroup / --use cubic").ok();
    container.onramp("select list").refused(3);
    container.onramp("select test 127.0.0.1").refused(3);
}

#[test]
#[ignore = "in a guest: make test"]
fn rules_whose_program_is_not_at_the_root_are_said_to_hold_there_alone_and_mended() {
    let _attachments = Attachments::lock();
    let (pod, place) = (Pod::new(), Place::new());
    onramp("select add --port 7001 --use cubic").ok();
    assert_eq!(place.said(""), ("cubic".into(), Value::Null));
    Program::of_select().move_to(&pod.0);
    let named = Value::from("/onramp-test-pod");
    assert_eq!((place.control(&cgroups()), place.control(&pod.0)), ("reno".into(), "cubic".into()));
    assert_eq!(place.said(""), ("reno".into(), named.clone()));
    assert_eq!(place.said(" --cgroup /"), ("reno".into(), named.clone()));
    assert_eq!(place.said(" --cgroup /onramp-test-pod"), ("cubic".into(), named.clone()));
    for report in [json("select list"), json("status")["selection"].clone()] {
        assert_eq!((&report["active"], &report["holds_in"]), (&false.into(), &named), "{report}");
    }
    let row = cli::row(&cli::doctor(&Namespace::current().unwrap(), ""), "rules of select");
    assert_eq!(row["verdict"], "warning", "{row}");
    onramp("select add --port 9 --use cubic").ok();
    assert_eq!(place.control(&cgroups()), "cubic");
    assert_eq!(place.said(""), ("cubic".into(), Value::Null));
    assert_eq!(json("select list")["active"], true);
    // The end of its cgroup is the end of the program.
    Program::of_select().move_to(&pod.0);
    drop(pod);
    assert_eq!(json("status")["selection"]["active"], false);
    assert_eq!(place.said(""), ("reno".into(), Value::Null));
    onramp("select del --port 9").ok();
    assert_eq!(place.said(""), ("cubic".into(), Value::Null));
    assert_eq!(place.control(&cgroups()), "cubic");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_program_of_another_tool_that_allows_none_next_to_it_is_named_with_its_cgroup() {
    let _attachments = Attachments::lock();
    let pod = Pod::new();
    onramp("select add --port 9 --use cubic").ok();
    let other = Program::of_select();
    onramp("select del --all").ok();
    assert!(eventually(|| {
        let row = cli::row(&onramp("--json doctor").report(), "cgroup socket operations");
        (row["verdict"].as_str(), row["found"].as_str()) == (Some("ok"), Some("attaches"))
    }));
    let root = cgroups();
    let is_named = |said: &str, cgroup: &str| {
        let id = format!("id {}", other.id);
        assert!(said.contains(&format!("cgroup {cgroup} has")) && said.contains(&id), "{said}");
        assert!(said.contains(&format!("bpftool cgroup detach {cgroup} sock_ops {id}")), "{said}");
        assert!(!said.contains("onramp-run-"), "{said}");
    };
    other.attach_alone(&root);
    let root_named = root.to_str().unwrap();
    let before = host_state(&[]);
    is_named(&onramp("select add --port 80 --use cubic").refused(1), root_named);
    is_named(&onramp("run plain -- true").refused(1), root_named);
    let row = cli::row(&onramp("--json doctor").report(), "cgroup socket operations");
    assert_eq!(row["verdict"], "missing", "{row}");
    is_named(&format!("{} {}", row["found"], row["advice"]), root_named);
    assert_eq!(host_state(&[]), before);
    other.detach(&root);
    onramp("run plain -- true").ok();

    // One level down it is only in the way of what runs there.
    other.attach_alone(&pod.0);
    onramp("select add --port 80 --use cubic").ok();
    onramp("select del --all").ok();
    let container = pod.container();
    is_named(&container.onramp("run plain -- true").refused(1), "/sys/fs/cgroup");
    drop(container);
    other.detach(&pod.0);
}
