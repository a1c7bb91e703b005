// Charts of the last minutes, on canvases.

import { History } from "./state.js";
import { bytes, number } from "./words.js";

const SPANS = [30, 60, 120]; // Seconds that are shown: the first that holds all there is.
const PAD = { left: 40, right: 8, top: 6, bottom: 20 };

/** The common part: size, axes, and where a value lies. */
class Chart {
  constructor(canvas) { this.canvas = canvas; this.context = canvas.getContext("2d"); this.resize(); }

  resize() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth; this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * scale); this.canvas.height = Math.round(this.height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.font = `11px ${getComputedStyle(document.documentElement).fontFamily}`;
    this.left = PAD.left;
    this.right = this.width - PAD.right; this.bottom = this.height - PAD.bottom;
  }

  begin(now, colours, top, words) {
    const { context } = this;
    context.clearRect(0, 0, this.width, this.height);
    const shares = top > 0 ? [0, 0.5, 1] : [0];
    const labels = shares.map((share) => context.measureText(words(share * top)).width);
    this.left = Math.max(this.left, Math.ceil(Math.max(...labels)) + 10);
    this.now = now; this.top = top || 1; this.colours = colours;
    context.lineWidth = 1; context.textBaseline = "middle";
    for (const share of shares) {
      const y = Math.round(this.y(share * this.top)) + 0.5;
      context.strokeStyle = colours("line");
      context.beginPath(); context.moveTo(this.left, y); context.lineTo(this.right, y); context.stroke();
      context.fillStyle = colours("soft"); context.textAlign = "right";
      context.fillText(words(share * this.top), this.left - 7, y + (share === 1 ? 4 : 0));
    }
    context.textAlign = "left"; context.fillText(`${this.span} s ago`, this.left, this.height - 8);
    context.textAlign = "right"; context.fillText("now", this.right, this.height - 8);
  }

  /** The seconds that are shown. */
  spanOf({ history }, now) {
    const age = history.length ? now - history.data[history.at(0)] : 0;
    this.span = SPANS.find((span) => age <= span) ?? SPANS.at(-1);
    return this.span;
  }

  x(seconds) { return this.right - ((this.now - seconds) / this.span) * (this.right - this.left); }
  y(value) { return this.bottom - (value / this.top) * (this.bottom - PAD.top); }
}

/** The first row of a ring that is not older than this; rows are in order of time. */
function firstFrom(ring, time) {
  let low = 0, high = ring.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ring.data[ring.at(middle)] < time) low = middle + 1; else high = middle;
  }
  return low;
}

/** A round number at or above. */
function ceiling(value) {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value)), digit = value / power;
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step >= digit - 1e-9);
}

/** Areas on top of each other: columns of the history with their colours, the lowest first. */
export class Areas extends Chart {
  constructor(canvas, layers, words = bytes) {
    super(canvas); this.layers = layers; this.words = words; this.sums = new Float64Array(0);
  }

  draw(state, now, colours) {
    const { history } = state, span = this.spanOf(state, now), from = Math.max(firstFrom(history, now - span) - 1, 0), count = history.length - from;
    // Rates jump from sample to sample: a row stands for the mean of a stretch about a pixel and a half wide.
    const stride = Math.max(1, Math.floor((count * 1.5) / Math.max(this.right - this.left, 1)), this.mean ?? 1);
    const rows = Math.floor(count / stride);
    if (this.sums.length < rows * (this.layers.length + 1)) this.sums = new Float64Array(2 * rows * (this.layers.length + 1) + 64);
    const width = this.layers.length + 1;
    let top = 0;
    for (let row = 0; row < rows; row += 1) {
      let sum = 0;
      const end = history.length - (rows - 1 - row) * stride;
      this.sums[row * width + this.layers.length] = history.data[history.at(end - 1)];
      this.layers.forEach(({ column }, layer) => {
        let total = 0;
        for (let index = end - stride; index < end; index += 1) total += history.data[history.at(index) + column] || 0;
        sum += total / stride;
        this.sums[row * width + layer] = sum;
      });
      top = Math.max(top, sum);
    }
    this.begin(now, colours, this.ceilingOf(top, state), this.words);
    const { context } = this;
    context.save();
    context.beginPath(); context.rect(this.left, 0, this.right - this.left, this.height); context.clip();
    for (let layer = this.layers.length - 1; layer >= 0; layer -= 1) {
      context.fillStyle = colours(this.layers[layer].colour);
      context.beginPath();
      let x = this.left;
      for (let row = 0; row < rows; row += 1) {
        x = this.x(this.sums[row * width + this.layers.length]);
        if (row === 0) context.moveTo(x, this.bottom);
        context.lineTo(x, this.y(this.sums[row * width + layer]));
      }
      context.lineTo(x, this.bottom); context.fill();
    }
    context.restore();
    if (this.limit) this.line(this.limit(state), colours);
  }

  ceilingOf(top, state) { return ceiling(Math.max(top, this.limit && state.sample ? this.limit(state) : 0)); }

  line(value, colours) {
    const y = Math.round(this.y(value)) + 0.5, { context } = this;
    context.setLineDash([3, 3]); context.strokeStyle = colours("soft");
    context.beginPath(); context.moveTo(this.left, y); context.lineTo(this.right, y); context.stroke();
    context.setLineDash([]);
  }
}

/** A column of the history as a line. */
export class Line extends Chart {
  constructor(canvas, column, colour, words) { super(canvas); Object.assign(this, { column, colour, words }); }

  draw(state, now, colours) {
    const { history } = state, from = firstFrom(history, now - this.spanOf(state, now));
    const values = [];
    for (let index = from; index < history.length; index += 1) {
      const value = history.data[history.at(index) + this.column];
      if (!Number.isNaN(value)) values.push(value);
    }
    // A single pause of the machine must not flatten all else.
    const top = values.length ? values.sort((a, b) => a - b)[Math.floor((values.length - 1) * 0.98)] : 0;
    this.begin(now, colours, ceiling(top * 1.15), this.words);
    const { context } = this;
    context.save(); context.beginPath(); context.rect(this.left, 0, this.right - this.left, this.bottom + 1); context.clip();
    context.strokeStyle = colours(this.colour); context.lineWidth = 1.5; context.lineJoin = "round";
    context.beginPath();
    let smooth = NaN, isOpen = false;
    for (let index = from; index < history.length; index += 1) {
      const at = history.at(index), value = history.data[at + this.column];
      if (Number.isNaN(value)) { isOpen = false; continue; }
      smooth = Number.isNaN(smooth) ? value : smooth * 0.7 + value * 0.3;
      const x = this.x(history.data[at]), y = this.y(smooth);
      if (isOpen) context.lineTo(x, y); else context.moveTo(x, y);
      isOpen = true;
    }
    context.stroke(); context.restore();
  }
}

/** Reads of a table: a mark for each, at its time and chunk [CS07 Figure 4]. */
export class Reads extends Chart {
  draw(state, now, colours, table) {
    const { loads } = state, chunks = table?.chunks ?? 0;
    this.spanOf(state, now);
    this.begin(now, colours, chunks, (value) => number(Math.round(value)));
    const { context } = this, size = Math.min(Math.max((this.bottom - PAD.top) / chunks, 2.2), 6);
    const marks = Array.from({ length: 5 }, () => []);
    for (let index = firstFrom(loads, now - this.span); index < loads.length; index += 1) {
      const at = loads.at(index);
      if (loads.data[at + 1] !== table?.id) continue;
      marks[Math.min(Math.max(loads.data[at + 3], 1), 5) - 1].push(this.x(loads.data[at]), this.y(loads.data[at + 2] + 0.5));
    }
    ["s2", "s3", "s3", "s4", "s5"].forEach((colour, level) => {
      context.fillStyle = colours(colour);
      for (let at = 0; at < marks[level].length; at += 2) context.fillRect(marks[level][at] - size / 2, marks[level][at + 1] - size / 2, size, size);
    });
  }
}

/** All charts of the page. */
export function charts(canvas) {
  const layer = (column, colour) => ({ column, colour });
  const sharing = new Areas(canvas("sharing"), [5, 4, 3, 2, 1].map((level) => layer(History.SHARED + level - 1, `s${level}`)));
  const moved = new Areas(canvas("bytes"), [layer(History.READ, "read"), layer(History.SAVED, "accent")], (value) => `${bytes(value)}/s`);
  moved.mean = 5;
  const memory = new Areas(canvas("memory"), [layer(History.POOL, "stored"), layer(History.DECODED, "decoded"), layer(History.OPERATORS, "operators"), layer(History.METADATA, "metadata")]);
  memory.limit = (state) => state.sample.memory.budget;
  const cost = new Line(canvas("cost"), History.DECISION_US, "accent", (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} µs`);
  return { sharing, moved, memory, cost, reads: new Reads(canvas("io")) };
}
