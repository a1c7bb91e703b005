//! The segments of a log directory.

use crate::disk::Disk;
use crate::durable_rename::join;
use crate::error::LogError;
use crate::format::{HEADER_BLOCK_BYTES, HeaderError, SegmentHeader};
use crate::lsn::Lsn;

/// A segment that is published.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Its path on the disk.
    pub(crate) path: String,
    pub(crate) header: SegmentHeader,
    /// The checksum of its header.
    pub(crate) checksum: u32,
}

impl Segment {
    pub(crate) fn corrupt(&self, offset: u64, lsn: Lsn, reason: String) -> LogError {
        LogError::Corrupt { path: self.path.clone(), offset, lsn, reason }
    }

    fn read(disk: &dyn Disk, directory: &str, name: &str) -> Result<Self, LogError> {
        let path = join(directory, name);
        let mut block = [0; HEADER_BLOCK_BYTES];
        let read = disk.open(&path).and_then(|file| file.read_at(&mut block, 0));
        let read = read.map_err(|error| LogError::io("read", &path, error))?;
        let damaged = |reason: &str| LogError::Corrupt {
            path: path.clone(),
            offset: 0,
            lsn: Lsn(name.split('-').next().and_then(|first| first.parse().ok()).unwrap_or(0)),
            reason: reason.into(),
        };
        if read < block.len() {
            return Err(damaged("the file ends within its header"));
        }
        match SegmentHeader::decode(&block) {
            Ok((header, checksum)) if header.name() == name => Ok(Self { path, header, checksum }),
            Ok(_) => Err(damaged("the header is that of another segment")),
            Err(HeaderError::Damaged) => Err(damaged(
                "its header is bad, and a segment has its name only when its header is durable",
            )),
            Err(HeaderError::UnknownVersion(version)) => {
                Err(LogError::UnknownFormat { path, version })
            }
        }
    }
}

/// Lists the segments of a directory, in the order of their records.
pub(super) fn list(disk: &dyn Disk, directory: &str) -> Result<Vec<Segment>, LogError> {
    let names = disk.list(directory).map_err(|error| LogError::io("list", directory, error))?;
    let names = names.iter().filter(|name| SegmentHeader::is_name(name));
    let mut segments = names
        .map(|name| Segment::read(disk, directory, name))
        .collect::<Result<Vec<_>, LogError>>()?;
    segments.sort_by_key(|segment| (segment.header.opening, segment.header.first));
    for pair in segments.windows(2) {
        if pair[1].header.first < pair[0].header.first {
            let reason = format!("{} was begun before it at a later record", pair[0].path);
            return Err(pair[1].corrupt(0, pair[1].header.first, reason));
        }
    }
    Ok(segments)
}
