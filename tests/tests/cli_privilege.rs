//! Who may do what: a missing privilege ends with exit code 4 before anything has changed, also where it is only a
//! namespace's root who asks.

use std::process::Command;

use onramp_tests::Attachments;
use onramp_tests::cli::{self, Ran, host_state, onramp};

/// Runs the binary as a user who has these capabilities and no others.
fn with(capabilities: &str, arguments: &str) -> Ran {
    cli::as_nobody(capabilities).args(arguments.split(' ')).current_dir("/").output().unwrap().into()
}

/// Runs the binary as root in namespaces of its own; `before`: what to do there first.
fn unshared(namespaces: &[&str], before: &str, arguments: &str) -> Ran {
    let mut command = Command::new("unshare");
    let script = format!("{before} exec \"$0\" {arguments}");
    command.args(namespaces).args(["sh", "-c", &script]).arg(cli::public_copy()).output().unwrap().into()
}

#[test]
#[ignore = "in a guest: make test"]
fn without_the_right_to_configure_networks_nothing_is_attached_for_a_run_or_as_default() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let few = "+bpf,+perfmon,+dac_override";
    for arguments in ["run search -- true", "attach search --default", "attach search --default --dry-run"] {
        let error = with(few, arguments).refused(4);
        assert!(error.contains("CAP_NET_ADMIN"), "{arguments}: {error}");
        assert_eq!(host_state(&[]), before, "{arguments}");
    }
    onramp("attach search").ok();
    let before = host_state(&[]);
    for arguments in ["attach search --default", "attach search --default --dry-run"] {
        assert!(with(few, arguments).refused(4).contains("CAP_NET_ADMIN"), "{arguments}");
        assert_eq!(host_state(&[]), before, "{arguments}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn root_of_a_user_namespace_is_told_that_it_is_not_enough() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for arguments in
        ["attach search", "status", "detach --all", "run search -- true", "watch --for 1s", "doctor"]
    {
        let ran = unshared(&["--user", "--map-root-user"], "", arguments);
        if arguments == "doctor" {
            assert!(ran.stdout.contains("none of the capabilities"), "{ran:?}");
            continue;
        }
        let error = ran.refused(4);
        assert!(error.contains("CAP_BPF and CAP_PERFMON"), "{arguments}: {error}");
        assert!(error.contains("outside of user namespaces"), "{arguments}: {error}");
    }
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn in_a_container_without_the_hosts_bpf_file_system_nothing_is_mounted_or_attached() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let container = ["--mount", "--pid", "--fork", "--mount-proc"];
    let hide = "umount /sys/fs/bpf 2>/dev/null;";
    let error = unshared(&container, hide, "attach search").refused(3);
    assert!(error.contains("this is a container"), "{error}");
    assert_eq!(host_state(&[]), before);
}
