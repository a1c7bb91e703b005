// Where samples come from: the server as it goes, or a recording.

const LINES_MAX = 36_000; // An hour of a recording.

/** Live samples. The browser connects again by itself. */
export class Live {
  constructor(onSample, onStatus) {
    this.source = new EventSource("events");
    this.source.onopen = () => onStatus("live");
    this.source.onerror = () => onStatus("lost");
    this.source.onmessage = (event) => onSample(JSON.parse(event.data));
  }
  close() { this.source.close(); }
}

/** Keeps samples to be saved as JSON lines. */
export class Recorder {
  constructor(first) { this.lines = first ? [JSON.stringify(first)] : []; }
  push(sample) { if (this.lines.length < LINES_MAX) this.lines.push(JSON.stringify(sample)); }
  save() {
    const url = URL.createObjectURL(new Blob([this.lines.join("\n"), "\n"], { type: "application/jsonl" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: "coscan.jsonl" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
}

/** Reads a recording; throws if a line is no sample. */
export function parse(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const samples = lines.map((line, index) => {
    let sample;
    try { sample = JSON.parse(line); } catch { sample = null; }
    if (typeof sample?.seconds !== "number") throw new Error(`line ${index + 1} is not a sample`);
    return sample;
  });
  if (samples.length === 0) throw new Error("the file holds no samples");
  return samples;
}

/** Plays a recording into a state. */
export class Player {
  constructor(samples, state) {
    this.samples = samples; this.state = state;
    this.first = samples[0].seconds; this.last = samples.at(-1).seconds;
    this.speed = 1; this.isPlaying = true;
    this.restart();
  }
  restart() { this.state.clear(); this.next = 0; this.time = this.first; }
  get length() { return Math.max(this.last - this.first, 1e-9); }
  get share() { return Math.min((this.time - this.first) / this.length, 1); }
  /** Some seconds of the wall clock have passed; true if something is new. */
  advance(passed) {
    if (!this.isPlaying) return false;
    this.time = Math.min(this.time + passed * this.speed, this.last);
    const before = this.next;
    this.catchUp();
    if (this.next === this.samples.length) this.isPlaying = false;
    return this.next !== before;
  }
  catchUp() {
    while (this.next < this.samples.length && this.samples[this.next].seconds <= this.time) this.state.apply(this.samples[this.next++]);
  }
  /** To a share of its length, from 0 to 1. Samples hold changes: going back begins at the start. */
  seek(share) {
    const time = this.first + share * this.length;
    if (time < this.time) this.restart();
    this.time = time;
    this.catchUp();
    this.state.snap();
  }
  /** By so many samples. */
  step(by) {
    this.isPlaying = false;
    const index = Math.min(Math.max(this.next - 1 + by, 0), this.samples.length - 1);
    this.seek((this.samples[index].seconds - this.first) / this.length + (by > 0 ? 1e-9 : 0));
  }
}
