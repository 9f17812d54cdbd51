//! Lists of system calls, by their numbers and arguments.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{self, Eq, MaskedEq};
use seccompiler::{SeccompCondition, SeccompRule};

pub(super) type Calls = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls by their numbers, with whatever arguments.
pub(super) fn listed(numbers: &[i64]) -> Calls {
    numbers.iter().map(|number| (*number, Vec::new())).collect()
}

/// Also a call where one of its arguments is one of these.
fn also(calls: &mut Calls, number: i64, argument: u8, operator: SeccompCmpOp, values: &[u32]) {
    let rule = |value: &u32| {
        let condition = SeccompCondition::new(argument, Dword, operator.clone(), u64::from(*value)).ok()?;
        SeccompRule::new(vec![condition]).ok()
    };
    calls.entry(number).or_default().extend(values.iter().filter_map(rule));
}

/// Calls that the web part makes.
pub(super) fn of_the_web_part() -> Calls {
    let mut calls = listed(&[
        // Its sockets.
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_shutdown,
        libc::SYS_close,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
        libc::SYS_getsockopt,
        libc::SYS_setsockopt,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        // Waiting.
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_eventfd2,
        libc::SYS_ppoll,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        // Memory.
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_madvise,
        // Threads.
        libc::SYS_clone3,
        libc::SYS_futex,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_rseq,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_exit,
        libc::SYS_exit_group,
        // Signals of its own.
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        // Time, chance and the host's name.
        libc::SYS_clock_getres,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_uname,
    ]);
    #[cfg(target_arch = "x86_64")]
    calls.extend(listed(&[libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_time]));
    also(&mut calls, libc::SYS_ioctl, 1, Eq, &[libc::FIONBIO as u32]);
    // Threads, and no processes.
    let thread = libc::CLONE_THREAD as u32;
    also(&mut calls, libc::SYS_clone, 0, MaskedEq(thread.into()), &[thread]);
    // Names of threads and of memory, which glibc gives.
    also(&mut calls, libc::SYS_prctl, 0, Eq, &[libc::PR_SET_NAME as u32, libc::PR_SET_VMA as u32]);
    calls
}

/// Calls that the broker never makes: other programs, the network, other processes, the host's state, and BPF that runs.
pub(super) fn refused_to_the_broker() -> Calls {
    let mut calls = listed(&[
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_setns,
        libc::SYS_unshare,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_open_by_handle_at,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_sethostname,
    ]);
    /// Commands of bpf(2) by their numbers in `enum bpf_cmd`: loading programs, attaching them, and links.
    const RUNNING: [u32; 8] = [5, 8, 9, 17, 28, 29, 34, 35];
    also(&mut calls, libc::SYS_bpf, 0, Eq, &RUNNING);
    calls.extend(writing_calls());
    calls
}

/// Calls that make or change files. The broker opens files as root, also where there is no Landlock.
fn writing_calls() -> Calls {
    let mut calls = listed(&[
        libc::SYS_openat2,
        libc::SYS_mkdirat,
        libc::SYS_mknodat,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_renameat2,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_truncate,
        libc::SYS_ftruncate,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
    ]);
    opening(&mut calls, libc::SYS_openat, 2);
    #[cfg(target_arch = "x86_64")]
    {
        opening(&mut calls, libc::SYS_open, 1);
        calls.extend(listed(&[
            libc::SYS_creat,
            libc::SYS_mkdir,
            libc::SYS_mknod,
            libc::SYS_link,
            libc::SYS_symlink,
            libc::SYS_rename,
            libc::SYS_renameat,
            libc::SYS_chmod,
            libc::SYS_chown,
            libc::SYS_lchown,
        ]));
    }
    calls
}

/// Opening to write, by the flags in this argument.
fn opening(calls: &mut Calls, number: i64, argument: u8) {
    let access = MaskedEq(libc::O_ACCMODE as u64);
    also(calls, number, argument, access, &[libc::O_WRONLY as u32, libc::O_RDWR as u32]);
    for flag in [libc::O_CREAT as u32, libc::O_TRUNC as u32] {
        also(calls, number, argument, MaskedEq(flag.into()), &[flag]);
    }
}
