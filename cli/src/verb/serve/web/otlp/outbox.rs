//! Flows that have ended and wait to be pushed.

use std::collections::VecDeque;

use crate::verb::serve::row::Row;

/// Flows that wait; beyond that the oldest are dropped.
const WAITING_MAX: usize = 4096;

#[derive(Default)]
pub(in super::super) struct Outbox {
    waiting: VecDeque<Row>,
    pub taken: u64,
    pub dropped: u64,
}

impl Outbox {
    pub fn add(&mut self, row: &Row) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(row.clone());
    }

    /// The oldest, not more than so many.
    pub fn take(&mut self, most: usize) -> Vec<Row> {
        self.waiting.drain(..most.min(self.waiting.len())).collect()
    }

    /// What was taken out and has to wait again, as far as there is room.
    pub fn put_back(&mut self, mut rows: Vec<Row>) {
        let room = WAITING_MAX - self.waiting.len();
        self.dropped(rows.len().saturating_sub(room));
        let kept = rows.split_off(rows.len().saturating_sub(room));
        for row in kept.into_iter().rev() {
            self.waiting.push_front(row);
        }
    }

    /// So many have arrived.
    pub fn taken(&mut self, rows: usize) {
        self.taken += rows as u64;
    }

    /// So many will never arrive.
    pub fn dropped(&mut self, rows: usize) {
        self.dropped += rows as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::serve::web::tests::row;

    #[test]
    fn the_oldest_are_dropped_and_counted() {
        let mut outbox = Outbox::default();
        let add = |outbox: &mut Outbox, flows: std::ops::Range<u64>| {
            flows.for_each(|flow| outbox.add(&row(flow, "198.51.100.7:443", "fixed")));
        };
        let ids = |rows: &[Row]| (rows[0].flow, rows[rows.len() - 1].flow);
        add(&mut outbox, 0..5_000);
        assert_eq!(outbox.dropped, 904);
        let taken = outbox.take(512);
        assert_eq!(ids(&taken), (904, 1_415));
        // In the meantime others have ended: of those taken out the newest still have room.
        add(&mut outbox, 5_000..5_500);
        outbox.put_back(taken);
        assert_eq!(outbox.dropped, 904 + 500);
        assert_eq!(ids(&outbox.take(10_000)), (1_404, 5_499));
    }
}
