// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Simulations side by side.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Makes numbers 0 to `count` - 1, `jobs` at once, and gives what was made in their order. After a failure nothing new is
/// begun.
///
/// # Errors
/// The first failure, in the order of workers.
pub(super) fn make<T: Send, E: Send>(
    jobs: NonZeroUsize,
    count: usize,
    make: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> Result<Vec<(usize, T)>, E> {
        let mut made = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            made.push((number, make(number).inspect_err(|_| failed.store(true, Ordering::Relaxed))?));
        }
        Ok(made)
    };
    let made = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.get().min(count)).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut made: Vec<_> = made.into_iter().flatten().collect();
    made.sort_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_workers_makes_each_once_and_in_order() {
        for jobs in [1, 2, 7, 100] {
            let made = make(jobs.try_into().unwrap(), 40, |number| Ok::<_, ()>(number * 2)).unwrap();
            assert!(made.into_iter().eq((0..40).map(|number| number * 2)), "{jobs}");
        }
        assert_eq!(make(NonZeroUsize::MIN, 0, Ok::<_, ()>), Ok(Vec::new()));
    }

    #[test]
    fn nothing_is_begun_after_a_failure() {
        let begun = AtomicUsize::new(0);
        let result = make(NonZeroUsize::MIN, 40, |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 3 { Err("no") } else { Ok(number) }
        });
        assert_eq!((result, begun.into_inner()), (Err("no"), 4));
    }
}
