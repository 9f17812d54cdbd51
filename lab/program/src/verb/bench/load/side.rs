//! One end of every connection that is held.

use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use anyhow::{Context, anyhow};
use nix::sched::{CloneFlags, unshare};
use onramp_net::Namespace;

type Work = Box<dyn FnOnce(&mut Vec<TcpStream>) + Send>;

/// A thread with a table of files of its own, which holds what `ulimit -n` allows in addition to the tables of others. What is
/// open when it is made stays open until it is dropped.
pub(super) struct Side {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Side {
    /// In this namespace.
    pub fn new(namespace: &Namespace) -> anyhow::Result<Self> {
        let (work, given) = mpsc::channel::<Work>();
        // A thread is in the namespace of the one that has made it.
        let thread = namespace.run(|| {
            thread::Builder::new().spawn(move || {
                let mut sockets = Vec::new();
                for work in given {
                    work(&mut sockets);
                }
            })
        })??;
        let side = Self { work: Some(work), thread: Some(thread) };
        side.run(|_| unshare(CloneFlags::CLONE_FILES).context("a table of files for held connections"))?;
        Ok(side)
    }

    /// Has it do something with its sockets, and waits for the result.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Vec<TcpStream>) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        self.begin(work)?.recv()?
    }

    /// As [`run`](Self::run), and does not wait.
    pub fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Vec<TcpStream>) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<Receiver<anyhow::Result<T>>> {
        let (done, result) = mpsc::channel();
        // A side that has gone needs no result.
        let work: Work = Box::new(move |sockets| drop(done.send(work(sockets))));
        let thread = self.work.as_ref().context("the end of a side")?;
        thread.send(work).map_err(|_| anyhow!("what holds connections has panicked"))?;
        Ok(result)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so itself.
            let _ = thread.join();
        }
    }
}
