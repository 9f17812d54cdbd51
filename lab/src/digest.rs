// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the digests of runs and of images are made with.

/// Odd numbers without a pattern.
pub(crate) const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// Folds two words to one: their product, both halves of which count.
pub(crate) fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[0, 0x0a, 0xff]), "000aff");
    }

    #[test]
    fn both_halves_of_a_product_count() {
        assert_eq!(mix(1 << 63, 2), 1);
        assert_eq!(mix(3, 5), 15);
    }
}
