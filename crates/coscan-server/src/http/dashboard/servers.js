// The servers that share what they read: what each owns, and what flows between them and this one.

import { bytes, number, percent, plural, put } from "./words.js";

const FLOWS_MAX = 8; // Of single servers, in each direction; the others are one flow.
const THICKNESS = 5; // Half that of the strongest flow, in CSS pixels.

const make = (tag, className, ...children) => {
  const element = Object.assign(document.createElement(tag), { className });
  element.append(...children);
  return element;
};

const rate = (value) => `${bytes(value)}/s`;

/** An arrow, as strong as its flow. */
class Flow {
  constructor() {
    this.name = make("span", ""); this.rate = make("small", ""); this.arrow = make("i", "");
    this.arrow.setAttribute("aria-hidden", "true");
    this.element = make("li", "", this.name, this.arrow, this.rate);
  }

  show({ name, kind, value }, top) {
    put(this.name, name); put(this.rate, rate(value));
    if (this.name.title !== name) this.name.title = name;
    const strength = value > 0 ? Math.max((value / top) * THICKNESS, 0.75) : 0.5;
    this.arrow.style.setProperty("--strength", `${strength.toFixed(2)}px`);
    this.element.className = value > 0 ? kind : "idle";
  }
}

/** All arrows in one direction. */
class Flows {
  constructor(list) { this.list = list; this.flows = []; }
  show(shown, top) {
    while (this.flows.length > shown.length) this.flows.pop().element.remove();
    while (this.flows.length < shown.length) { const flow = new Flow(); this.flows.push(flow); this.list.append(flow.element); }
    shown.forEach((flow, index) => this.flows[index].show(flow, top));
  }
}

/** A row of the table. */
class Row {
  constructor() {
    this.name = make("span", ""); this.zone = make("small", "");
    this.status = make("td", "status"); this.received = make("td", "received"); this.sent = make("td", "sent");
    this.share = make("small", ""); this.fill = make("i", ""); this.bar = make("div", "bar", this.fill);
    this.bar.setAttribute("aria-hidden", "true"); // The text says the same.
    this.element = make("tr", "", make("td", "server", this.name, " ", this.zone), this.status, make("td", "progress", this.share, this.bar), this.received, this.sent);
  }

  show(server, shared) {
    put(this.name, server.address); put(this.zone, server.zone ? `zone ${server.zone}` : "");
    if (this.name.title !== server.address) this.name.title = server.address;
    put(this.status, server.status);
    const share = shared ? server.bytes_owned / shared : 0;
    put(this.share, server.extents ? `${percent(share)}: ${plural(server.extents, "extent")}, ${bytes(server.bytes_owned)}` : "nothing");
    this.fill.style.transform = `scaleX(${share.toFixed(3)})`;
    const isOwn = server.status === "this server";
    put(this.received, isOwn ? "" : bytes(server.bytes_received)); put(this.sent, isOwn ? "" : bytes(server.bytes_sent));
  }
}

/** The panel; hidden unless this server shares. Elements are found by id. */
export class Servers {
  constructor(find) {
    this.panel = find("servers"); this.note = find("servers-note"); this.own = find("flows-own"); this.body = find("server-rows");
    this.incoming = new Flows(find("flows-in")); this.outgoing = new Flows(find("flows-out"));
    this.rows = new Map();
  }

  show({ sample, traffic }) {
    this.panel.hidden = !sample.servers;
    if (!sample.servers) return;
    const { count, bytes_shared: shared, rows } = sample.servers, peers = rows.filter(({ status }) => status !== "this server");
    put(this.own, rows.find((row) => !peers.includes(row))?.address ?? "");
    const sharing = peers.filter(({ status }) => status === "sharing").length;
    const more = count - rows.length;
    put(this.note, `files of ${bytes(shared)}, shared with ${number(sharing)} of ${plural(peers.length, "other server")}${more > 0 ? `; ${number(more)} more are not listed` : ""}`);
    this.showFlows(peers, traffic);
    this.showRows(rows, shared);
  }

  showFlows(peers, traffic) {
    const flows = (column) => {
      const all = peers.map(({ address, status }) => ({ name: address, kind: "peer", value: traffic.rateOf(address, column), isSharing: status === "sharing" }))
        .filter(({ value, isSharing }) => isSharing || value > 0);
      // Samples list first those with which most was exchanged.
      const shown = all.slice(0, FLOWS_MAX).sort((a, b) => a.name.localeCompare(b.name)), rest = all.slice(FLOWS_MAX);
      if (rest.length) shown.push({ name: `${plural(rest.length, "other")}`, kind: "peer", value: rest.reduce((sum, { value }) => sum + value, 0) });
      return shown;
    };
    const store = { name: "store", kind: "store", value: traffic.rate(({ totals }) => totals.bytes_read) };
    const incoming = [store, ...flows("bytes_received")], outgoing = flows("bytes_sent");
    const top = Math.max(...[...incoming, ...outgoing].map(({ value }) => value), 1);
    this.incoming.show(incoming, top); this.outgoing.show(outgoing, top);
  }

  showRows(servers, shared) {
    const known = new Set();
    // In one order, so that rows stay where they are: this server, then by address.
    const order = (server) => `${server.status === "this server" ? 0 : 1}${server.address}`;
    for (const server of [...servers].sort((a, b) => order(a).localeCompare(order(b)))) {
      known.add(server.address);
      let row = this.rows.get(server.address);
      if (!row) this.rows.set(server.address, (row = new Row()));
      row.show(server, shared);
      const place = this.body.children[known.size - 1];
      if (place !== row.element) this.body.insertBefore(row.element, place ?? null);
    }
    for (const [address, row] of this.rows) if (!known.has(address)) { row.element.remove(); this.rows.delete(address); }
  }
}
