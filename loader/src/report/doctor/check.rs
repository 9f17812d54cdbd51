//! One row of what `onramp doctor` prints.

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There.
    Ok,
    /// There, with something worth knowing.
    Warning,
    /// Not there.
    Missing,
}

/// Whose a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The host's: all its network namespaces have it.
    Host,
    /// The current network namespace's.
    Namespace,
}

/// One thing looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// Whose it is, if it is a setting.
    pub scope: Option<Scope>,
    /// What it is needed for.
    pub enables: &'static str,
    /// What to do; empty where nothing is.
    pub advice: String,
}

impl Check {
    pub(super) fn ok(name: &'static str, enables: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, found: found.into(), scope: None, enables, advice: String::new() }
    }

    pub(super) fn new(
        name: &'static str,
        enables: &'static str,
        result: Result<String, String>,
        advice: &str,
    ) -> Self {
        match result {
            Ok(found) => Self::ok(name, enables, found),
            Err(found) => {
                Self { verdict: Verdict::Missing, advice: advice.into(), ..Self::ok(name, enables, found) }
            }
        }
    }

    pub(super) fn of(self, scope: Scope) -> Self {
        Self { scope: Some(scope), ..self }
    }

    pub(super) fn warned(self, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, advice: advice.into(), ..self }
    }
}
