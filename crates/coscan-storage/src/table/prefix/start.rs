//! Decompresses the start of a page: libraries decompress all or nothing.
//!
//! Source: Parquet format, `Compression.md`; Snappy, `format_description.txt`; zstd's streams (RFC 8878).

use std::borrow::Cow;
use std::io::Read;

use parquet::basic::Compression;

/// Whether [`decompress`] knows a codec.
pub(super) fn is_known(codec: Compression) -> bool {
    matches!(codec, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_))
}

/// The number of bytes to decompress in the first attempt.
pub(super) fn first_bytes(codec: Compression) -> usize {
    match codec {
        // It decompresses whole blocks of 128 KiB: fewer bytes take as long.
        Compression::ZSTD(_) => 128 * 1024,
        _ => 1024,
    }
}

/// The first bytes of a page, at most `bytes_max`, as far as the start of the compressed bytes yields them. It stops
/// at damaged bytes.
pub(super) fn decompress(codec: Compression, compressed: &[u8], bytes_max: usize) -> Cow<'_, [u8]> {
    match codec {
        Compression::UNCOMPRESSED => compressed[..compressed.len().min(bytes_max)].into(),
        Compression::SNAPPY => {
            let mut out = Vec::new();
            // Wherever it stopped, the output so far is right.
            let _ = snappy(compressed, bytes_max, &mut out);
            out.truncate(bytes_max);
            out.into()
        }
        Compression::ZSTD(_) => {
            let mut out = Vec::new();
            if let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(compressed) {
                // The missing rest is an error; the bytes before it are in `out`.
                let _ = decoder.take(bytes_max as u64).read_to_end(&mut out);
            }
            out.into()
        }
        _ => Vec::new().into(),
    }
}

/// Snappy's raw format: a length, then literals and copies of earlier output.
fn snappy(mut input: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Option<()> {
    while byte(&mut input)? & 0x80 != 0 {}
    while out.len() < bytes_max {
        let tag = byte(&mut input)?;
        let upper = usize::from(tag >> 2);
        let (offset, length) = match tag & 3 {
            0 => {
                let length = match upper {
                    0..60 => upper,
                    _ => little_endian(&mut input, upper - 59)?,
                };
                let available = input.len().min(length.checked_add(1)?);
                out.extend_from_slice(&input[..available]);
                input = &input[available..];
                continue;
            }
            1 => (upper >> 3 << 8 | usize::from(byte(&mut input)?), 4 + (upper & 7)),
            2 => (little_endian(&mut input, 2)?, 1 + upper),
            _ => (little_endian(&mut input, 4)?, 1 + upper),
        };
        let start = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        // A copy may overlap its own output.
        for position in start..start + length {
            out.push(out[position]);
        }
    }
    Some(())
}

fn byte(input: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = input.split_first()?;
    *input = rest;
    Some(first)
}

fn little_endian(input: &mut &[u8], bytes: usize) -> Option<usize> {
    let mut number = 0;
    for position in 0..bytes {
        number |= usize::from(byte(input)?) << (8 * position);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_snappy_is_decompressed_without_the_rest() {
        // 11 bytes: "abcd", a copy of 4 from 4 back, "xyz".
        let compressed = [11, 3 << 2, b'a', b'b', b'c', b'd', 1, 4, 2 << 2, b'x', b'y', b'z'];
        let start = |end: usize| decompress(Compression::SNAPPY, &compressed[..end], 100).to_vec();
        assert_eq!(start(12), b"abcdabcdxyz");
        assert_eq!(start(10), b"abcdabcdx");
        assert_eq!(start(7), b"abcd");
        assert_eq!(start(4), b"ab");
        assert_eq!(start(0), b"");
        assert_eq!(decompress(Compression::SNAPPY, &compressed, 6).as_ref(), b"abcdab");
        // A copy that reaches into itself: "a" and eleven more, from 1 back, two bytes of offset.
        let repeats = [12, 0, b'a', 10 << 2 | 2, 1, 0];
        assert_eq!(decompress(Compression::SNAPPY, &repeats, 100).as_ref(), b"aaaaaaaaaaaa");
        // From before the start.
        assert_eq!(decompress(Compression::SNAPPY, &[4, 0, b'a', 1, 2], 100).as_ref(), b"a");
    }
}
