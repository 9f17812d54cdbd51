//! What was opened in the page, by names that cannot be guessed: a few, of which the oldest goes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::answer::Problem;
use super::body::Bodies;

/// Recordings that are kept; the oldest goes.
pub(super) const KEPT: usize = 4;

/// Those that are open, by their names.
pub(super) struct Kept<T> {
    kept: Mutex<VecDeque<(String, T)>>,
    pub bodies: Bodies,
    /// One at a time is read.
    pub reading: Arc<Semaphore>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { kept: Mutex::default(), bodies: Bodies::default(), reading: Arc::new(Semaphore::new(1)) }
    }
}

impl<T: Clone> Kept<T> {
    /// The recording of this name; without a name what is live.
    pub fn find(&self, name: Option<&str>, live: &T) -> Result<T, Problem> {
        let Some(name) = name else { return Ok(live.clone()) };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(kept, _)| kept == name).map(|(_, recording)| recording.clone()).ok_or_else(|| {
            let text = format!(
                "this recording is not open any more: {KEPT} are kept, until the server ends; open it again"
            );
            Problem::new(StatusCode::NOT_FOUND, text)
        })
    }

    /// Keeps one, under the name that is returned.
    pub fn keep(&self, recording: T) -> Result<String, getrandom::Error> {
        let mut secret = [0; 16];
        // The kernel's own, as the web part opens no file.
        getrandom::fill(&mut secret)?;
        let name: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((name.clone(), recording));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(name)
    }
}
