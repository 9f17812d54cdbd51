//! A small seeded generator (SplitMix64) and the way property tests are run: fixed seed, printed on failure.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// `ONRAMP_TEST_SEED`, or this seed if that is not set.
pub fn seed_or(seed: u64) -> u64 {
    std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(seed)
}

/// Runs a property on `cases` inputs drawn from `seed`, or from `ONRAMP_TEST_SEED` if that is set.
pub fn check<S: Strategy>(
    seed: u64,
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let seed = seed_or(seed);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    if let Err(error) = TestRunner::new_with_rng(config, random).run(&strategy, property) {
        panic!("seed {seed} (set ONRAMP_TEST_SEED={seed} to repeat): {error}");
    }
}
