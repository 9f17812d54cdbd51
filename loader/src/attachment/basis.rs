//! The base that an algorithm gets: what its network namespace has as default, unless another is named.

use onramp_algorithm::{AfterExitOptions, Algorithm, Named, Options, StartPolicies};
use onramp_net::namespace::Namespace;

use crate::attachment::defaults;
use crate::attachment::options::AttachOptions;
use crate::object::abi::Base;
use crate::pins::{self, Pins};
use crate::system::bbr;
use crate::system::error::Error;
use crate::system::kernel::{self, Kernel};

/// What connections get after slow start, and what the current network namespace gives them without the algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// The base.
    pub base: Base,
    /// The namespace's default; where the algorithm is the default already, the one that it replaced.
    pub default: String,
    /// What that default does after slow start: a base, or that of an attached algorithm; `None`: neither.
    pub default_base: Option<Base>,
}

impl Basis {
    /// What an algorithm with this base would change in the current network namespace.
    ///
    /// # Errors
    /// [`Error::Io`] if the default cannot be read.
    pub fn here(algorithm: Algorithm, base: Base) -> Result<Self, Error> {
        let (default, default_base) = default_here(algorithm)?;
        Ok(Self { base, default, default_base })
    }
}

/// The base that [`crate::attach()`] would choose, and what it changes.
///
/// # Errors
/// [`Error::Privilege`], [`Error::NoBase`] if none is named and the default cannot be one, [`Error::NoCubic`],
/// [`Error::NoBbr`], [`Error::BbrAfterExit`], [`Error::NotOfBase`], [`Error::ObservesWith`].
pub fn basis(options: &AttachOptions) -> Result<Basis, Error> {
    kernel::require_privilege("attach")?;
    let kernel = Kernel::read()?;
    kernel.require_struct_ops()?;
    choose(&kernel, options)
}

/// [`basis`] on a kernel that can run controls.
pub(crate) fn choose(kernel: &Kernel, options: &AttachOptions) -> Result<Basis, Error> {
    let algorithm = options.parameters.algorithm();
    let (default, default_base) = default_here(algorithm)?;
    let base = match (options.base, default_base) {
        (Some(base), _) | (None, Some(base)) => base,
        (None, None) => return Err(Error::NoBase { control: default }),
    };
    require(kernel, algorithm, base)?;
    require_options(base, options.after_exit_over(base), options.start_over(base), options.observe)?;
    Ok(Basis { base, default, default_base })
}

/// Fails unless this kernel can run the algorithm over the base.
pub(crate) fn require(kernel: &Kernel, algorithm: Algorithm, base: Base) -> Result<(), Error> {
    if base == Base::Bbr && algorithm.is_always_called() {
        return Err(Error::BbrAfterExit { algorithm: algorithm.name() });
    }
    require_any(kernel, base)
}

/// Fails unless the base has these options, and does not run as if there were no algorithm.
pub(crate) fn require_options(
    base: Base,
    after_exit: AfterExitOptions,
    start: StartPolicies,
    observe: bool,
) -> Result<(), Error> {
    require_of_base(base, after_exit, "--after-exit")?;
    require_of_base(base, start, "--start")?;
    let asked = [
        (!after_exit.is_empty()).then(|| format!("--after-exit {after_exit}")),
        (!start.is_empty()).then(|| format!("--start {start}")),
    ];
    let asked: Vec<_> = asked.into_iter().flatten().collect();
    if observe && !asked.is_empty() {
        return Err(Error::ObservesWith { options: asked.join(" ") });
    }
    Ok(())
}

fn require_of_base<T: Named>(base: Base, options: Options<T>, by: &'static str) -> Result<(), Error> {
    match options.missing_from(base.name()) {
        Some(option) => Err(Error::NotOfBase {
            option: option.name(),
            by,
            base: base.name(),
            bases: option.bases().join(" or "),
        }),
        None => Ok(()),
    }
}

/// The options of a base behind its name; empty where there are none.
pub(crate) fn after_exit_text(options: AfterExitOptions) -> String {
    if options.is_empty() { String::new() } else { format!(" and its options {options} after the exit") }
}

/// What connections do at their start, behind the base's name; empty where that is nothing.
pub(crate) fn start_text(start: StartPolicies) -> String {
    if start.is_empty() { String::new() } else { format!(", start {start}") }
}

/// Fails unless this kernel offers the base to BPF.
pub(crate) fn require_any(kernel: &Kernel, base: Base) -> Result<(), Error> {
    match base {
        Base::Reno => Ok(()),
        Base::Cubic => kernel.missing_cubic().map_or(Ok(()), |missing| Err(Error::NoCubic { missing })),
        Base::Bbr => bbr::require(kernel),
    }
}

/// The default of the current network namespace without the algorithm, and what it does after slow start.
fn default_here(algorithm: Algorithm) -> Result<(String, Option<Base>), Error> {
    let mut default = defaults::here()?;
    if default == algorithm.congestion_control()
        && let Some(before) = defaults::recorded(&Pins::new(algorithm), &Namespace::current()?)
    {
        default = before;
    }
    let base = pins::base_of(&default);
    Ok((default, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_that_goes_on_after_the_exit_is_refused_over_bbr_by_name() {
        let inflight = onramp_algorithm::find("inflight").unwrap();
        let error = require(&Kernel::without_types(), inflight, Base::Bbr).unwrap_err();
        assert!(matches!(error, Error::BbrAfterExit { algorithm: "inflight" }), "{error}");
        require(&Kernel::without_types(), inflight, Base::Reno).unwrap();
    }

    #[test]
    fn options_are_refused_over_a_base_that_does_not_have_them_and_where_it_runs_alone() {
        let none = StartPolicies::default();
        let refused = |base, options: &str, observe| {
            let options = options.parse().unwrap();
            require_options(base, options, none, observe).err().map(|error| error.to_string())
        };
        assert_eq!(refused(Base::Cubic, "plateau,floor", false), None);
        assert_eq!(refused(Base::Reno, "floor", false), None);
        assert_eq!(refused(Base::Bbr, "none", true), None);
        let error = refused(Base::Reno, "plateau,floor", false).unwrap();
        assert!(error.contains("plateau") && error.contains("--base cubic"), "{error}");
        let error = refused(Base::Bbr, "floor", false).unwrap();
        assert!(error.contains("floor") && error.contains("--base cubic or reno"), "{error}");
        assert!(refused(Base::Cubic, "floor", true).unwrap().contains("--after-exit floor"));
        let refused = |base, observe| {
            let start = StartPolicies::of_base("cubic");
            require_options(base, AfterExitOptions::default(), start, observe)
                .err()
                .map(|error| error.to_string())
        };
        assert_eq!(refused(Base::Reno, false), None);
        assert!(refused(Base::Bbr, false).unwrap().contains("(--start)"));
        assert!(refused(Base::Cubic, true).unwrap().contains("--start resume+window+fast"));
    }
}
