// The list of running scans. A row stays where it is as long as its scan runs.

import { number, percent, plural, put, seconds } from "./words.js";

const make = (tag, className, ...children) => {
  const element = Object.assign(document.createElement(tag), { className });
  element.append(...children);
  return element;
};

class Row {
  constructor(scan) {
    this.name = make("span", ""); this.user = make("small", ""); this.sql = make("code", "");
    this.query = make("td", "query", this.name, " ", this.user, this.sql);
    this.table = make("span", ""); this.columns = make("small", "");
    this.order = make("td", "order");
    this.fill = make("i", ""); this.share = make("small", "");
    this.bar = make("div", "bar", this.fill);
    this.bar.setAttribute("role", "progressbar"); this.bar.setAttribute("aria-valuemin", "0"); this.bar.setAttribute("aria-valuemax", "100");
    this.why = make("td", "why");
    this.element = make("tr", "", this.query, make("td", "reads", this.table, " ", this.columns), this.order, make("td", "progress", this.share, this.bar), this.why);
    this.bar.setAttribute("aria-label", `Progress of scan ${scan.id}`);
  }

  show(scan) {
    const query = scan.query ? short(scan.query) : `scan ${scan.id}`;
    put(this.name, query);
    put(this.user, scan.user ?? "");
    put(this.sql, scan.sql ?? "");
    const title = scan.sql ?? scan.query ?? "";
    if (this.query.title !== title) this.query.title = title;
    put(this.table, scan.table_name);
    put(this.columns, scan.columns.length ? scan.columns.join(", ") : "row counts only");
    this.columns.title = this.columns.textContent;
    put(this.order, `${scan.ordered ? "in order" : "any"}${scan.weight > 1 ? `, weight ${scan.weight}` : ""}${scan.class === "long" ? "" : `, ${scan.class}`}`);
    const share = scan.chunks ? Math.min(scan.delivered / scan.chunks, 1) : 1;
    const shown = share.toFixed(3);
    if (this.shown !== shown) {
      this.shown = shown;
      this.fill.style.transform = `scaleX(${shown})`;
      this.bar.setAttribute("aria-valuenow", Math.round(share * 100));
    }
    put(this.share, `${percent(share)} of ${plural(scan.chunks, "chunk")}, ${seconds(scan.seconds)}`);
    // Waits of less than a tenth of a second are shown without their time.
    put(this.why, scan.waiting >= 0.1 ? `${scan.why} (${seconds(scan.waiting)})` : scan.why);
    if (this.why.dataset.waits !== scan.waits) this.why.dataset.waits = scan.waits;
  }
}

/** Ids of sessions are long: their first part tells them apart. */
const short = (query) => (/^[0-9a-f]{8}-[0-9a-f]{4}-/.test(query) ? query.slice(0, 8) : query);

export class ScanList {
  constructor(body, note, empty) { Object.assign(this, { body, note, empty }); this.rows = new Map(); }

  show(sample) {
    const ids = new Set();
    for (const scan of sample.scans) {
      ids.add(scan.id);
      let row = this.rows.get(scan.id);
      if (!row) {
        row = new Row(scan);
        this.rows.set(scan.id, row);
        this.body.append(row.element);
      }
      row.show(scan);
    }
    for (const [id, row] of this.rows) {
      if (!ids.has(id)) { row.element.remove(); this.rows.delete(id); }
    }
    this.empty.hidden = sample.scan_count > 0;
    this.body.parentElement.hidden = sample.scan_count === 0;
    const waiting = sample.scans.filter((scan) => !["none", "consumer", "failed"].includes(scan.waits)).length;
    const more = sample.scan_count - sample.scans.length;
    put(this.note, sample.scan_count ? `${waiting} of ${plural(sample.scans.length, "scan")} wait for the scheduler${more > 0 ? `; ${number(more)} more are not listed` : ""}` : "");
  }
}
