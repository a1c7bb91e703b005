//! A file with its page cache.

use std::collections::BTreeMap;

use coscan_core::SplitMix64;

/// The size of the unit that a crash keeps or loses as a whole, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// A file as it is read, and as it is on the medium.
///
/// The system writes dirty sectors back whenever it likes. So after a crash, each sector that was written since the last
/// sync has the content that it had at one moment since then, whatever other sectors have.
#[derive(Clone, Debug, Default)]
pub(super) struct CachedFile {
    /// The content that is read.
    cache: Vec<u8>,
    /// The content on the medium.
    durable: Vec<u8>,
    /// The contents that each dirty sector has had since the last sync, oldest first.
    dirty: BTreeMap<usize, Vec<Vec<u8>>>,
    /// The lengths that the file has had since the last sync, oldest first.
    lengths: Vec<usize>,
}

impl CachedFile {
    pub(super) fn content(&self) -> &[u8] {
        &self.cache
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if end > self.cache.len() {
            self.set_length(end);
        }
        self.cache[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES {
            self.remember(sector);
        }
    }

    pub(super) fn set_length(&mut self, length: usize) {
        if length == self.cache.len() {
            return;
        }
        let shorter = length < self.cache.len();
        self.cache.resize(length, 0);
        self.lengths.push(length);
        if shorter && !length.is_multiple_of(SECTOR_BYTES) {
            self.remember(length / SECTOR_BYTES);
        }
    }

    /// Makes the dirty sectors and the length durable. A sector that a failed sync has left clean is not among them.
    pub(super) fn sync(&mut self) {
        for length in self.lengths.drain(..) {
            self.durable.resize(length, 0);
        }
        self.durable.resize(self.cache.len(), 0);
        for sector in std::mem::take(&mut self.dirty).into_keys() {
            let content = self.sector(sector);
            place(&mut self.durable, sector, &content);
        }
    }

    /// Lets a sync fail: some sectors reach the medium, and all are clean.
    pub(super) fn fail_sync(&mut self, random: &mut SplitMix64) {
        self.durable = self.after_crash(random);
        self.dirty.clear();
        self.lengths.clear();
    }

    /// Drops clean sectors from the cache, so that what the medium has is read again.
    pub(super) fn evict(&mut self) {
        let mut content = self.durable.clone();
        content.resize(self.cache.len(), 0);
        for sector in self.dirty.keys() {
            place(&mut content, *sector, &self.sector(*sector));
        }
        self.cache = content;
    }

    /// Changes one bit, in the cache and on the medium.
    pub(super) fn flip_bit(&mut self, byte: usize, bit: u8) {
        for content in [&mut self.cache, &mut self.durable] {
            if let Some(byte) = content.get_mut(byte) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    /// The content after the power was off.
    pub(super) fn crash(&mut self, random: &mut SplitMix64) {
        let content = self.after_crash(random);
        *self = Self { cache: content.clone(), durable: content, ..Self::default() };
    }

    fn after_crash(&self, random: &mut SplitMix64) -> Vec<u8> {
        let choice = Choice::new(random);
        let mut content = self.durable.clone();
        let lengths = choice.of(self.lengths.len(), random);
        for length in &self.lengths[..lengths] {
            content.resize(*length, 0);
        }
        for (sector, versions) in &self.dirty {
            if let Some(version) = choice.of(versions.len(), random).checked_sub(1) {
                place(&mut content, *sector, &versions[version]);
            }
        }
        content
    }

    fn sector(&self, sector: usize) -> Vec<u8> {
        let start = (sector * SECTOR_BYTES).min(self.cache.len());
        let end = (start + SECTOR_BYTES).min(self.cache.len());
        self.cache[start..end].to_vec()
    }

    fn remember(&mut self, sector: usize) {
        let content = self.sector(sector);
        self.dirty.entry(sector).or_default().push(content);
    }
}

/// How much a crash keeps: often nothing or everything, or else some by chance.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    Nothing,
    Everything,
    Some,
}

impl Choice {
    pub(super) fn new(random: &mut SplitMix64) -> Self {
        match random.below(6) {
            0 => Self::Nothing,
            1 => Self::Everything,
            _ => Self::Some,
        }
    }

    /// How many of the first changes of one thing are kept.
    pub(super) fn of(self, changes: usize, random: &mut SplitMix64) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Everything => changes,
            Self::Some => random.below(changes as u64 + 1) as usize,
        }
    }
}

/// Puts a sector into a content, as far as that reaches.
fn place(content: &mut [u8], sector: usize, bytes: &[u8]) {
    let start = sector * SECTOR_BYTES;
    if let Some(place) = content.get_mut(start..) {
        let length = place.len().min(bytes.len());
        place[..length].copy_from_slice(&bytes[..length]);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn outcomes(file: &CachedFile) -> std::collections::BTreeSet<Vec<u8>> {
        (0..400).map(|seed| file.after_crash(&mut SplitMix64(seed))).collect()
    }

    #[test]
    fn a_crash_tears_at_sectors_and_reorders() {
        let mut file = CachedFile::default();
        file.set_length(1024);
        file.sync();
        file.write(0, &[1; 1024]);
        file.write(512, &[2; 512]);
        let seen: std::collections::BTreeSet<_> =
            outcomes(&file).iter().map(|content| (content[0], content[600])).collect();
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)].into());
        file.sync();
        assert_eq!(outcomes(&file).len(), 1);
    }

    #[test]
    fn what_a_failed_sync_lost_is_read_but_not_synced() {
        let mut file = CachedFile::default();
        file.set_length(512);
        file.sync();
        file.write(0, &[7; 512]);
        let mut lost = (0..).map(SplitMix64);
        let mut random = lost.find(|random| file.after_crash(&mut random.clone())[0] == 0).unwrap();
        file.fail_sync(&mut random);
        file.sync();
        assert_eq!(file.content()[0], 7);
        assert_eq!(file.after_crash(&mut random)[0], 0);
        file.evict();
        assert_eq!(file.content()[0], 0);
        file.write(0, &[7; 512]);
        file.sync();
        assert_eq!(file.after_crash(&mut random)[0], 7);
    }
}
