// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The largest of what was seen within a window, in constant space: three candidates, each seen after the one before and
//! smaller, of which the next takes the place of one that has left the window (Nichols; `lib/win_minmax.c`).

/// What was seen, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: u32,
    value: u64,
}

/// See the module. Times are counts, of rounds for instance, and never go back.
#[derive(Clone, Debug)]
pub struct Maximum {
    window: u32,
    candidates: [Seen; 3],
}

impl Maximum {
    /// Over so long; 0 until something is seen.
    pub fn new(window: u32) -> Self {
        Self { window, candidates: [Seen::default(); 3] }
    }

    /// The largest.
    pub fn get(&self) -> u64 {
        self.candidates[0].value
    }

    /// A further value (`minmax_running_max`).
    pub fn add(&mut self, at: u32, value: u64) {
        let seen = Seen { at, value };
        let [first, second, third] = &mut self.candidates;
        if value >= first.value || at - third.at > self.window {
            self.candidates = [seen; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (seen, seen);
        } else if value >= third.value {
            *third = seen;
        }
        self.age(seen);
    }

    /// Candidates too old make place, and those that are as old as one before are replaced after a quarter and after half of
    /// the window (`minmax_subwin_update`).
    fn age(&mut self, seen: Seen) {
        let [first, second, third] = self.candidates;
        let age = seen.at - first.at;
        if age > self.window {
            self.candidates = [second, third, seen];
            if seen.at - second.at > self.window {
                self.candidates = [third, seen, seen];
            }
        } else if second.at == first.at && age > self.window / 4 {
            self.candidates = [first, seen, seen];
        } else if third.at == second.at && age > self.window / 2 {
            self.candidates = [first, second, seen];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(values: &[u64]) -> u64 {
        let mut maximum = Maximum::new(10);
        for (at, value) in (1..).zip(values) {
            maximum.add(at, *value);
        }
        maximum.get()
    }

    #[test]
    fn the_largest_is_kept_for_the_window_and_then_gives_way_to_a_later_one() {
        assert_eq!(after(&[]), 0);
        assert_eq!(after(&[5, 9, 7]), 9);
        let mut values = vec![100];
        values.extend(std::iter::repeat_n(60, 10));
        assert_eq!(after(&values), 100, "ten rounds old");
        values.push(60);
        assert_eq!(after(&values), 60, "eleven rounds old");
    }

    /// Of values that fall, no more than three are kept: the one that follows is near the largest within the window.
    #[test]
    fn of_falling_values_the_window_forgets_the_oldest() {
        let falling: Vec<u64> = (0..40).map(|at| 1_000 - 10 * at).collect();
        for until in 12..=40 {
            let (least, most) = (falling[until - 1], falling[until - 11]);
            let kept = after(&falling[..until]);
            assert!((least..=most).contains(&kept), "{until}: {least} {kept} {most}");
        }
    }

    #[test]
    fn after_a_silence_longer_than_the_window_only_the_new_counts() {
        let mut maximum = Maximum::new(10);
        maximum.add(1, 100);
        maximum.add(12, 3);
        assert_eq!(maximum.get(), 3);
    }
}
