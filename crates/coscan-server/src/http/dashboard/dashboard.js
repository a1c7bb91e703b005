// The dashboard: takes samples, draws once a frame, and listens to its user.

import { charts } from "./charts.js";
import { Live, Player, Recorder, parse } from "./feed.js";
import { PoolMap } from "./map.js";
import { ScanList } from "./scans.js";
import { Servers } from "./servers.js";
import { History, State } from "./state.js";
import { Workers } from "./workers.js";
import { bytes, number, percent, plural, put, seconds } from "./words.js";

const $ = (id) => document.getElementById(id);
const TEXT_EVERY = 250, CHART_EVERY = 50; // Milliseconds.

const calm = matchMedia("(prefers-reduced-motion: reduce)");
let state = new State(), player = null, recorder = null, live = null;
let isPaused = false, status = "connecting", selected = null, tabs = "", drawnText = -1, drawnAt = -Infinity, chartsAt = -Infinity;
let received = performance.now(), before = received;

const map = new PoolMap($("map"), $("map-rows"), $("map-axis"), $("map-cell"), () => calm.matches);
const scans = new ScanList($("scan-rows"), $("scans-note"), $("no-scans"));
const servers = new Servers($);
const workers = new Workers($);
const drawn = charts($);

// Colours.

let palette = new Map();
const colours = (name) => {
  if (!palette.has(name)) palette.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return palette.get(name);
};
function recolour() { palette = new Map(); map.theme(colours); chartsAt = -Infinity; }
function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Theme: ${theme}`;
  try { localStorage.setItem("coscan-theme", theme); } catch { /* Not kept then. */ }
  recolour();
}
const themes = ["system", "light", "dark"];
let theme = "system";
try { theme = themes.includes(localStorage.getItem("coscan-theme")) ? localStorage.getItem("coscan-theme") : theme; } catch { /* The default then. */ }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

// Samples.

function take(sample) {
  recorder?.push(sample);
  if (player) return;
  received = performance.now();
  if (!state.apply(sample)) setStatus("old");
}

function setStatus(next) {
  status = next;
  const words = {
    connecting: "connecting", live: "live", lost: "connection lost, reconnecting", replay: "replay",
    old: "this page is older than the server: reload it",
  };
  const { sample } = state;
  const about = sample ? `, policy ${sample.policy}, running for ${seconds(sample.seconds)}` : "";
  put($("status-text"), `${isPaused && !player ? "paused" : words[status]}${about}`);
  $("status").className = `is-${status}`;
}

function connect() { live ??= new Live(take, (next) => player || setStatus(next)); }

function replay(samples, at) {
  player = new Player(samples, (state = new State()));
  $("player").hidden = false; $("pause").hidden = true;
  player.seek(at ?? 0);
  if (at !== undefined) player.isPlaying = false;
  setStatus("replay");
  showMap(); showText(); // Also where frames are rare.
}

function goLive() {
  player = null; state = new State(); $("player").hidden = true; $("pause").hidden = false;
  live?.close(); live = null; // The first sample of a connection is whole.
  setStatus("connecting"); connect();
}

// Drawing.

function frame(time) {
  const passed = (time - before) / 1000;
  before = time;
  player?.advance(Math.min(passed, 0.5));
  if (state.sample && !(isPaused && !player)) {
    const isNew = state.version !== drawnText;
    if (isNew) showMap();
    if (isNew && time - drawnAt >= TEXT_EVERY) { drawnAt = time; drawnText = state.version; showText(); }
    if (time - chartsAt >= (calm.matches ? 1000 : CHART_EVERY)) { chartsAt = time; drawCharts(time); }
  }
  map.frame();
  requestAnimationFrame(frame);
}

function now(time) {
  if (player) return player.time;
  return state.sample.seconds + Math.min(Math.max(time - received, 0) / 1000, 1);
}

const table = () => state.tables.find(({ id }) => id === selected);

function showMap() {
  if (!table()) selected = [...state.tables].sort((a, b) => b.scans - a.scans || b.chunks - a.chunks)[0]?.id ?? null;
  const names = state.tables.map(({ id, name }) => `${id} ${name}`).join("\u0000") + selected;
  if (names !== tabs) {
    tabs = names;
    $("tables").replaceChildren(...state.tables.map(({ id, name }) => {
      const tab = Object.assign(document.createElement("button"), { type: "button", textContent: name, id: `table-${id}` });
      tab.setAttribute("role", "tab"); tab.setAttribute("aria-selected", String(id === selected)); tab.setAttribute("aria-controls", "map-panel");
      tab.addEventListener("click", () => select(id));
      return tab;
    }));
  }
  const shown = state.maps.get(selected);
  const isEmpty = !shown || shown.cells.length === 0;
  $("empty").hidden = !isEmpty;
  for (const id of ["map-panel", "map-cell", "map-legend"]) $(id).classList.toggle("hidden", isEmpty);
  map.show(isEmpty ? null : shown, table()?.columns ?? []);
}

function select(id) { selected = id; map.cursor = null; showMap(); chartsAt = -Infinity; }

function showText() {
  const { sample } = state, { totals, memory } = sample;
  const wanted = totals.bytes_read + totals.bytes_saved, slices = totals.slices_decoded + totals.slices_reused;
  put($("f-saved"), bytes(totals.bytes_saved));
  put($("f-saved-sub"), wanted ? `${percent(totals.bytes_saved / wanted)} of the ${bytes(wanted)} that the scans used` : "nothing has been read yet");
  put($("f-read"), bytes(totals.bytes_read));
  put($("f-read-sub"), `${plural(totals.loads, "read")} of chunks`);
  put($("f-scans"), number(sample.scan_count));
  put($("f-scans-sub"), `${plural(totals.chunks, "chunk")} handed out`);
  put($("f-decoded"), slices ? percent(totals.slices_reused / slices) : "–");
  put($("f-decoded-sub"), `${number(totals.slices_reused)} of ${plural(slices, "slice")}`);
  const computed = totals.chunks + (totals.results ?? 0);
  put($("f-results"), totals.results ? percent(totals.results / computed) : "–");
  put($("f-results-sub"), `${number(totals.results ?? 0)} of ${plural(computed, "chunk")}`);
  put($("f-decision"), totals.decisions ? `${(totals.decision_us / totals.decisions).toFixed(1)} µs` : "–");
  put($("f-decision-sub"), `${plural(totals.decisions, "decision")}, ${seconds(totals.decision_us / 1e6)}`);
  scans.show(sample);
  servers.show(state);
  workers.show(state);
  const shared = sample.shared_bytes.slice(1).reduce((sum, count) => sum + count, 0), needed = shared + sample.shared_bytes[0];
  put($("sharing-note"), needed ? `${percent(shared / needed)} of ${bytes(needed)} still needed by several scans` : "no scan needs data now");
  put($("memory-note"), `${bytes(memory.pool + memory.decoded + memory.operators + memory.metadata)} of ${bytes(memory.budget)}, at most ${bytes(memory.peak)}`);
  put($("bytes-note"), `${bytes(recent(History.READ))}/s read, ${bytes(recent(History.SAVED))}/s saved`);
  put($("cost-note"), totals.decisions ? `${(totals.decision_us / totals.decisions).toFixed(1)} µs since the start` : "");
  const alternative = (id, text) => $(id).setAttribute("aria-label", text);
  alternative("map", `Map of ${table()?.name ?? "the pool"}: ${plural(table()?.columns.length ?? 0, "column")} by ${plural(table()?.chunks ?? 0, "chunk")}. The arrow keys move over its cells.`);
  alternative("sharing", `Sharing potential: ${$("sharing-note").textContent}`);
  alternative("bytes", `Bytes: ${$("bytes-note").textContent}`);
  alternative("memory", `Memory: ${$("memory-note").textContent}`);
  alternative("cost", `Cost of a decision: ${$("cost-note").textContent}`);
  alternative("io", `Reads of ${table()?.name ?? "no table"} over time: ${plural(totals.loads, "read")} so far`);
  setStatus(status);
  if (player) {
    $("seek").value = String(Math.round(player.share * 1000));
    put($("position"), `${seconds(player.time - player.first)} of ${seconds(player.length)}`);
    put($("play"), player.isPlaying ? "Pause" : "Play");
  }
}

/** The mean of a column of the history over the last second or two. */
function recent(column) {
  const { history } = state, rows = Math.min(history.length, 15);
  let sum = 0;
  for (let index = history.length - rows; index < history.length; index += 1) sum += history.data[history.at(index) + column];
  return sum / Math.max(rows, 1);
}

function drawCharts(time) {
  const at = now(time);
  for (const chart of [drawn.sharing, drawn.moved, drawn.memory, drawn.cost]) chart.draw(state, at, colours);
  drawn.reads.draw(state, at, colours, table());
}

// The user.

function togglePause() {
  if (player) { player.isPlaying = !player.isPlaying; if (player.isPlaying && player.share >= 1) player.seek(0); drawnText = -1; return; }
  isPaused = !isPaused;
  $("pause").setAttribute("aria-pressed", String(isPaused));
  put($("pause"), isPaused ? "Resume" : "Pause");
  setStatus(status);
}

function toggleRecord() {
  if (recorder) { recorder.save(); recorder = null; } else recorder = new Recorder(state.sample && state.whole());
  $("record").setAttribute("aria-pressed", String(recorder !== null));
  put($("record"), recorder ? "Save" : "Record");
}

function open(text, at) {
  try { replay(parse(text), at); } catch (error) { put($("status-text"), `cannot replay: ${error.message}`); }
}

function stepTheme() { theme = themes[(themes.indexOf(theme) + 1) % themes.length]; setTheme(theme); }

$("pause").addEventListener("click", togglePause);
$("record").addEventListener("click", toggleRecord);
$("open").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", async ({ target }) => { if (target.files[0]) open(await target.files[0].text()); target.value = ""; });
$("theme").addEventListener("click", stepTheme);
$("help-button").addEventListener("click", () => $("help").showModal());
$("play").addEventListener("click", togglePause);
$("live").addEventListener("click", goLive);
$("seek").addEventListener("input", ({ target }) => { player?.seek(target.value / 1000); drawnText = -1; drawnAt = -Infinity; });
$("speed").addEventListener("change", ({ target }) => { if (player) player.speed = Number(target.value); });
$("player").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  const isControl = event.target.closest?.("button, input, select, a, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey || (isControl && (event.key === " " || isControl.tagName !== "BUTTON"))) return;
  const keys = { " ": togglePause, r: toggleRecord, o: () => $("file").click(), d: stepTheme, "?": () => $("help").showModal(), ",": () => step(-1), ".": () => step(1) };
  const nth = state.tables[Number(event.key) - 1];
  if (keys[event.key]) { keys[event.key](); event.preventDefault(); } else if (nth) select(nth.id);
});
function step(by) { player?.step(by); drawnText = -1; drawnAt = -Infinity; }
new ResizeObserver(() => { map.resize(); Object.values(drawn).forEach((chart) => chart.resize()); chartsAt = -Infinity; }).observe(document.querySelector("main"));

setTheme(theme);
// `?replay=FILE` plays a file beside the page, `&at=0.5` shows its middle.
const parameters = new URLSearchParams(location.search), recording = parameters.get("replay"), at = parameters.get("at");
if (recording) fetch(recording).then((answer) => answer.text()).then((text) => open(text, at ? Number(at) : undefined)); else connect();
requestAnimationFrame(frame);
