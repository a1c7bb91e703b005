//! Integers in the hybrid of run-length encoding and bit-packing: definition levels, and indexes into a dictionary.
//!
//! Source: Parquet format, `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)".

/// The maximum width of values, in bits.
const WIDTH_MAX: usize = 32;

/// Reads the first `count` values of `width` bits and calls `tell` with each value and its number of repeats. Returns
/// the number of bytes that hold them; `None` if they are cut off or damaged.
pub(super) fn read(
    bytes: &[u8],
    width: usize,
    count: u64,
    mut tell: impl FnMut(u32, u64),
) -> Option<usize> {
    if width > WIDTH_MAX {
        return None;
    }
    let mut offset = 0;
    let mut left = count;
    while left > 0 {
        let header = number(bytes, &mut offset)?;
        let length = header >> 1;
        if header & 1 == 0 {
            let value = bytes.get(offset..offset + width.div_ceil(8))?;
            offset += value.len();
            let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            let times = length.min(left);
            tell(value, times);
            left -= times;
            continue;
        }
        // Groups of eight values. The last one may be cut off behind the wanted values.
        let groups = usize::try_from(length).ok()?;
        let values = left.min(length.checked_mul(8)?);
        left -= values;
        let values = usize::try_from(values).ok()?;
        let packed_bytes = (values * width).div_ceil(8);
        let packed = bytes.get(offset..offset + packed_bytes)?;
        (0..values).for_each(|position| tell(unpack(packed, width, position), 1));
        offset += if left == 0 { packed_bytes } else { groups.checked_mul(width)? };
    }
    Some(offset)
}

/// A bit-packed value, least significant bit first.
fn unpack(packed: &[u8], width: usize, position: usize) -> u32 {
    let first = position * width;
    (0..width).fold(0, |value, bit| {
        let position = first + bit;
        value | u32::from(packed[position / 8] >> (position % 8) & 1) << bit
    })
}

/// The header of a run: an unsigned LEB128 integer.
fn number(bytes: &[u8], offset: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let byte = *bytes.get(*offset)?;
        *offset += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(bytes: &[u8], width: usize, count: u64) -> Option<(usize, Vec<u32>)> {
        let mut values = Vec::new();
        let end = read(bytes, width, count, |value, times| {
            values.extend(std::iter::repeat_n(value, usize::try_from(times).unwrap_or(0)));
        })?;
        Some((end, values))
    }

    #[test]
    fn runs_of_both_kinds_are_read_up_to_the_last_wanted_value() {
        // 0 to 7 in three bits, as in the format's own example; then five times 300 in nine bits is a run of its own.
        let packed = [0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(values(&packed, 3, 8), Some((4, (0..8).collect())));
        assert_eq!(values(&packed, 3, 2), Some((2, vec![0, 1])));
        assert_eq!(values(&packed[..3], 3, 5), Some((3, (0..5).collect())));
        assert_eq!(values(&packed[..3], 3, 6), None);
        assert_eq!(values(&packed, 3, 9), None);
        assert_eq!(values(&[10, 0x2c, 0x01], 9, 4), Some((3, vec![300; 4])));
        assert_eq!(values(&[10, 0x2c], 9, 4), None);
        assert_eq!(values(&[4, 1, 0x03, 0b0000_0101], 1, 6), Some((4, vec![1, 1, 1, 0, 1, 0])));
        assert_eq!(values(&[8], 0, 4), Some((1, vec![0; 4])));
        assert_eq!(values(&[], 3, 0), Some((0, Vec::new())));
        assert_eq!(values(&packed, 33, 1), None);
        assert_eq!(values(&[0xff; 9], 8, 1), None);
    }
}
