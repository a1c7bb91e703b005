// The workers among which this server divides queries, and the tasks that it executes for others.

import { number, plural, put } from "./words.js";

/** The panel; hidden without workers. Elements are found by id. */
export class Workers {
  constructor(find) { this.panel = find("workers"); this.note = find("workers-note"); this.table = find("worker-table"); this.body = find("worker-rows"); }

  show({ sample }) {
    const workers = sample.workers;
    this.panel.hidden = !workers;
    if (!workers) return;
    const { tasks, rows } = workers, healthy = rows.filter(({ status }) => status === "healthy").length;
    const notes = [];
    if (rows.length) notes.push(`queries are divided among ${number(healthy)} of ${plural(rows.length, "worker")}`);
    if (tasks !== null) notes.push(`${plural(tasks, "task")} of other servers`);
    put(this.note, notes.join("; "));
    this.table.hidden = !rows.length;
    while (this.body.children.length > rows.length) this.body.lastChild.remove();
    while (this.body.children.length < rows.length) {
      const row = document.createElement("tr");
      row.append(...["server", "status", ""].map((name) => Object.assign(document.createElement("td"), { className: name })));
      this.body.append(row);
    }
    rows.forEach(({ address, status, reason }, index) => {
      const [name, state, why] = this.body.children[index].children;
      put(name, address); put(state, status); put(why, reason ?? "");
    });
  }
}
