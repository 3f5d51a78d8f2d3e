//! A process that computes one task, and how long it is waited for.

use crate::peers::{Lap, Peer};
use crate::task::Task;
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Who computes, and in which process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// This one.
    Here(Peer),
    /// The script, `eager` or `compiled`.
    PyTorch(&'static str),
}

/// What all processes have in common.
pub struct Arena {
    /// The adapter that phasor takes.
    pub adapter: String,
    /// An interpreter with torch, or why there is none.
    pub python: Result<PathBuf, String>,
    /// How long an answer is waited for.
    pub limit: Duration,
}

/// Where compilers keep what they made: Mesa's, NVIDIA's and PyTorch's, and whatever else keeps to the desktop's rules, as
/// burn's tuning does.
const CACHES: [&str; 4] =
    ["MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"];

/// A process that has its first result.
pub struct Contestant {
    child: Child,
    requests: ChildStdin,
    replies: Receiver<String>,
    limit: Duration,
    /// Empty when the process began: no cache of another run helps it. Also holds what it wrote to standard error.
    directory: tempfile::TempDir,
    /// From the start of the process to numbers on the host, in seconds.
    pub first_result: f64,
}

impl Contestant {
    /// Starts the process and waits for its first result. The error is what to say about it.
    pub fn start(arena: &Arena, program: Program, task: Task) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut command = arena.command(program, task)?;
        let begin = Instant::now();
        let mut child = command
            .envs(CACHES.map(|variable| (variable, directory.path())))
            // Workers would outlive a process that is ended.
            .env("TORCHINDUCTOR_COMPILE_THREADS", "1")
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(errors(directory.path())).map_err(|e| e.to_string())?)
            .spawn()
            .map_err(|e| e.to_string())?;
        let (requests, replies) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        let (send, receive) = channel();
        // Ends with the process.
        std::thread::spawn(move || {
            BufReader::new(replies).lines().map_while(Result::ok).try_for_each(|l| send.send(l))
        });
        let mut this = Self { child, requests, replies: receive, limit: arena.limit, directory, first_result: 0.0 };
        // Libraries may say something first.
        while this.reply()? != "ready" {}
        this.first_result = begin.elapsed().as_secs_f64();
        Ok(this)
    }

    /// One more run.
    pub fn lap(&mut self) -> Result<Lap, String> {
        self.ask("lap")
    }

    /// The numbers of the first result.
    pub fn answer(&mut self) -> Result<Vec<f32>, String> {
        self.ask("answer")
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &str) -> Result<T, String> {
        // If the process is gone, the reply says why.
        let _ = writeln!(self.requests, "{request}");
        serde_json::from_str(&self.reply()?).map_err(|e| e.to_string())
    }

    fn reply(&mut self) -> Result<String, String> {
        self.replies.recv_timeout(self.limit).map_err(|e| match e {
            RecvTimeoutError::Timeout => format!("no answer in {} s", self.limit.as_secs()),
            RecvTimeoutError::Disconnected => self.last_words(),
        })
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(errors(self.directory.path())).unwrap_or_default();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        format!("ended: {}", last.unwrap_or("without a word").trim())
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        // Fails if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Arena {
    fn command(&self, program: Program, task: Task) -> Result<Command, String> {
        let task = serde_json::to_string(&task).map_err(|e| e.to_string())?;
        match program {
            Program::Here(peer) => {
                let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
                let name = peer.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                command.args(["--serve", &name, "--task", &task, "--adapter", &self.adapter]);
                Ok(command)
            }
            Program::PyTorch(mode) => {
                let mut command = Command::new(self.python.as_ref().map_err(String::clone)?);
                command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/operations.py"), &task, mode]);
                Ok(command)
            }
        }
    }
}

fn errors(directory: &Path) -> PathBuf {
    directory.join("errors")
}
