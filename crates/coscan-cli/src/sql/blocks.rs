//! Output of scripts that run at the same time, one whole block after another.
//!
//! The current script prints at once. Output of the others is kept, a little of it in memory, and the rest in one
//! temporary file without a name, which is deleted when the process ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum output of a script that is kept in memory, in bytes. More is written to the file.
const MEMORY_BYTES: usize = 64 << 10;

/// The blocks of all scripts, in their order.
///
/// Only the script that prints waits for a slow output, since each block has its own lock, which is locked before those
/// of the output and the file.
#[derive(Debug)]
pub(super) struct Blocks<W> {
    out: Mutex<W>,
    file: Mutex<Option<File>>,
    blocks: Vec<Mutex<Block>>,
}

/// Output of a script that is not printed yet.
#[derive(Debug, Default)]
struct Block {
    /// Whether all scripts before it have ended, so that its output is printed at once.
    is_current: bool,
    has_ended: bool,
    /// The first part, as ranges of the file.
    filed: Vec<Range<u64>>,
    memory: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    /// Creates blocks for a number of scripts.
    pub(super) fn new(out: W, scripts: usize) -> Arc<Self> {
        let block = |place| Mutex::new(Block { is_current: place == 0, ..Block::default() });
        let blocks = (0..scripts).map(block).collect();
        Arc::new(Self { out: Mutex::new(out), file: Mutex::default(), blocks })
    }

    /// The output of a script.
    pub(super) fn writer(self: &Arc<Self>, place: usize) -> BlockWriter<W> {
        BlockWriter { blocks: Arc::clone(self), place }
    }

    /// Ends the block of a script. If it was the current one, prints the kept output of the next scripts, up to the
    /// first that still runs.
    fn end(&self, place: usize) -> io::Result<()> {
        let mut block = lock(&self.blocks[place]);
        block.has_ended = true;
        let mut is_over = block.is_current;
        drop(block);
        for next in &self.blocks[place + 1..] {
            if !is_over {
                break;
            }
            let mut block = lock(next);
            block.is_current = true;
            self.print_kept(&mut block)?;
            is_over = block.has_ended;
        }
        lock(&self.out).flush()
    }

    fn print_kept(&self, block: &mut Block) -> io::Result<()> {
        let mut out = lock(&self.out);
        for range in std::mem::take(&mut block.filed) {
            let mut bytes = vec![0; MEMORY_BYTES];
            let mut offset = range.start;
            while offset < range.end {
                let count = (range.end - offset).min(MEMORY_BYTES as u64) as usize;
                self.read(offset, &mut bytes[..count])?;
                out.write_all(&bytes[..count])?;
                offset += count as u64;
            }
        }
        out.write_all(&std::mem::take(&mut block.memory))
    }

    fn keep(&self, block: &mut Block, bytes: &[u8]) -> io::Result<()> {
        block.memory.extend_from_slice(bytes);
        if block.memory.len() > MEMORY_BYTES {
            let range = self.append(&block.memory)?;
            block.memory.clear();
            match block.filed.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => block.filed.push(range),
            }
        }
        Ok(())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<Range<u64>> {
        let mut file = lock(&self.file);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let start = file.seek(SeekFrom::End(0))?;
        file.write_all(bytes)?;
        Ok(start..start + bytes.len() as u64)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = lock(&self.file);
        let file = file.as_mut().expect("a block with ranges has written to the file");
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints to the block of a script.
#[derive(Debug)]
pub(super) struct BlockWriter<W> {
    blocks: Arc<Blocks<W>>,
    place: usize,
}

impl<W: Write> BlockWriter<W> {
    /// Ends the block.
    ///
    /// # Errors
    /// If the kept output of the next blocks cannot be printed.
    pub(super) fn end(self) -> io::Result<()> {
        self.blocks.end(self.place)
    }
}

impl<W: Write> Write for BlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut block = lock(&self.blocks.blocks[self.place]);
        if block.is_current {
            return lock(&self.blocks.out).write(bytes);
        }
        self.blocks.keep(&mut block, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let block = lock(&self.blocks.blocks[self.place]);
        if block.is_current { lock(&self.blocks.out).flush() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn printed(blocks: &Blocks<Vec<u8>>) -> String {
        String::from_utf8(lock(&blocks.out).clone()).unwrap()
    }

    #[test]
    fn a_block_is_printed_at_once_when_it_is_its_turn_and_kept_until_then() {
        let blocks = Blocks::new(Vec::new(), 4);
        let [mut first, mut second, mut third, mut fourth] =
            [0, 1, 2, 3].map(|place| blocks.writer(place));
        third.write_all(b"third ").unwrap();
        second.write_all(b"second ").unwrap();
        first.write_all(b"first ").unwrap();
        assert_eq!(printed(&blocks), "first ");
        third.end().unwrap();
        assert_eq!(printed(&blocks), "first ");
        first.end().unwrap();
        assert_eq!(printed(&blocks), "first second ");
        second.write_all(b"more ").unwrap();
        fourth.write_all(b"fourth").unwrap();
        assert_eq!(printed(&blocks), "first second more ");
        second.end().unwrap();
        assert_eq!(printed(&blocks), "first second more third fourth");
        fourth.end().unwrap();
    }

    #[test]
    fn what_is_kept_does_not_stay_in_memory_and_comes_back_in_order() {
        let blocks = Blocks::new(Vec::new(), 3);
        let [first, mut second, mut third] = [0, 1, 2].map(|place| blocks.writer(place));
        let line = |name: &str, number| format!("{name} {number}\n");
        for number in 0..50_000 {
            second.write_all(line("second", number).as_bytes()).unwrap();
            third.write_all(line("third", number).as_bytes()).unwrap();
        }
        for block in &blocks.blocks[1..] {
            let block = lock(block);
            assert!(block.memory.len() <= MEMORY_BYTES && block.filed.len() > 1, "{block:?}");
        }
        third.end().unwrap();
        second.end().unwrap();
        first.end().unwrap();
        let lines =
            ["second", "third"].map(|name| (0..50_000).map(move |number| line(name, number)));
        assert!(printed(&blocks) == lines.into_iter().flatten().collect::<String>());
    }
}
