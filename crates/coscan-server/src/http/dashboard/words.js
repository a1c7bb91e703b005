// Numbers and states in words.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Bytes with three digits: 1.25 GB. */
export function bytes(count) {
  let unit = 0;
  while (count >= 999.5 && unit < UNITS.length - 1) { count /= 1000; unit += 1; }
  return `${digits(count, unit === 0)} ${UNITS[unit]}`;
}

function digits(value, whole) {
  if (whole || value >= 100) return Math.round(value).toString();
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A time: 340 ms, 2.1 s, 4 min 10 s, 3 h 12 min. */
export function seconds(time) {
  if (time < 0.0005) return "0 s";
  if (time < 1) return `${Math.round(time * 1000)} ms`;
  if (time < 60) return `${time < 10 ? time.toFixed(1) : Math.round(time)} s`;
  const minutes = Math.floor(time / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(time % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A share of 0 to 1: 0 %, 3 %, 100 %; never 0 % for some or 100 % for not all. */
export function percent(share) {
  const whole = Math.round(share * 100);
  if (share > 0 && whole === 0) return "< 1 %";
  return `${share < 1 && whole === 100 ? 99 : whole} %`;
}

export function number(count) {
  return count.toLocaleString("en-US").replaceAll(",", "\u202f");
}

export function plural(count, what) {
  return `${number(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** A cell of a map in words; its numbers are shares of 255 and a count of scans. */
export function cell(column, first, last, [loading, stored, inUse, decoded, scans]) {
  const parts = [];
  const share = (value, what) => value > 0 && parts.push(`${percent(value / 255)} ${what}`);
  share(stored, "stored"); share(inUse, "in use"); share(loading, "loading"); share(decoded, "decoded");
  if (!stored && !inUse && !loading) parts.unshift("cold");
  const chunks = first === last ? `chunk ${number(first)}` : `chunks ${number(first)} to ${number(last)}`;
  const wanted = scans === 0 ? "no scan needs it" : scans === 1 ? "1 scan needs it" : `${scans === 255 ? "255 or more" : scans} scans need it`;
  return { place: `${column}, ${chunks}`, text: `${parts.join(", ")}; ${wanted}` };
}

/** Sets a text only if it changed: the page is laid out again only where something is new. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
