// The map of the pool: columns × bins of chunks, drawn pixel by pixel.

import { CELL } from "./state.js";
import { cell as cellWords, number } from "./words.js";

const ROW_MAX = 30, ROW_MIN = 9, HEIGHT = 460; // CSS pixels.

/** A CSS colour as the three bytes of a pixel. */
function rgb(text) {
  const value = parseInt(text.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export class PoolMap {
  constructor(canvas, rows, axis, readout, isCalm) {
    Object.assign(this, { canvas, rows, axis, readout, isCalm });
    this.context = canvas.getContext("2d", { alpha: false });
    this.cursor = null; this.labels = ""; this.moves = false; this.width = 0;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.select(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.cursor ?? this.select([0, 0]));
  }

  theme(colours) {
    const names = ["cold", "loading", "stored", "in-use", "decoded", "wanted", "card"];
    this.colours = Object.fromEntries(names.map((name) => [name, rgb(colours(name))]));
    this.moves = true;
  }

  /** Shows a map with these columns; null if there is none. Called when a sample has come. */
  show(map, columns) {
    this.map = map;
    if (!map) return;
    this.columns = columns;
    const labels = columns.join("\u0000");
    if (labels !== this.labels || this.laidOut !== map.columns) {
      this.labels = labels; this.laidOut = map.columns;
      this.rows.replaceChildren(...columns.map((column) => Object.assign(document.createElement("span"), { textContent: column, title: column })));
      this.resize();
    }
    if (this.chunks !== map.chunks) {
      this.chunks = map.chunks;
      const mark = (text) => Object.assign(document.createElement("span"), { textContent: text });
      this.axis.replaceChildren(mark("chunk 0"), mark(number(Math.max(map.chunks - 1, 0))));
    }
    this.moves = true;
    if (this.cursor) this.describe();
  }

  /** After the window or the number of columns has changed: the only place that reads the layout. */
  resize() {
    if (!this.map) return;
    const scale = window.devicePixelRatio || 1, count = Math.max(this.map.columns, 1);
    const row = Math.min(Math.max(HEIGHT / count, ROW_MIN), ROW_MAX);
    this.canvas.style.height = this.rows.style.height = `${Math.round(row * count)}px`;
    this.rows.classList.toggle("hidden", row < 12);
    const width = Math.round(this.canvas.clientWidth * scale), height = Math.round(row * count) * scale;
    if (width === 0) return;
    this.canvas.width = width; this.canvas.height = Math.round(height);
    this.width = width; this.height = this.canvas.height;
    this.image = this.context.createImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.lines = { main: new Uint32Array(width), decoded: new Uint32Array(width), wanted: new Uint32Array(width) };
    this.moves = true;
  }

  /** Moves what is shown towards what is; draws if anything moved. */
  frame() {
    if (!this.map || !this.moves || !this.width || !this.colours) return;
    const { cells, shown } = this.map;
    const pace = this.isCalm() ? 1 : 0.22;
    let moves = false;
    for (let at = 0; at < cells.length; at += 1) {
      const way = cells[at] - shown[at];
      if (way === 0) continue;
      if (Math.abs(way) < 1.5) shown[at] = cells[at]; else { shown[at] += way * pace; moves = true; }
    }
    this.moves = moves;
    this.draw();
  }

  draw() {
    const { columns, bins } = this.map, { width, height, pixels, lines } = this;
    const card = pack(this.colours.card);
    pixels.fill(card);
    const gap = width / bins >= 7 ? Math.min(Math.max(1, Math.round(width / bins / 14)), 3) : 0;
    for (let column = 0; column < columns; column += 1) {
      const top = Math.round((column * height) / columns), end = Math.round(((column + 1) * height) / columns);
      const rows = end - top, edge = rows >= 10 ? 2 : 1;
      const strip = Math.max(1, Math.round(rows * 0.14));
      this.fillLines(column, gap, card);
      for (let y = top; y < end - edge; y += 1) {
        const below = end - edge - y;
        const line = below <= strip ? lines.wanted : y - top < strip + (rows > 14 ? 1 : 0) ? lines.decoded : lines.main;
        pixels.set(line, y * width);
      }
    }
    this.context.putImageData(this.image, 0, 0);
    if (this.cursor) this.outline();
  }

  /** The three kinds of pixel lines of a column. */
  fillLines(column, gap, card) {
    const { map, colours, lines, width } = this, { bins, shown } = map;
    const { cold, loading, stored, decoded, wanted } = colours, inUse = colours["in-use"];
    let left = 0;
    for (let bin = 0; bin < bins; bin += 1) {
      const right = Math.round(((bin + 1) * width) / bins), at = (column * bins + bin) * CELL;
      const l = shown[at] / 255, s = shown[at + 1] / 255, u = shown[at + 2] / 255, c = Math.max(0, 1 - l - s - u);
      const mix = (i) => cold[i] * c + loading[i] * l + stored[i] * s + inUse[i] * u;
      const main = [mix(0), mix(1), mix(2)], d = Math.min(shown[at + 3] / 255, 1);
      const scans = shown[at + 4], w = scans > 0.5 ? Math.min(0.16 + Math.log2(1 + scans) / 7, 0.8) : 0;
      const [a, b, e] = [pack(main), pack(blend(main, decoded, d > 0 ? 0.25 + 0.75 * d : 0)), pack(blend(main, wanted, w))];
      const last = Math.max(right - gap, left + 1);
      lines.main.fill(a, left, last).fill(card, last, right);
      lines.decoded.fill(b, left, last).fill(card, last, right);
      lines.wanted.fill(e, left, last).fill(card, last, right);
      left = right;
    }
  }

  outline() {
    const [column, bin] = this.cursor, { columns, bins } = this.map, context = this.context;
    const x = Math.round((bin * this.width) / bins), y = Math.round((column * this.height) / columns);
    const scale = window.devicePixelRatio || 1;
    context.strokeStyle = `rgb(${this.colours.wanted.join(" ")})`;
    context.lineWidth = 1.5 * scale;
    context.strokeRect(x - 0.5, y, Math.max(this.width / bins, 3 * scale), this.height / columns - 1);
  }

  point(event) {
    if (!this.map) return;
    const { columns, bins } = this.map, box = this.canvas;
    const column = Math.floor((event.offsetY / box.clientHeight) * columns), bin = Math.floor((event.offsetX / box.clientWidth) * bins);
    this.select([clamp(column, columns), clamp(bin, bins)]);
  }

  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] }[event.key];
    if (!step || !this.map) return;
    event.preventDefault();
    const [column, bin] = this.cursor ?? [0, 0], { columns, bins } = this.map;
    this.select([clamp(column + step[0], columns), clamp(bin + step[1], bins)]);
  }

  select(cursor) {
    this.cursor = cursor; this.moves = true;
    if (cursor) this.describe(); else this.readout.textContent = "Point at a cell, or move with the arrow keys.";
  }

  describe() {
    const { columns, bins, chunks, cells } = this.map;
    const column = clamp(this.cursor[0], columns), bin = clamp(this.cursor[1], bins);
    this.cursor = [column, bin];
    const at = (column * bins + bin) * CELL, first = Math.ceil((bin * chunks) / bins), last = Math.ceil(((bin + 1) * chunks) / bins) - 1;
    const { place, text } = cellWords(this.columns[column] ?? `column ${column}`, first, last, cells.subarray(at, at + CELL));
    const name = Object.assign(document.createElement("b"), { textContent: place });
    this.readout.replaceChildren(name, `: ${text}`);
  }
}

const clamp = (value, count) => Math.min(Math.max(value, 0), count - 1);
const pack = ([r, g, b]) => (255 << 24) | ((b & 255) << 16) | ((g & 255) << 8) | (r & 255);
const blend = (from, to, share) => [0, 1, 2].map((i) => from[i] + (to[i] - from[i]) * share);
