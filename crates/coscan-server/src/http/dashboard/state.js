// What is known of the manager: the last sample, the maps, and the last minutes.

export const CELL = 5;
const VERSION = 1;
const HISTORY = 2048; // Samples.
const LOADS = 32768;
const RECENT = 16; // Samples.

/** A ring of rows of numbers. */
class Ring {
  constructor(rows, width) { this.data = new Float64Array(rows * width); this.rows = rows; this.width = width; this.clear(); }
  clear() { this.start = 0; this.length = 0; }
  push(values) {
    const row = (this.start + this.length) % this.rows;
    this.data.set(values, row * this.width);
    if (this.length < this.rows) this.length += 1; else this.start = (this.start + 1) % this.rows;
  }
  /** Where row `index` (0 is the oldest) begins in `data`. */
  at(index) { return ((this.start + index) % this.rows) * this.width; }
}

export class State {
  constructor() {
    this.loads = new Ring(LOADS, 5); // seconds, table, chunk, scans, bytes
    this.history = new Ring(HISTORY, History.WIDTH);
    this.traffic = new Traffic();
    this.clear();
  }

  clear() {
    this.sample = null; this.tables = []; this.maps = new Map(); this.version = 0;
    this.loads.clear(); this.history.clear(); this.traffic.clear();
  }

  /** Takes a sample; false if it is of another version. */
  apply(sample) {
    if (sample.version !== VERSION) return false;
    if (this.sample && sample.seconds < this.sample.seconds) this.clear(); // The server began anew.
    if (sample.tables) {
      this.tables = sample.tables;
      const known = new Set(sample.tables.map((table) => table.id));
      for (const id of this.maps.keys()) if (!known.has(id)) this.maps.delete(id);
    }
    for (const part of sample.maps ?? []) this.applyMap(part);
    for (const load of sample.loads ?? []) this.loads.push([load.seconds, load.table, load.chunk, load.scans, load.bytes]);
    this.history.push(History.row(sample, this.sample));
    this.traffic.push(sample);
    this.sample = sample;
    this.version += 1;
    return true;
  }

  applyMap(part) {
    let map = this.maps.get(part.table);
    const size = part.columns * part.bins * CELL;
    if (!map || map.cells.length !== size) {
      if (!part.whole) return; // Changes of something unknown.
      map = { cells: new Uint8Array(size), shown: new Float32Array(size) };
      map.shown.set(part.cells);
      this.maps.set(part.table, map);
    }
    Object.assign(map, { columns: part.columns, bins: part.bins, chunks: part.chunks });
    if (part.whole) { map.cells.set(part.cells); return; }
    for (let at = 0; at + CELL < part.cells.length + 1; at += CELL + 1) {
      map.cells.set(part.cells.slice(at + 1, at + 1 + CELL), part.cells[at] * CELL);
    }
  }

  /** Shows what is at once, without a way to it: after a jump. */
  snap() { for (const map of this.maps.values()) map.shown.set(map.cells); }

  /** The last sample with all tables and whole maps: the first line of a recording. */
  whole() {
    const maps = [...this.maps].map(([table, map]) => ({
      table, columns: map.columns, bins: map.bins, chunks: map.chunks, whole: true, cells: [...map.cells],
    }));
    return { ...this.sample, tables: this.tables, maps };
  }
}

/** How fast totals have grown over the last second or two. */
export class Traffic {
  constructor() { this.clear(); }
  clear() { this.samples = []; }
  push(sample) { this.samples.push(sample); if (this.samples.length > RECENT) this.samples.shift(); }
  /** Bytes per second of a total of samples; 0 while it is not known at both ends. */
  rate(total) {
    const first = this.samples[0], last = this.samples.at(-1);
    const grown = first === last ? 0 : (total(last) - total(first)) / (last.seconds - first.seconds);
    return grown > 0 ? grown : 0;
  }
  /** The same of a number of a server. */
  rateOf(address, column) { return this.rate(({ servers }) => servers?.rows.find((server) => server.address === address)?.[column] ?? NaN); }
}

/** The rows of the history. */
export const History = {
  SECONDS: 0, SHARED: 1, READ: 6, SAVED: 7, POOL: 8, DECODED: 9, OPERATORS: 10, METADATA: 11, DECISION_US: 12, WIDTH: 13,
  row(sample, before) {
    const { totals, memory } = sample;
    const passed = before ? Math.max(sample.seconds - before.seconds, 1e-3) : Infinity;
    const rate = (name) => (before ? Math.max(totals[name] - before.totals[name], 0) / passed : 0);
    const decisions = before ? totals.decisions - before.totals.decisions : 0;
    const cost = decisions > 0 ? (totals.decision_us - before.totals.decision_us) / decisions : NaN;
    return [sample.seconds, ...sample.shared_bytes, rate("bytes_read"), rate("bytes_saved"),
      memory.pool, memory.decoded, memory.operators, memory.metadata, cost];
  },
};
